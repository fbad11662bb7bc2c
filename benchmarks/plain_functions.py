"""Derivatives of plain functions, which are written for numbers alone, beside HIPS autograd, JAX and PyTorch.

    python -m benchmarks.plain_functions [--only NAME ...] [--rounds 9] [--page FILE.md] [--counts FILE.md]

Each function is given to each library as it is, with its numbers in a list: then the result is right, or an error, or
wrong and nothing says so. What a library can do is timed, and five functions once more as they are rewritten with its
own functions. All results are compared before anything is timed; calls take turns in one process on one thread. JAX and
PyTorch compute in double precision; a call of JAX ends when the result is there, and is compiled by `jax.jit` if it can
be.

`--counts` runs every function that the tests of plain functions and of packages have, and counts for which of them
derivatives are right, compiled and not, and what they said before there was this. Into the documentation:

    python -m benchmarks.plain_functions --page docs/benchmarks-derivatives.md --counts docs/derivatives.md
"""

from __future__ import annotations

import argparse
import colorsys
import itertools
import math
import os
import statistics
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import wengert
from benchmarks.report import duration, into_page, machine, ratio
from benchmarks.timing import in_turns, off, table

__all__ = ["TASKS", "main"]

CLOSE = 1e-9  # as near as all gradients are to that of Wengert, relative to the largest number
NEAR = 1e-5  # as near as that is to difference quotients
Numbers = Sequence[Any]


# -- functions ---------------------------------------------------------------------------------------------------------


def formula(p: Numbers) -> Any:
    """A formula with `math`."""
    return math.exp(-p[0] * p[1]) * math.sin(p[2]) + math.sqrt(p[0])


def formula_of(m: Any, p: Numbers) -> Any:
    """The same with the functions of a library."""
    return m.exp(-p[0] * p[1]) * m.sin(p[2]) + m.sqrt(p[0])


def option(p: Numbers) -> Any:
    """The price of a call by Black and Scholes, with a normal distribution of `statistics`."""
    spot, volatility, years = 100.0 * p[0], p[1], p[2]
    d = (math.log(spot / 95.0) + (0.02 + volatility**2 / 2) * years) / (volatility * math.sqrt(years))
    normal = statistics.NormalDist()
    return spot * normal.cdf(d) - 95.0 * math.exp(-0.02 * years) * normal.cdf(d - volatility * math.sqrt(years))


def option_of(m: Any, p: Numbers) -> Any:
    """The same with the functions of a library."""
    spot, volatility, years = 100.0 * p[0], p[1], p[2]
    d = (m.log(spot / 95.0) + (0.02 + volatility**2 / 2) * years) / (volatility * m.sqrt(years))
    low = d - volatility * m.sqrt(years)
    below, above = (0.5 * (1.0 + m.erf(x / math.sqrt(2.0))) for x in (d, low))
    return spot * below - 95.0 * m.exp(-0.02 * years) * above


def haversine(p: Numbers) -> Any:
    """A distance on a sphere."""
    lat1, lon1, lat2 = (math.radians(10.0 * x) for x in p)
    a = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(lon1 / 2) ** 2
    return 6371.0 * 2.0 * math.asin(math.sqrt(a))


def haversine_of(m: Any, p: Numbers) -> Any:
    """The same with the functions of a library."""
    lat1, lon1, lat2 = (10.0 * x * (math.pi / 180.0) for x in p)
    a = m.sin((lat2 - lat1) / 2) ** 2 + m.cos(lat1) * m.cos(lat2) * m.sin(lon1 / 2) ** 2
    return 6371.0 * 2.0 * m.asin(m.sqrt(a))


def pendulum(p: Numbers) -> Any:
    """Forty steps of a pendulum."""
    angle, speed = p[0], p[1]
    for _ in range(40):
        speed = speed - 0.05 * math.sin(angle) * p[2]
        angle = angle + 0.05 * speed
    return angle


def pendulum_of(m: Any, p: Numbers) -> Any:
    """The same with the functions of a library."""
    angle, speed = p[0], p[1]
    for _ in range(40):
        speed = speed - 0.05 * m.sin(angle) * p[2]
        angle = angle + 0.05 * speed
    return angle


def valley(p: Numbers) -> Any:
    """Rosenbrock's valley, with operators alone."""
    return sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 for a, b in itertools.pairwise(p))


def valley_of(m: Any, p: Numbers) -> Any:
    """The same."""
    return valley(p)


def filled(p: Numbers) -> Any:
    """An array of NumPy that is filled."""
    terms = np.zeros(3)
    for n, x in enumerate(p):
        terms[n] = x * x
    return float(terms.sum())


