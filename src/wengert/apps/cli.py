"""The command `wengert`.

``wengert demo`` trains a network of scalar Values on real handwritten digits; ``wengert draw "tanh(x*w + b)" x=2 w=-1
b=0.5`` draws a formula and its gradients; ``wengert info`` shows which engine runs and what is installed; ``wengert
cache`` shows how much machine code is stored on disk, and ``wengert cache clear`` removes it. Other distributions add
commands by entry points of the group "wengert.commands": each is a function that adds a parser to the given subparsers,
with a default `run`, a function that takes the parsed arguments and returns the exit status.
A user's mistake gives one sentence and exit status 2, never a traceback.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from typing import Any, NoReturn

from wengert import __version__, _loader
from wengert.apps.demo import SETTINGS, run, source
from wengert.apps.terminal import can_write, paint, say
from wengert.compiler.backends import BACKENDS, cache
from wengert.errors import NEEDS_COURSE, WengertError, to_install
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
    "terminal": "rich",
    "sklearn": "sklearn",
    "torch": "torch",
}  # extra -> the library that it installs
EXAMPLES = """\
examples:
  wengert demo                           learn to read 1,797 handwritten digits
  wengert demo spiral --epochs 50        a smaller data set, for half as long
  wengert draw "tanh(x*w)" x=2 w=-3      a formula, its numbers and gradients
  wengert draw "x**2 + 3*x" x=2 --steps  every step of its backward pass
  wengert check engine.py                what is right and wrong in your engine
  wengert COMMAND --help                 the options of a command

