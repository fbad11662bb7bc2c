"""Mutation testing of engine.py: `python -m tools.qa.mutants [--page docs/mutation.md] [--only TEXT]`.

One place of the engine at a time is made wrong: an operator, a constant, a comparison, a condition, a statement that is
left out. A fast part of the tests runs against each such mutant, interpreted, in a process of its own, and has to fail.
A mutant that survives is explained below, or a test is missing.

Works where processes can be forked.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXPLAINED", "Mutant", "mutants"]

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "src" / "wengert" / "engine.py"
TESTS = (  # one after the other
    ("test_values",),
    ("test_gradients", "test_copies", "ops/test_table"),
    ("test_walks", "test_graph", "test_modes", "ops/test_custom_op", "test_handmade", "test_hostile"),
)
CHOSEN = "not slow and not torch and not mpmath and not plot"
SECONDS = 60.0  # of processor time: a mutant that needs more, as in an endless loop, counts as killed
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"

EXPLAINED: dict[str, str] = {
    "constant = 0.0 -> constant = 1.0": "any number except nan means: there is no constant to check",
    "others * _pins - change": "any number except 0 means: a Graph is being written",
    "ieee.untrack(node._all) -> pass": "does nothing when interpreted",
    "if by_hand is None: -> if by_hand is not None:": "the statement that it skips does nothing when interpreted",
    "or _op is None or label": "a leaf is given the empty label it already has; only slower",
    "others * _closures - closures": "any number except 0 means: a closure is running",
    "_fill(node, code, data, x, None, dx, 0.0) -> _fill(node, code, data, x, None, dx, 1.0)": (
        "a partial is only read if there is an operand"
    ),
    "if 0.0 < ieee.fabs(z) <= TINY else": "the table's rule gives the same bits, only more slowly",
    "if 0.0 <= ieee.fabs(z) < TINY else": "the table's rule gives the same bits, only more slowly",
    "if x == 0.0 else y * q, 1.0)": "there the exponent is a constant, which has no partial",
    "-> if (isinstance(right, Value) or y != 0.0": "the table's rule gives the same gradients, only more slowly",
    "-> if (isinstance(right, Value) or y == 1.0": "the table's rule gives the same gradients, only more slowly",
    "(not ieee.fabs(z) >= TINY or": "the table's rule gives the same bits",
    "or not TINY <= ieee.fabs(q) < inf)": "the table's rule gives the same bits",
    "or not TINY < ieee.fabs(q) <= inf)": "the table's rule gives the same bits",
    "_fill(node, code, 1.0, None, None, 0.0, float(over": "the caller writes the value",
    "_fill(node, code, 0.0, None, 0, 0.0, float(over": "a second operand is only looked for after a first one",
    "_fill(node, code, 0.0, None, None, 1.0, float(over": "a partial is only read if there is an operand",
}
"""Mutants that no test can or need kill: the change, and why. A key is part of the line `Mutant.title` gives."""

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of one place."""

    line: int
    before: str  # the statement, or the head of it
    after: str
    source: str  # of the whole module

    @property
    def title(self) -> str:
        """The change in one line."""
        return f"{self.before} -> {self.after}"


def mutants(text: str, titles_only: bool = False) -> Iterator[Mutant]:
    """Every mutant of a module; to write out only what each is called takes no time."""
    tree = ast.parse(text)
    places = [(node, statement, field) for node, statement in _behaving(tree) for field in _fields(node)]
    for node, statement, field in places:
        kept = getattr(node, field) if field else None
        before = _head(statement)
        for changed in _changes(node, field, kept):
            if field:
                setattr(node, field, changed)
                yield Mutant(node.lineno, before, _head(statement), "" if titles_only else ast.unparse(tree))
                setattr(node, field, kept)
            else:
                whole = "" if titles_only else ast.unparse(_replaced(tree, statement, changed))
                yield Mutant(node.lineno, before, _head(changed), whole)


def _behaving(tree: ast.Module) -> list[tuple[ast.expr | ast.stmt, ast.stmt]]:
    """The nodes that say what the module does: not its docstrings, annotations, imports, lists of names.

    Each with the innermost statement around it.
    """
    found: list[tuple[ast.expr | ast.stmt, ast.stmt]] = []
    nones: set[int] = set()

    def visit(node: ast.AST, statement: ast.stmt) -> None:
        statement = node if isinstance(node, ast.stmt) else statement
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.arguments)):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__slots__"):
            return
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            return  # what the compiler reads
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        if isinstance(node, ast.Compare):
            nones.update(id(x) for x in node.comparators if isinstance(x, ast.Constant) and x.value is None)
        if id(node) in nones:
            return  # `is None` against `is 0` says nothing
        if isinstance(node, (ast.expr, ast.stmt)):
            found.append((node, statement))
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases"):
                continue
            for part in child if isinstance(child, list) else [child]:
                if isinstance(part, ast.AST):
                    visit(part, statement)

    visit(tree, ast.Pass())
    return found


def _fields(node: ast.AST) -> list[str]:
    """Which fields of a node are changed; "" stands for the statement itself."""
    if isinstance(node, ast.Compare):
        return ["ops"]
    if isinstance(node, (ast.BinOp, ast.BoolOp)):
        return ["op"]
    if isinstance(node, ast.AugAssign):
        return ["op", ""]
    if isinstance(node, (ast.If, ast.IfExp)):
        return ["test"]
    if isinstance(node, ast.Constant):
        return ["value"]
    if isinstance(node, ast.Return) and node.value is not None:
        return ["value"]
    if isinstance(node, ast.UnaryOp):
        return ["op"]
    return [""] if isinstance(node, (ast.Assign, ast.Expr, ast.Raise)) else []


