"""How many functions a warm call of a compiled function passes, counted where they are Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parent.parent.parent
MOST = 8
CASES = ["a float", "a named float", "a Value", "a list", "a list of Values", "a tuple", "a comparison"]
CASES += ["the other way of a comparison", "captured Values that moved", "a captured float that moved", "plain numbers"]

COUNT = """
import json, os, sys
import wengert
from wengert import Value

W, B, X, Y, SCALE = Value(0.7), Value(-0.2), Value(0.3), Value(0.4), 2.0
HERE = os.path.dirname(wengert.__file__)
EACH = {"Call._read_one", "Workspace._point"}  # bodies of the loops over the arguments and the inputs
LOOPS = {*EACH, "Captures.load"}  # what is called here is for one argument, input or captured place

def number(x): return (W * x + B).tanh() ** 2
def two(x): return (W * x[0] + B * x[1]).tanh() ** 2
def chosen(x): return (W * x + B).tanh() if W * x > 0.1 else B * x
def outside(x): return (W * x * SCALE + B).tanh()
def plain(x): return x * x + x

def nothing():
    pass

def move():
    W.data, B.data = 0.9, 0.1

def move_float():
    global SCALE
    SCALE = 3.0

CASES = {
    "a float": (number, lambda f: f(0.3), nothing),
    "a named float": (number, lambda f: f(x=0.3), nothing),
    "a Value": (number, lambda f: f(X), nothing),
    "a list": (two, lambda f: f([0.3, 0.4]), nothing),
    "a list of Values": (two, lambda f: f([X, Y]), nothing),
    "a tuple": (two, lambda f: f((0.3, 0.4)), nothing),
    "a comparison": (chosen, lambda f: f(0.3), nothing),
    "the other way of a comparison": (chosen, lambda f: f(-0.3), nothing),
    "captured Values that moved": (number, lambda f: f(0.3), move),
    "a captured float that moved": (outside, lambda f: f(0.3), move_float),
    "plain numbers": (plain, lambda f: f(0.3), nothing),
}

def name_of(frame):
    return frame.f_code.co_qualname if frame.f_code.co_filename.startswith(HERE) else ""

def is_step(frame):
    path = os.path.relpath(frame.f_code.co_filename, HERE)
    if not path.startswith("compiler") or path.endswith("memory.py"):  # whose functions are C
        return False
    above = None if name_of(frame) in EACH else frame.f_back
    while above is not None and name_of(above) not in LOOPS:
        above = above.f_back
    return above is None and name_of(frame) not in EACH

def passed(call, compiled):
    names = []
    def trace(frame, event, argument):
        if event == "call" and name_of(frame) and is_step(frame):
            names.append(name_of(frame))
    before = sys.gettrace()  # a measurement of coverage, perhaps
    sys.settrace(trace)
    try:
        result = call(compiled)
    finally:
        sys.settrace(before)
    return names, result

def numbers(result):
    for leaf in (W, B, X, Y):
        leaf.grad = 0.0
    if not isinstance(result, Value):
        return [result]
    result.backward()
    return [result.data, *(leaf.grad for leaf in (W, B, X, Y))]

answers = {}
for case, (function, call, change) in CASES.items():
    W.data, B.data, SCALE = 0.7, -0.2, 2.0
    compiled = wengert.compile(function)
    for _ in range(19):
        call(compiled)
    change()
    names, result = passed(call, compiled)
    answers[case] = names, numbers(result), numbers(call(function))
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """For each case: the functions that the twentieth call passes, what it gives, and what the function gives."""
    environment = {**os.environ, "WENGERT_INTERPRETED": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", COUNT]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counted: dict[str, Any] = json.loads(done.stdout)
    assert [*counted] == CASES
    return counted


@pytest.mark.parametrize("case", CASES)
def test_a_warm_call_passes_eight_functions(answers: dict[str, Any], case: str) -> None:
    names, numbers, wanted = answers[case]
    assert numbers == pytest.approx(wanted, rel=1e-12)
    assert len(names) <= MOST, f"a call with {case} passes {len(names)}: {', '.join(names)}"


def test_the_page_names_them_in_their_order(answers: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "call-to-reason.md").read_text(encoding="utf-8")
    section = page.split("## The functions of a warm call")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE) == answers["a comparison"][0]