def standardized(p: Numbers) -> Any:
    """An array of NumPy from a list."""
    x = np.array(p)
    return float(((x - x.mean()) ** 3).sum() / np.std(x) ** 3)


def saturation(p: Numbers) -> Any:
    """How saturated a colour is, by `colorsys`."""
    return colorsys.rgb_to_hls(p[0] / 3, p[1] / 3, p[2] / 3)[2]


def integral(p: Numbers) -> Any:
    """An integral by SciPy."""
    from scipy.integrate import simpson

    return float(simpson(np.exp(np.array(p))))


def distance(p: Numbers) -> Any:
    """A distance on the ellipsoid of the Earth, by geographiclib."""
    from geographiclib.geodesic import Geodesic

    return Geodesic.WGS84.Inverse(10.0 * p[0], 20.0 * p[1], 10.0 * p[2], 95.0)["s12"]


def lightness(p: Numbers) -> Any:
    """How light a colour looks, by hsluv."""
    import hsluv

    return hsluv.rgb_to_lch([x / 3 for x in p])[0]


def payment(p: Numbers) -> Any:
    """What a loan costs a month, by numpy-financial."""
    import numpy_financial

    return float(numpy_financial.pmt(p[0] / 100, 100 * p[1], 1000 * p[2]))


class Task(NamedTuple):
    """A function, and how it is rewritten with the functions of a library."""

    title: str
    function: Callable[[Numbers], Any]
    rewritten: Callable[[Any, Numbers], Any] | None = None


TASKS: dict[str, Task] = {
    "formula": Task("a formula with `math`", formula, formula_of),
    "option": Task("an option, with `statistics.NormalDist`", option, option_of),
    "haversine": Task("a distance on a sphere, with `math`", haversine, haversine_of),
    "pendulum": Task("a pendulum, 40 steps with `math.sin`", pendulum, pendulum_of),
    "valley": Task("Rosenbrock's valley, with operators alone", valley, valley_of),
    "stdev": Task("`statistics.stdev`", lambda p: statistics.stdev(p)),
    "saturation": Task("`colorsys.rgb_to_hls`", saturation),
    "filled": Task("an array of NumPy that is filled", filled),
    "standardized": Task("`np.array`, `mean`, `np.std`", standardized),
    "integral": Task("`scipy.integrate.simpson`", integral),
    "lightness": Task("`hsluv.rgb_to_lch`", lightness),
    "payment": Task("`numpy_financial.pmt`", payment),
    "distance": Task("`geographiclib`, `Inverse`", distance),
}
POINT = [0.7, 1.3, 1.9]


# -- libraries ---------------------------------------------------------------------------------------------------------


def by_autograd(function: Callable[[Numbers], Any]) -> Callable[[], list[float]]:
    """HIPS autograd."""
    from autograd import grad

    gradient = grad(function)
    return lambda: [float(x) for x in gradient(list(POINT))]


def by_jax(function: Callable[[Numbers], Any], compiled: bool = False) -> Callable[[], list[float]]:
    """JAX, by operations or compiled by `jax.jit`."""
    import jax

    jax.config.update("jax_enable_x64", True)
    gradient = jax.grad(function)
    gradient = jax.jit(gradient) if compiled else gradient
    return lambda: [float(x) for x in gradient(list(POINT))]


def by_torch(function: Callable[[Numbers], Any]) -> Callable[[], list[float]]:
    """PyTorch."""
    import torch

    torch.set_num_threads(1)

    def call() -> list[float]:
        leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in POINT]
        result = function(leaves)
        if not isinstance(result, torch.Tensor):
            raise TypeError(f"the result is {type(result).__name__}, and has no gradient")
        result.backward()
        return [0.0 if x.grad is None else float(x.grad) for x in leaves]

    return call


def libraries() -> dict[str, Any]:
    """What a function is rewritten with."""
    import autograd.numpy
    import autograd.scipy.special
    import jax
    import torch

    of = types.SimpleNamespace
    numpy = autograd.numpy
    return {
        "HIPS autograd": of(
            exp=numpy.exp, log=numpy.log, sqrt=numpy.sqrt, sin=numpy.sin, cos=numpy.cos, asin=numpy.arcsin,
            erf=autograd.scipy.special.erf,
        ),
        "JAX": of(
            exp=jax.numpy.exp, log=jax.numpy.log, sqrt=jax.numpy.sqrt, sin=jax.numpy.sin, cos=jax.numpy.cos,
            asin=jax.numpy.arcsin, erf=jax.scipy.special.erf,
        ),
        "PyTorch": of(
            exp=torch.exp, log=torch.log, sqrt=torch.sqrt, sin=torch.sin, cos=torch.cos, asin=torch.asin, erf=torch.erf
        ),
    }  # fmt: skip


