"""The mutants of the engine are programs that differ from it, and every explanation is of one of them."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

from tools.qa.mutants import BEGIN, END, ENGINE, EXPLAINED, explanation, mutants, table

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mutation.md"


def test_a_change_of_every_kind() -> None:
    text = '''
"""A docstring."""
X: int = 1
def f(a, b=2):
    if a < b and a:
        return a + b
    a -= 1
    g(a)
    return -a if a is None else "text"
'''
    titles = [mutant.title for mutant in mutants(text)]
    assert titles == [
        "X: int = 1 -> X: int = 2",
        "if a < b and a: -> if not (a < b and a):",
        "if a < b and a: -> if a < b or a:",
        "if a < b and a: -> if a <= b and a:",
        "return a + b -> return None",
        "return a + b -> return a - b",
        "a -= 1 -> a += 1",
        "a -= 1 -> pass",
        "a -= 1 -> a -= 2",
        "g(a) -> pass",
        "return -a if a is None else 'text' -> return None",
        "return -a if a is None else 'text' -> return -a if a is not None else 'text'",
        "return -a if a is None else 'text' -> return +a if a is None else 'text'",
        "return -a if a is None else 'text' -> return -a if a is None else 'XXtext'",
    ]
    assert all(ast.parse(mutant.source) for mutant in mutants(text))


@pytest.mark.slow
def test_the_mutants_of_the_engine() -> None:
    text = ENGINE.read_text(encoding="utf-8")
    found = list(mutants(text, titles_only=True))
    assert len(found) > 300
    original = ast.unparse(ast.parse(text))
    assert all(mutant.source != original for mutant in itertools.islice(mutants(text), 20))
    for key in EXPLAINED:
        assert any(key in mutant.title for mutant in found), f"no mutant is explained by {key!r}"


def test_the_page_says_how_many_were_killed() -> None:
    text = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    (share,) = re.findall(r"^\d+ mutants, \d+ killed: (\d+\.\d) %", text, re.MULTILINE)
    assert float(share) >= 90.0
    assert "not explained" not in text


def test_the_table() -> None:
    found = list(mutants("a = b | c"))
    assert explanation(found[0]) == ""
    assert "| `a = b \\| c` → `pass` | **not explained** |" in table(found[:1], 10)
    assert table(found[:1], 10).startswith("10 mutants, 9 killed: 90.0 %.")
