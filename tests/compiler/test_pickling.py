"""A compiled function is pickled as any function is, by its name; so pools of processes take it."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Value

pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # no engine takes part

w = Value(2.0)


def plain(x: float) -> Value:
    return (w * x).tanh()


@wengert.compile
def decorated(x: float) -> Value:
    return (w * x).tanh()


under_another_name = wengert.compile(plain)


class Model:
    """Has compiled methods of each kind."""

    def __init__(self, factor: float) -> None:
        self.factor = Value(factor)

    def __call__(self, x: float) -> Value:
        return self.factor * x

    @wengert.compile
    def method(self, x: float) -> Value:
        return self.factor * x

    @staticmethod
    @wengert.compile
    def of_none(x: float) -> Value:
        return w * x

    @classmethod
    @wengert.compile
    def of_class(cls, x: float) -> Value:
        return w * x

    class Inner:
        """Has one as well."""

        @wengert.compile
        def method(self, x: float) -> Value:
            return w * x

    borrowed = wengert.compile(plain)


def again(x: Any, protocol: int) -> Any:
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_by_its_name(protocol: int) -> None:
    for f in (decorated, under_another_name, Model.method, Model.of_none, Model.Inner.method):
        assert again(f, protocol) is f
        assert again(f.mean, protocol) == f.mean
        assert again([f, {"f": f}], protocol) == [f, {"f": f}]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_method_with_its_object(protocol: int) -> None:
    model = Model(3.0)
    got, inner, of_class = again((model.method, Model.Inner().method, Model.of_class), protocol)
    assert got.compiled is Model.method
    assert got.instance.factor is not model.factor
    assert got(0.5).data == model.method(0.5).data == 1.5
    assert inner.compiled is Model.Inner.method
    assert of_class(0.5).data == 1.0
    assert again(model.method.mean, protocol)([0.5, 1.5]).data == 3.0


def test_copies_of_a_method() -> None:
    model = Model(3.0)
    twin, other = copy.copy(model.method), copy.deepcopy(model.method)
    assert twin.instance is model
    assert other.instance is not model
    other.instance.factor.data = 5.0
    assert (twin(0.5).data, other(0.5).data, model.method(0.5).data) == (1.5, 2.5, 1.5)


def test_what_has_no_name_says_what_to_do() -> None:
    @wengert.compile
    def local(x: float) -> Value:
        return w * x

    nameless = [local, wengert.compile(plain), wengert.compile(lambda x: w * x), wengert.compile(Model(1.0))]
    for f in (*nameless, local.mean, Model(1.0).borrowed.compiled.__deepcopy__({})):
        with pytest.raises(pickle.PicklingError, match=r"by its name\. Decorate a function at the top level"):
            pickle.dumps(f)


def test_a_name_that_is_taken_is_not_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another process would run another function."""
    f, method = decorated, Model(1.0).method
    monkeypatch.setitem(globals(), "decorated", plain)
    with pytest.raises(pickle.PicklingError, match="by its name"):
        pickle.dumps(f)
    monkeypatch.setattr(Model, "method", plain)
    with pytest.raises(pickle.PicklingError, match="it is not a method of Model"):
        pickle.dumps(method)


POOLS = """
import multiprocessing, sys
import numpy as np
import wengert
from wengert import Value

@wengert.compile
def cubed(x):
    return x * x * x

scaled = wengert.compile(lambda x: 3.0 * x)

class Model:
    def __init__(self, factor):
        self.factor = Value(factor)

    @wengert.compile
    def number(self, x):
        return (self.factor * x).data

if __name__ == "__main__":
    xs = [0.5 * n for n in range(12)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(cubed, xs) == [x * x * x for x in xs]
        assert pool.map(scaled, xs) == [3.0 * x for x in xs]
        assert pool.map(Model(2.0).number, xs) == [2.0 * x for x in xs]
        (found,) = pool.map(cubed.map, [np.array(xs)])
        assert found.tolist() == [x * x * x for x in xs]
        assert cubed(2.0) == 8.0
    print("done")
"""


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=[pytest.mark.nightly] * (how == "forkserver"))  # what it pickles is what spawn does
        for how in multiprocessing.get_all_start_methods()
    ],
)
def test_pools_of_processes(how: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(POOLS)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", how],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONWARNINGS": "error"}, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("done\n", "")