def by_jitted(function: Callable[[Numbers], Any]) -> Callable[[], list[float]]:
    """JAX, compiled if it can be."""
    import jax

    chosen: list[Callable[[], list[float]]] = []

    def call() -> list[float]:
        if not chosen:
            compiled = by_jax(function, compiled=True)
            try:
                compiled()
                chosen.append(compiled)
            except jax.errors.JAXTypeError:
                chosen.append(by_jax(function))
        return chosen[0]()

    return call


PEERS: dict[str, Callable[[Callable[[Numbers], Any]], Callable[[], list[float]]]] = {
    "HIPS autograd": by_autograd,
    "JAX": by_jitted,
    "PyTorch": by_torch,
}


def said(error: Exception) -> str:
    """An error in a few words."""
    text = str(error).split("\n")[0].split(". ")[0].split(": traced")[0]
    return f"{type(error).__name__}: {text[:75]}".replace("|", "\\|")


def tried(call: Callable[[], list[float]], want: list[float]) -> str:
    """Call it: empty if the gradient is right, else what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = call()
    except Exception as error:
        return said(error)
    return "" if off(got, want) < CLOSE else f"**wrong**, and nothing says so: {[float(f'{x:.3g}') for x in got]}"


# -- times -------------------------------------------------------------------------------------------------------------


def checked(
    name: str, gradient: Callable[[list[float]], list[float]], function: Callable[[Numbers], Any]
) -> list[float]:
    """The gradient, beside difference quotients.

    Raises:
        SystemExit: they are not near each other.
    """
    from tests.derivatives.quotients import differences

    got = [float(x) for x in gradient(list(POINT))]
    if not off(got, differences(function, POINT)) < NEAR:
        raise SystemExit(f"{name}: {got} is not the gradient")
    return got


def times(names: Sequence[str], rounds: int) -> str:
    """Both tables: functions as they are, and rewritten."""
    of = libraries()
    rows, rewritten, can = [], [], Counter[str]()
    for name in names:
        title, function, written = TASKS[name]
        gradient, compiled = wengert.grad(function), wengert.compile(wengert.grad(function))
        want = checked(name, gradient, function)
        compiled.prepare(list(POINT))
        for _ in range(40):  # as many as are checked
            if off([*compiled(list(POINT))], want) >= CLOSE or off([*gradient(list(POINT))], want) >= CLOSE:
                raise SystemExit(f"{name}: the compiled gradient is another one")
        calls: dict[str, Callable[[], Any]] = {
            "f": lambda function=function: function(POINT),
            "grad": lambda gradient=gradient: gradient(POINT),
            "compiled": lambda compiled=compiled: compiled(POINT),
        }
        refused = {}
        for peer, by in PEERS.items():
            call = by(function)
            refused[peer] = tried(call, want)
            if not refused[peer]:
                calls[peer] = call
                can[peer] += 1
        of_rewritten: dict[str, Callable[[], Any]] = {}
        if written is not None:
            for peer, by in {**PEERS, "JAX": by_jax}.items():
                of_rewritten[peer] = by(lambda p, written=written, peer=peer: written(of[peer], p))
            of_rewritten["JAX, jit"] = by_jax(lambda p, written=written: written(of["JAX"], p), compiled=True)
            for peer, call in of_rewritten.items():
                if wrong := tried(call, want):
                    raise SystemExit(f"{name}, rewritten for {peer}: {wrong}")
        taken = in_turns({**calls, **{f"{peer}, rewritten": call for peer, call in of_rewritten.items()}}, rounds)
        print(f"{name}: {', '.join(f'{key} {duration(each)}' for key, each in taken.items())}", file=sys.stderr)

        def cell(key: str, taken: dict[str, float] = taken) -> str:
            return f"{duration(taken[key])} ({ratio(taken[key] / taken['f'])})"

        peers = [refused[peer] or cell(peer) for peer in PEERS]
        rows.append([title, duration(taken["f"]), cell("grad"), cell("compiled"), *peers])
        if of_rewritten:
            columns = [f"{peer}, rewritten" for peer in ("HIPS autograd", "JAX", "JAX, jit", "PyTorch")]
            rewritten.append([title, duration(taken["f"]), cell("grad"), cell("compiled"), *map(cell, columns)])
    counts = ", ".join(f"{peer} {can[peer]}" for peer in PEERS)
    head = ["function", "`f`", "`grad(f)`", "`compile(grad(f))`"]
    text = (
        f"As they are, Wengert differentiates {len(rows)} of {len(rows)}, {counts}.\n\n{table([*head, *PEERS], rows)}\n"
    )
    if rewritten:
        columns = ["HIPS autograd", "JAX", "JAX, `jit`", "PyTorch"]
        text += "\nRewritten with the functions of each library; for Wengert they are as above:\n\n"
        text += f"{table([*head, *columns], rewritten)}\n"
    return text


# -- counts ------------------------------------------------------------------------------------------------------------

# What `grad` of the tests' functions raised before plain functions were recorded for their derivatives.
A_FLOAT = "`OperandError`: a Value is not a float"
OTHERWISE = {
    "`TypeError` of `statistics`: can't convert type 'Value'": [
        "mean", "stdev", "pvariance", "harmonic_mean", "variance about a number", "NormalDist.from_samples",
    ],
    "`TypeError` of NumPy or SciPy: not supported for the input types": [
        "np.std", "np.var mean", "np.interp", "np.result_type", "erf of SciPy", "expit", "gammaln", "fixed_quad",
    ],
    "`OperandError`: `v % w` of a Value": ["rgb_to_hsv", "rgb_to_hls", "unwrap"],
    "its own `TypeError`": ["only floats"],
    "right": ["loan", "quantiles", "lambdify, pieces"],
}  # fmt: skip
BEFORE = {name: text for text, names in OTHERWISE.items() for name in names}


def groups() -> dict[str, dict[str, tuple[Callable[[Any], Any], list[float]]]]:
    """The functions of the tests, by what they are of."""
    from tests.derivatives import test_packages, test_plain_functions

    plain = {name: (f, test_plain_functions.POINTS[0]) for name, f in test_plain_functions.FUNCTIONS.items()}
    packages = {name: (f, points[0]) for name, (f, points) in test_packages.FUNCTIONS.items()}
    names = [*plain]
    starts = [names.index(name) for name in ("exp", "mean", "np.exp", "erf of SciPy", "rgb_to_hsv")]
    titles = ["`math` and builtins", "`statistics`", "NumPy", "SciPy", "whole programs, `colorsys`"]
    found = {
        title: {name: plain[name] for name in names[start:end]}
        for title, start, end in zip(titles, starts, [*starts[1:], len(names)], strict=True)
    }
    return {**found, "other people's packages": packages}


def counts() -> str:
    """The table of functions: plain, derivative, and what it took before."""
    from tests.derivatives.quotients import differences

    rows, total = [], [0, 0, 0]
    for title, functions in groups().items():
        right, before = [0, 0], Counter[str]()
        for name, (function, point) in functions.items():
            before[BEFORE.get(name, A_FLOAT)] += 1
            want = differences(function, point, (1e-3, 3e-4, 1e-4))
            for n, derivative in enumerate((wengert.grad(function), wengert.compile(wengert.grad(function)))):
                got = [[*derivative(list(point))] for _ in range(3)]
                right[n] += all(off(each, want) < NEAR for each in got)
        took = "; ".join(f"{count} {text}" for text, count in before.most_common())
        total = [x + y for x, y in zip(total, [len(functions), *right], strict=True)]
        rows.append([title, str(len(functions)), *map(str, right), took])
    rows.append(["all", *map(str, total), ""])
    head = ["functions of", "there are", "`grad(f)` is right", "`compile(grad(f))` is right", "`grad(f)` before"]
    return f"{table(head, rows)}\n"


def main(argv: list[str] | None = None) -> int:
    """Compare, time, and write the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*TASKS], help="only these")
    parser.add_argument("--rounds", type=int, default=9, help="of which the median is told")
    parser.add_argument("--page", type=Path, help="a page between whose marks the times go")
    parser.add_argument("--counts", type=Path, help="a page between whose marks the counts go")
    options = parser.parse_args(argv)
    if options.page or not options.counts:
        load = os.getloadavg()[0]
        text = times(options.only or [*TASKS], options.rounds)
        packages = machine("autograd", "jax", "torch", "numpy", "scipy", "geographiclib", "hsluv", "numpy-financial")
        text = f"Measured {packages}; load {load:.1f} before it began.\n\n{text}"
        print(text)
        if options.page:
            into_page(options.page, text, "plain")
    if options.counts:
        counted = counts()
        print(counted)
        into_page(options.counts, counted, "functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
