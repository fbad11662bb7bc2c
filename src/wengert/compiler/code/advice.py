"""Says what to write instead, for functions that are not recorded as they stand.

The advice for a comparison, as of ``if x > 0``, is wrong for a sort or a format, though all of them take numbers out:
so it depends on what the line calls.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.code.known import is_standard
from wengert.errors import Line

__all__ = ["BY_NAME", "BY_TYPE", "OUTSIDE", "effect_of_call", "instead_of", "place_of"]

OUTSIDE = "do it outside of the function"
BY_NAME = "let the function call it by its name, or keep it in a plain list, dict or attribute"
BY_TYPE = "ask for a type by isinstance(x, float) or type(x) is float, or pass a string that says which path to take"
COMPARED = (
    "write wengert.maximum, wengert.where or wengert.softmax, which are the same for all numbers (and "
    "wengert.pick(values, index) where an integer chooses)"
)
# What a line may call, and what to write instead; the first that fits.
CALLED: tuple[tuple[str, str], ...] = (
    (
        r"\b(sorted|sort|argsort|lexsort|heapq|nlargest|nsmallest|heapify|heappush|heappop|heapreplace|median|"
        r"percentile|quantile|unique|partition|argpartition|rank)\b",
        "each order of the numbers is a program of its own: sort before the call, and pass the sorted list; of the "
        "largest and the smallest number, max(xs) and min(xs) are the same for all orders",
    ),
    (
        r"\b(bisect|bisect_left|bisect_right|insort|searchsorted|digitize|histogram)\b",
        "look up the place before the call, and pass it as an integer: wengert.pick(values, index) reads the item; or "
        "add up wengert.where(x > edge, 1.0, 0.0) over the edges",
    ),
    (
        r"\bround\(|\.round\(|\baround\(",
        "write round(x * 10.0) / 10.0, as round(x) without digits is the same for all numbers",
    ),
    (
        r"\b(isclose|allclose)\b",
        "write the comparison out: wengert.where(abs(x - y) <= tolerance, a, b)",
    ),
    (
        r"\b(argmax|argmin)\b|\.index\(",
        "write max(xs) or min(xs), or wengert.softmax for weights; or look up the place before the call, and pass it "
        "as an integer",
    ),
    (
        r"\bmath\.(gamma|modf|frexp|ldexp|nextafter|ulp|comb|perm|factorial|gcd|lcm|isqrt|trunc|sumprod)\b",
        "write it with functions that are recorded: math.exp(math.lgamma(x)) is gamma(x) for x > 0, x - math.floor(x) "
        "the fraction of a positive number; or call it before, and pass the result",
    ),
    (
        r"\b(Decimal|Fraction|complex|datetime|timedelta|Random|struct)\b",
        "compute with floats, and convert the result after the call",
    ),
    (
        r"""\bf["']|\bstr\(|\brepr\(|\bformat\(|\.format\(|["']\s*%|\bjson\b|\bpickle\b|\bhash\(|\btext\b""",
        "make the text after the call, from its result",
    ),
    (
        r"\bset\(|\bfrozenset\(|\bif\b.*\bin\b|\.count\(|\.get\(|\{",
        "look it up before the call, and pass what is there; integers that are part of the program are declared by "
        "wengert.compile(static=('n',))",
    ),
    (
        r"\brange\(|\bint\(|\blen\(",
        "pass the integer as an argument of its own, and declare it by wengert.compile(static=('n',))",
    ),
    (
        r"\bnp\.|\bnumpy\b|\bfft\b|\blinalg\b",
        "call this function of NumPy before, and pass its result; or write it with sums and products, and those of "
        "wengert (solve, det, inv, interp)",
    ),
)
CLOCKS = frozenset(
    ["time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "now", "today",
     "process_time_ns", "thread_time", "utcnow", "localtime", "gmtime", "strftime", "sleep", "default_timer"]
)  # fmt: skip
SAYS = frozenset(["print", "write", "writelines", "warn", "warn_explicit", "open", "flush", "input", "breakpoint"])
CHANCE = frozenset(["urandom", "getrandbits", "token_bytes", "uuid4", "uuid1"])
NUMPY = os.path.join(os.path.dirname(np.__file__), "")


def place_of(code: Any) -> str:
    """Name some code, with its line if it is the user's."""
    name = code.co_qualname.rpartition("<locals>.")[2]
    file = code.co_filename
    if is_standard(code) or file.startswith((NUMPY, "<")):
        module = os.path.basename(file).removesuffix(".py")
        return f"{name} of {module}" if not file.startswith("<") else name
    return f"{name} ({Line(file, code.co_firstlineno)})"


def effect_of_call(frame: Any, name: str) -> str:
    """Describe the effect of a C function that a frame calls: the line of the user's, what it calls there, and what to
    write instead.
    """
    called, inner = name, None
    while frame is not None and is_standard(frame.f_code):
        inner, frame = frame, frame.f_back
    if inner is not None:
        module = str(inner.f_globals.get("__name__"))
        called = f"{module}.{inner.f_code.co_qualname}"
    at = "" if frame is None else f" at {Line(frame.f_code.co_filename, frame.f_lineno)}"
    last = name.rpartition(".")[2]
    if called.startswith("logging."):
        why, instead = "which has side effects", "log outside of the function, with its result"
    elif last in CLOCKS:
        why, instead = "which gives another time at each call", f"{OUTSIDE}, around its call, or pass the time"
    elif last in CHANCE:
        why, instead = "which gives another number at each call", "draw outside of the function, and pass the numbers"
    elif last in SAYS:
        why, instead = "which has side effects", f"{OUTSIDE}, with its result"
    else:
        why, instead = "which has side effects or returns another result each time", f"{OUTSIDE}, and pass the result"
    return f"it calls {called}{at}, {why}: {instead}"


def instead_of(lines: Sequence[Any]) -> str:
    """Say what to write instead of lines that take numbers out of a recording, or compare them."""
    suggestions = []
    for line in lines:
        text = "" if line is None else line.source
        suggestions.append(next((advice for pattern, advice in CALLED if re.search(pattern, text)), COMPARED))
    return "; or ".join(dict.fromkeys(suggestions)) or COMPARED