def _changes(node: ast.AST, field: str, kept: object) -> Iterator[object]:
    if field == "ops":
        for k, operator in enumerate(node.ops):  # type: ignore[attr-defined]
            if type(operator) in OTHER:
                yield [*node.ops[:k], OTHER[type(operator)](), *node.ops[k + 1 :]]  # type: ignore[attr-defined]
    elif field == "op" and isinstance(node, ast.UnaryOp):
        yield ast.UAdd() if isinstance(kept, ast.USub) else ast.USub()
    elif field == "op" and type(kept) in OTHER:
        yield OTHER[type(kept)]()  # type: ignore[index]
    elif field == "test":
        if isinstance(kept, ast.Compare) and isinstance(kept.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return  # the operator is changed, which is the same
        yield ast.UnaryOp(op=ast.Not(), operand=copy.deepcopy(kept))  # type: ignore[arg-type]
    elif field == "value" and isinstance(node, ast.Return):
        yield ast.Constant(value=None)
    elif field == "value":
        if isinstance(kept, bool):
            yield not kept
        elif isinstance(kept, (int, float)):
            yield kept + 1 if abs(kept) < 1e15 else 2 * kept
        elif isinstance(kept, str):
            yield f"XX{kept}"
        elif kept is None:
            yield 0
    elif field == "":
        yield ast.Pass()


def _replaced(tree: ast.Module, statement: ast.stmt, other: object) -> ast.Module:
    """A copy of the tree with one statement replaced."""

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) == place and type(node) is type(statement):
                return ast.copy_location(other, node)  # type: ignore[type-var,return-value]
            return self.generic_visit(node)

    place = (statement.lineno, statement.col_offset)
    return Replace().visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


def _head(statement: object) -> str:
    """The first line of a statement; of a function on one line its body."""
    return ast.unparse(statement).splitlines()[0]  # type: ignore[arg-type]


# -- running ----------------------------------------------------------------------------------------------------------


def killed(folder: Path) -> bool:
    """Whether the tests fail, against the package in the folder, in a forked process."""
    import resource
    import signal

    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.environ |= {"PYTHONPATH": str(folder), "WENGERT_INTERPRETED": "1"}
        sys.path.insert(0, str(folder))
        code = 1
        try:
            import pytest

            for names in TESTS:
                files = [f"tests/{name}.py" for name in names]
                code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "-m", CHOSEN, *files])
                if code:
                    break
        finally:
            os._exit(int(code))
    start = time.monotonic()
    while time.monotonic() - start < 10 * SECONDS:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what a test has started and left
            return status != 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def explanation(mutant: Mutant) -> str:
    """Why a mutant may survive; empty if nothing is known."""
    return next((why for key, why in EXPLAINED.items() if key in mutant.title), "")


def table(survivors: list[Mutant], count: int) -> str:
    """The outcome as Markdown."""
    dead = count - len(survivors)
    lines = [f"{count} mutants, {dead} killed: {100 * dead / count:.1f} %. The survivors:", ""]
    lines += ["| the change | why no test fails |", "|---|---|"]
    for mutant in survivors:
        before, after = mutant.before.replace("|", "\\|"), mutant.after.replace("|", "\\|")
        lines.append(f"| `{before}` → `{after}` | {explanation(mutant) or '**not explained**'} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Make the mutants, try each; 1 if a survivor is not explained."""
    parser = argparse.ArgumentParser(description="Mutation testing of the engine.")
    parser.add_argument("--page", type=Path, help="a page between whose marks the outcome goes")
    parser.add_argument("--only", default="", help="only mutants with this text in their title")
    parser.add_argument("--list", action="store_true", help="show the mutants and try none")
    parser.add_argument("--part", default="1/1", help="2/3: of every three mutants the second")
    parser.add_argument("--unexplained", action="store_true", help="leave out those that are explained")
    options = parser.parse_args(argv)
    chosen = [m for m in mutants(ENGINE.read_text(encoding="utf-8")) if options.only in m.title]
    part, parts = map(int, options.part.split("/"))
    chosen = chosen[part - 1 :: parts]
    if options.unexplained:
        chosen = [m for m in chosen if not explanation(m)]
    if options.list:
        print(*[f"{m.line}: {m.title}" for m in chosen], sep="\n")
        return 0
    import numpy as np  # noqa: F401  (read once, before the processes are forked)
    import pytest  # noqa: F401

    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    survivors = []
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / "wengert"
        shutil.copytree(ENGINE.parent, copied, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.pxd"))
        if killed(Path(place)):
            print("the tests fail without any change", file=sys.stderr)
            return 2
        for number, mutant in enumerate(chosen, 1):
            for stale in (copied / "__pycache__").glob("engine*.pyc"):
                stale.unlink()
            (copied / "engine.py").write_text(mutant.source, encoding="utf-8")
            alive = not killed(Path(place))
            survivors += [mutant] * alive
            outcome = "SURVIVED" if alive else "killed"
            print(f"{number}/{len(chosen)} {outcome} {mutant.line}: {mutant.title}", flush=True)
    text = table(survivors, len(chosen))
    print(text)
    if options.page:
        from tools.qa.accuracy import into_page  # which reads the package, so not before the processes are forked

        into_page(options.page, BEGIN, END, text)
    return int(any(not explanation(mutant) for mutant in survivors))


if __name__ == "__main__":
    sys.exit(main())