The documentation begins in docs/index.md of the repository."""
ELSEWHERE = {"check": NEEDS_COURSE, "course": NEEDS_COURSE}  # command of another distribution -> how to install it


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, or list the commands; return the exit status: 0, 2 for a user's mistake, 130 for Ctrl-C.

    It is 1 if the output cannot be written: its reader has ended, as in ``wengert demo | head -1``, or a disk is full.
    """
    parser = _parser()
    given, unknown = parser.parse_known_args(arguments)
    if given.command in ELSEWHERE and "run" not in given:
        parser.exit(2, f"wengert {given.command}: {ELSEWHERE[given.command]}\n")
    if unknown:
        minus = given.command == "draw" and not unknown[0].startswith("--")
        hint = "; a formula that begins with a minus needs a space before it: ' -x'" if minus else ""
        parser.exit(2, f"wengert {given.command}: unrecognized arguments: {' '.join(unknown)}{hint}\n")
    if given.command is None:
        parser.print_help()
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the name of a folder may have other characters
    try:
        status = int(given.run(given))
        if sys.stdout is not None:  # None if the output is closed, as by `>&-`
            sys.stdout.flush()
        return status
    except WengertError as error:
        print(f"{paint(f'wengert {given.command}:', 'wrong', sys.stderr)} {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"wengert {given.command}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"wengert {given.command}: cannot write the output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it exits
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="wengert",
        description="A scalar autograd engine that you can read in an evening.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wengert {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    demo = commands.add_parser("demo", help="train a network of scalar Values and draw the results")
    demo.add_argument("data", nargs="?", default="digits", choices=SETTINGS, help="the data set (default: digits)")
    demo.add_argument(
        "--out", type=_path, metavar="FOLDER", help="the folder to write to (default: wengert-demo/digits, and so on)"
    )
    demo.add_argument("--seed", type=_seed, default=0, help="the seed of all random numbers (default: 0)")
    demo.add_argument("--epochs", type=_whole, help="the number of passes through the examples")
    demo.add_argument("--batch-size", type=_whole, metavar="N", help="the number of examples in a step")
    demo.add_argument("--lr", type=_rate, help="the initial learning rate; it falls to a twentieth")
    demo.add_argument(
        "--program", action="store_true", help="only print the NumPy program that the network is compiled to"
    )
    demo.add_argument("--quiet", action="store_true", help="show no progress")
    demo.set_defaults(run=_demo)
    draw = commands.add_parser("draw", help="draw a formula with its numbers, and the gradient of every variable")
    draw.add_argument(
        "formula", help="such as 'tanh(x1*w1 + b)', or 'n = x1*w1 + b; n.tanh()'; ' -x' with a space first"
    )
    draw.add_argument(
        "numbers", nargs="*", default=[], type=_number, metavar="NAME=NUMBER", help="the values of the variables"
    )
    draw.add_argument(
        "-o", "--out", type=_path, metavar="FILE", help=f"write a picture: {', '.join(f'.{name}' for name in FORMATS)}"
    )
    draw.add_argument("--html", type=_path, metavar="FILE", help="write a page; with --steps, one that plays the steps")
    draw.add_argument(
        "--steps", action="store_true", help="print every step, forward and backward, in words and numbers"
    )
    draw.set_defaults(run=_draw)
    commands.add_parser("info", help="show which engine runs, and what is installed").set_defaults(run=_info)
    kept = commands.add_parser("cache", help="show where machine code is stored for later runs, and how much")
    kept.add_argument("action", nargs="?", choices=["clear"], help="clear: remove it")
    kept.set_defaults(run=_cache)
    for command in entry_points(group="wengert.commands"):
        command.load()(commands)
    for name in sorted(ELSEWHERE.keys() - commands.choices.keys()):
        commands.add_parser(name, help=ELSEWHERE[name], add_help=False)
    return parser


def _demo(given: argparse.Namespace) -> int:
    if given.program:
        print(source(given.data), end="")
        return 0
    folder = os.path.join("wengert-demo", given.data) if given.out is None else given.out
    return run(given.data, folder, given.seed, given.epochs, given.batch_size, given.lr, given.quiet)


def _draw(given: argparse.Namespace) -> int:
    """Print a formula as a tree, or its steps; or write it to files."""
    root = formulas.evaluate(given.formula, dict(given.numbers))
    root.backward()
    walk, picture = steps(root), draw(root)
    for path, write in ((given.out, picture.save), (given.html, walk.save if given.steps else picture.save)):
        if path is not None:
            try:
                write(path)
            except OSError as error:
                print(f"wengert draw: cannot write {path}: {error.strerror}", file=sys.stderr)
                return 2
            print(path)
    if given.steps and given.html is None:
        print("\n".join(map(str, walk)))
    elif given.out is None and given.html is None:
        text: str = tree(root, limit=None)
        if not can_write(text):  # use characters that the terminal has
            text = text.translate(str.maketrans("├│└─…", "||`-."))
        print(text)
    return 0


def _cache(given: argparse.Namespace) -> int:
    print(cache.clear() if given.action else f"cache    {cache.status()}")
    return 0


def _info(_: argparse.Namespace) -> int:
    lines = [
        f"wengert {__version__}",
        f"engine   {_loader.status()}",
        *([f"         to compile it: {_loader.status().remedy}"] if _loader.status().remedy else []),
        f"python   {platform.python_version()} ({platform.python_implementation()})",
        f"system   {platform.platform()}",
    ]
    for extra, library in EXTRAS.items():
        command = to_install(library)
        missing = f'not installed: {command} (the extra "{extra}")'
        lines.append(f"{library:<12} {version(command.split()[-1]) if find_spec(library) else missing}")
    lines.append(f"cache    {cache.status()}")
    say("\n".join(lines), {r"\bcompiled\b": "right", r"\binterpreted\b|\bnot installed\b": "look"})
    return 0


# -- reading arguments ------------------------------------------------------------------------------------------------


def _number(written: str) -> tuple[str, float]:
    name, _, number = written.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{written!r} does not have the form x=2") from None


def _path(written: str) -> str:
    if not written:
        raise argparse.ArgumentTypeError("'' is not the name of a file or folder")
    return written


def _reader(kind: type[float], fits: Callable[[float], bool], expected: str) -> Callable[[str], Any]:
    """Make a function that reads the number of an option."""

    def read(written: str) -> float:
        try:
            number = kind(written)
        except ValueError:
            number = math.nan
        if not fits(number):
            raise argparse.ArgumentTypeError(f"{written!r} is not {expected}")
        return number

    return read


_whole = _reader(int, lambda number: number >= 1, "an int >= 1")
_seed = _reader(int, lambda number: number == number, "an int")
_rate = _reader(float, lambda number: 0.0 < number < math.inf, "a positive number")
