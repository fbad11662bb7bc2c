"""The command `wengert`.

``wengert demo`` trains a network of scalar Values on real handwritten digits; ``wengert draw "tanh(x*w + b)" x=2 w=-1
b=0.5`` draws a formula and its gradients; ``wengert check`` tries anyone's Value-like class, and names what is wrong;
``wengert course`` puts the lessons of the course into a folder; ``wengert info`` says what runs here; ``wengert cache``
shows how much machine code is kept on disk, and ``wengert cache clear`` removes it.
A mistake of the user's is answered with one sentence and exit status 2, never with a traceback.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from wengert import __version__, _loader
from wengert.apps.demo import SETTINGS, run, source
from wengert.compiler.backends import BACKENDS, cache
from wengert.errors import WengertError
from wengert.view import formula as formulas
from wengert.view.graph import draw, tree
from wengert.view.graph.formats import FORMATS
from wengert.view.steps import steps

__all__ = ["main"]

EXTRAS = {
    **{backend.extra: backend.library for backend in BACKENDS.values()},
    "plot": "matplotlib",
    "png": "resvg_py",
    "progress": "tqdm",
}  # extra -> the library that it brings
DAY = 86_400.0  # seconds


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, or say which there are; returns the exit status: 0, 2 for a mistake of the user's, 130 for Ctrl-C.

    That of ``wengert check`` is 1 where the class is wrong, and 2 where it could not be tried.
    It is 1 where what is printed cannot go on: nobody reads it, as in ``wengert demo | head -1``, or a disk is full.
    """
    parser = _parser()
    given, unknown = parser.parse_known_args(arguments)
    if unknown:
        minus = given.command == "draw" and not unknown[0].startswith("--")
        hint = "; a formula that begins with a minus needs a space before it: ' -x'" if minus else ""
        parser.exit(2, f"wengert {given.command}: unrecognized arguments: {' '.join(unknown)}{hint}\n")
    if given.command is None:
        parser.print_help()
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a folder may have a name that cannot be printed here
    try:
        if given.command == "info":
            status = _info()
        elif given.command == "cache":
            print(cache.clear() if given.action else f"cache    {cache.status()}")
            status = 0
        elif given.command == "check":
            status = _check(given)
        elif given.command == "course":
            status = _course(given.folder, given.solutions)
        elif given.command == "draw":
            status = _draw(given.formula, dict(given.numbers), given.out, given.html, given.steps)
        elif given.program:
            print(source(given.data), end="")
            status = 0
        else:
            folder = os.path.join("wengert-demo", given.data) if given.out is None else given.out
            status = run(given.data, folder, given.seed, given.epochs, given.batch_size, given.lr, given.quiet)
        if sys.stdout is not None:  # it is None where the output was closed, as by `>&-`
            sys.stdout.flush()
        return status
    except WengertError as error:
        print(f"wengert {given.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"wengert {given.command}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"wengert {given.command}: cannot write what it has to say: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="wengert", description="A scalar autograd engine that you can read in an evening.")
    parser.add_argument("--version", action="version", version=f"wengert {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    demo = commands.add_parser("demo", help="train a network of scalar Values and draw what it learnt")
    demo.add_argument("data", nargs="?", default="digits", choices=SETTINGS, help="what to learn (default: digits)")
    demo.add_argument(
        "--out", type=_path, metavar="FOLDER", help="where to write (default: wengert-demo/digits, and so on)"
    )
    demo.add_argument("--seed", type=_seed, default=0, help="decides every random number, to the last bit (default: 0)")
    demo.add_argument("--epochs", type=_whole, help="how many times to go through the examples")
    demo.add_argument("--batch-size", type=_whole, metavar="N", help="how many examples make one step")
    demo.add_argument("--lr", type=_rate, help="the learning rate at the start; it falls to a twentieth")
    demo.add_argument(
        "--program", action="store_true", help="print the NumPy program that the network becomes, and do no more"
    )
    demo.add_argument("--quiet", action="store_true", help="show no progress")
    draw = commands.add_parser("draw", help="draw a formula: its numbers, and its gradients by every name in it")
    draw.add_argument(
        "formula", help="such as 'tanh(x1*w1 + b)', or 'n = x1*w1 + b; n.tanh()'; ' -x' with a space first"
    )
    draw.add_argument(
        "numbers", nargs="*", default=[], type=_number, metavar="NAME=NUMBER", help="what the names stand for"
    )
    draw.add_argument(
        "-o", "--out", type=_path, metavar="FILE", help=f"write a picture: {', '.join(f'.{name}' for name in FORMATS)}"
    )
    draw.add_argument("--html", type=_path, metavar="FILE", help="write a page; with --steps, one that plays the steps")
    draw.add_argument(
        "--steps", action="store_true", help="print every step, forward and backward, in words and numbers"
    )
    check = commands.add_parser(
        "check", help="try a Value-like class, operation by operation: what is right, what is wrong, what is to do"
    )
    check.add_argument(
        "targets", nargs="+", metavar="FILE[:Class]", help=".py or .ipynb, and its class where there are several"
    )
    check.add_argument("--step", type=_step, help="the step of the course, 0 to 12 (default: found by what is there)")
    check.add_argument("--json", action="store_true", help="print the report as JSON, of several files a list")
    check.add_argument("--table", action="store_true", help="print a row for each file")
    check.add_argument("--strict", action="store_true", help="exit with status 1 for what is only noted, too")
    check.add_argument(
        "--timeout", type=_seconds, default=20.0, metavar="SECONDS", help="for the check of a file (default: 20)"
    )
    check.add_argument(
        "--memory", type=_whole, default=2048, metavar="MIB", help="the most memory the file may use (default: 2048)"
    )
    check.add_argument("--seed", type=_seed, help="decides the numbers that are tried (default: others in each run)")
    course = commands.add_parser("course", help="write the lessons of the course, as notebooks, into a folder")
    course.add_argument(
        "folder", nargs="?", type=_path, default="wengert-course", help="where to (default: wengert-course)"
    )
    course.add_argument("--solutions", action="store_true", help="with every gap filled in, for teachers")
    commands.add_parser("info", help="say which engine runs, and what is installed")
    kept = commands.add_parser("cache", help="say where machine code is kept for the next process, and how much")
    kept.add_argument("action", nargs="?", choices=["clear"], help="clear: remove it")
    return parser


def _check(given: argparse.Namespace) -> int:
    """Check each file; the status is the worst: 0 right, 1 wrong or not there yet, 2 not to be tried."""
    import json

    from wengert.course import Report, check
    from wengert.course.grading import table

    told: list[tuple[str, Report | WengertError]] = []
    for target in given.targets:
        try:
            options = {"timeout": given.timeout, "memory": given.memory, "seed": given.seed}
            told.append((target, check(target, given.step, **options)))
        except WengertError as error:
            if not given.json and not given.table and len(given.targets) == 1:
                raise
            told.append((target, error))
    if given.json:
        several = [one.as_dict() if isinstance(one, Report) else {"error": str(one)} for _, one in told]
        named = [{"file": target} | one for (target, _), one in zip(told, several, strict=True)]
        print(json.dumps(named if len(named) > 1 else named[0], indent=2, allow_nan=False))
    elif given.table:
        print(table(told))
    else:
        print("\n\n\n".join(str(one) for _, one in told))
    failed = [2 if isinstance(one, WengertError) else int(not one.passes(given.strict)) for _, one in told]
    return max(failed)


def _course(folder: str, solutions: bool) -> int:
    """Write the notebooks, and say what to open; what is there already stays as it is."""
    from wengert.course import write

    try:
        written, kept = write(Path(folder), solutions)
    except OSError as error:
        print(f"wengert course: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    if written:
        print(f"{len(written)} lesson{'s' * (len(written) > 1)} written to {folder}")
    if kept:
        was = "was there already and stays as it is" if len(kept) == 1 else "were there already and stay as they are"
        print(f"{len(kept)} {was}: {', '.join(path.name for path in kept)}")
        print("for a lesson anew: rename yours, or name another folder")
    first = (written or kept)[0]
    program = next((name for name, of in (("lab", "jupyterlab"), ("notebook", "notebook")) if find_spec(of)), "")
    if program:
        print(f"begin with: jupyter {program} {first}")
    else:
        print('Jupyter is not here: pip install "wengert[course]", then: jupyter lab ' + str(first))
        print("(or open it in an editor that has notebooks; the lessons can be read in the documentation, too)")
    print(f"and to be told how far you are: wengert check {first} --step {int(first.name[:2])}")
    return 0


def _draw(formula: str, numbers: dict[str, float], out: str | None, html: str | None, in_steps: bool) -> int:
    """Print a formula as a tree, or its steps; or write it to files."""
    root = formulas.evaluate(formula, numbers)
    root.backward()
    walk, picture = steps(root), draw(root)
    for path, write in ((out, picture.save), (html, walk.save if in_steps else picture.save)):
        if path is not None:
            try:
                write(path)
            except OSError as error:
                print(f"wengert draw: cannot write {path}: {error.strerror}", file=sys.stderr)
                return 2
            print(path)
    if in_steps and html is None:
        print("\n".join(map(str, walk)))
    elif out is None and html is None:
        text: str = tree(root)
        try:
            text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
        except UnicodeEncodeError:  # in signs that the terminal has
            text = text.translate(str.maketrans("├│└─…", "||`-."))
        print(text)
    return 0


def _info() -> int:
    print(f"wengert {__version__}")
    print(f"engine   {_loader.status()}")
    print(f"python   {platform.python_version()} ({platform.python_implementation()})")
    print(f"system   {platform.platform()}")
    for extra, library in EXTRAS.items():
        missing = f'not installed: pip install "wengert[{extra}]"'
        print(f"{library:<12} {'installed' if find_spec(library) else missing}")
    print(f"cache    {cache.status()}")
    return 0


# -- reading arguments ------------------------------------------------------------------------------------------------


def _number(written: str) -> tuple[str, float]:
    name, _, number = written.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{written!r} is not of the form x=2") from None


def _path(written: str) -> str:
    if not written:
        raise argparse.ArgumentTypeError("'' names no file and no folder")
    return written


def _reader(kind: type[float], fits: Callable[[float], bool], expected: str) -> Callable[[str], Any]:
    """What reads a number of an option."""

    def read(written: str) -> float:
        try:
            number = kind(written)
        except ValueError:
            number = math.nan
        if not fits(number):
            raise argparse.ArgumentTypeError(f"{written!r} is not {expected}")
        return number

    return read


_whole = _reader(int, lambda number: number >= 1, "a whole number from 1 up")
_step = _reader(int, lambda number: number >= 0, "a whole number from 0 up")
_seconds = _reader(float, lambda number: 0.0 < number <= DAY, "a number of seconds above 0, at most a day's")
_seed = _reader(int, lambda number: number == number, "a whole number")
_rate = _reader(float, lambda number: 0.0 < number < math.inf, "a positive number")
