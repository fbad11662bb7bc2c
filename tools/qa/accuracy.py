"""How accurate each row of the table is: `python -m tools.qa.accuracy [--page docs/accuracy.md] [--quick] [ROW ...]`.

With `--compiled` the same of what compiled functions run: machine code of one number and in lanes, and NumPy, with the
reverse sweep's partial derivatives; it ends with 1 if any is worse than is promised of the engine. Beside it second
derivatives of the rows of one operand, those of the engine, over what a neighbouring operand would change. With
`--twice` these of further rows, in all their operands, and the derivatives in the shapes of distributions.

Each operation of one or two operands is computed at points over the whole range of floats, and its value and partial
derivatives are compared with the truth in 60 digits (oracles.py), in units in the last place; PyTorch's and JAX's at
the same points. Operations on many numbers are compared, size by size, with the bound of a backward-stable algorithm.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, nan
from pathlib import Path
from typing import Any

from tools.qa.oracles import DIGITS, ROWS, Truth, jax_rows, mp, mpmath, torch_rows, truths
from wengert import Value, grad, hessian, ops

__all__ = ["LIMIT", "MANY", "TWICE", "Worst", "limit", "many", "measured", "our_answers", "points", "twice", "ulps"]

LIMIT = 4.0  # of a partial derivative, and of a value that the processor does not give
EXACT = ("neg", "abs", "sign", "relu", "minimum", "maximum", "where", "clip", "floor", "round", "stop_gradient")
ROUNDED = ("add", "sub", "mul", "div", "remainder", "sqrt", "square", "reciprocal", "leaky_relu")  # once
MANY = ("sum", "mean", "dot", "prod", "norm", "logsumexp")
SIZES = (2, 10, 100, 1000, 10_000)
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"

LARGEST = 2.0**1023
CENTRES = (1.0, 2.0, 3.0, 0.5, 0.25, 10.0, math.pi / 2, math.pi, math.e, 1.4616321449683622, 1.2784645427610738, 0.7517)
SHAPES = (0.1, 0.5, 1.0, 2.5, 9.0, 63.5, 64.0, 150.5, 2000.0)
ORDERS = (0.0, 1.0, 2.0, 3.0, 5.0, 12.0)  # of polygamma
SLOW = {"lgamma": 6, "digamma": 8, "polygamma": 10, "erfc": 2, "normal_cdf": 2, "gelu": 2, "erf": 2}  # in many digits


# -- where -----------------------------------------------------------------------------------------------------------


def spread(rng: random.Random) -> float:
    """A float of any exponent, subnormal ones too, and either sign."""
    return math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(-1074, 1024)) * rng.choice((-1.0, 1.0))


def line(rng: random.Random, count: int) -> Iterator[float]:
    """Some `count` floats: every exponent in turn, the ranges where functions turn, and ever nearer to some numbers."""
    step = max(1, 8192 // count)
    for exponent in range(-1074, 1024, step):
        for sign in (-1.0, 1.0):
            yield math.ldexp(rng.uniform(1.0, 2.0), exponent) * sign
    for bound in (2.0, 6.0, 40.0, 760.0):
        for _ in range(count // 10):
            yield rng.uniform(-bound, bound)
    for centre in CENTRES:
        for k in range(1, 54, max(1, 12 * 54 // count)):
            for sign in (-1.0, 1.0):
                yield sign * centre * (1.0 + math.ldexp(rng.uniform(0.5, 1.0), -k))
                yield sign * centre * (1.0 - math.ldexp(rng.uniform(0.5, 1.0), -k))


def plane(name: str, rng: random.Random, count: int) -> Iterator[tuple[float, float]]:
    """Some `count` pairs: of any exponents, of like ones, ordinary ones, and such that overflow or vanish together."""
    for _ in range(count // 4):
        yield spread(rng), spread(rng)
        x = spread(rng)
        yield x, x * rng.choice((-1.0, 1.0)) * math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(-60, 60))
        yield rng.uniform(-4.0, 4.0), rng.uniform(-4.0, 4.0)
        edge = math.ldexp(rng.uniform(1.0, 2.0), rng.choice((rng.randrange(-1074, -1000), rng.randrange(960, 1024))))
        yield x, rng.choice((edge / x, x / edge))  # the product, or the quotient, is near the edge of the range
    for _ in range(count if name == "pow" else 0):
        x = 1.0 + math.ldexp(rng.uniform(-1.0, 1.0), -rng.randrange(1, 53)) if rng.random() < 0.5 else abs(spread(rng))
        if x not in (0.0, 1.0, inf):
            yield x, rng.uniform(-750.0, 715.0) / math.log(x)
        yield rng.uniform(-9.0, 9.0), float(rng.randrange(-330, 330))
        yield x, rng.choice((-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0))
    for _ in range(count // 2 if name == "elu" else 0):
        yield rng.uniform(-750.0, 1.0), spread(rng)


def shaped(shapes: int, rng: random.Random, count: int) -> Iterator[tuple[float, ...]]:
    """Operands of a distribution of one or two shapes: near its mean, and in both tails."""
    for _ in range(count):
        a, b = rng.choice(SHAPES), rng.choice(SHAPES)
        size = 10.0 ** rng.uniform(-12.0, 0.0)
        if shapes == 1:
            yield (
                a,
                rng.choice((a * size, a + 40.0 * rng.random() * math.sqrt(a), abs(rng.gauss(a, 3.0 * math.sqrt(a))))),
            )
        else:
            mean = a / (a + b)
            x = rng.gauss(mean, 3.0 * math.sqrt(mean * (1.0 - mean) / (a + b + 1.0)))
            yield a, b, min(max(rng.choice((x, size, 1.0 - size, rng.random())), 1e-12), 1.0 - 1e-12)


def points(row: ops.Op, count: int, seed: int = 1) -> Iterator[tuple[float, ...]]:
    """Operands all over the range of floats, some `count` of them."""
    rng = random.Random(f"{row.name} {seed}")
    count //= SLOW.get(row.name, 1)
    if row.arity == 1:
        found: Iterator[tuple[float, ...]] = ((x,) for x in line(rng, count))
    elif row.name == "polygamma":
        found = ((rng.choice(ORDERS), x) for x in line(rng, count))
    elif row.shapes:
        found = shaped(len(row.shapes), rng, count)
    elif row.arity == 2:
        found = plane(row.name, rng, count)
    else:
        found = ((rng.choice((0.0, 1.0)), spread(rng), spread(rng)) for _ in range(count))
    for xs in found:
        if all(map(math.isfinite, xs)):
            yield xs


# -- how far off ------------------------------------------------------------------------------------------------------


def ulps(actual: float, exact: Any, terms: Sequence[Any] = ()) -> float:
    """The error in units in the last place of the truth; of the largest of the terms that cancel, if there are any."""
    if actual != actual:
        return inf
    size = max(map(abs, (exact, *terms)))
    unit = math.ulp(min(float(min(size, mpmath.mpf(LARGEST))), LARGEST))
    top = mpmath.mpf(2) ** 1024  # what stands for an infinity
    if abs(exact) >= top - mpmath.mpf(2) ** 970:  # rounds to an infinity
        exact = top * (1 if exact > 0 else -1)
    number = mpmath.mpf(actual) if math.isfinite(actual) else top * (1 if actual > 0 else -1)
    return float(abs(number - exact) / unit)


@dataclass
class Worst:
    """The largest error of a value or of a partial derivative, and where; `normal`: without any subnormal number."""

    ulp: float = 0.0
    at: tuple[float, ...] = ()
    normal: float = 0.0
    count: int = 0

    def see(self, error: float, xs: tuple[float, ...], normal: bool) -> None:
        self.count += 1
        if error > self.ulp:
            self.ulp, self.at = error, xs
        if normal:
            self.normal = max(self.normal, error)


def real(function: Callable[..., Any] | None, xs: Sequence[Any]) -> Any:
    """The truth as a real finite number, or None."""
    if function is None:
        return None
    try:
        exact = function(*xs)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    if isinstance(exact, mpmath.mpc):
        return None
    exact = mpmath.mpf(exact)
    return exact if exact == exact and abs(exact) != mpmath.inf else None


def listed(partials: Any) -> list[Any]:
    return list(partials) if isinstance(partials, (tuple, list)) else [partials]


Answers = Callable[[list[tuple[float, ...]]], list[list[float]]]


def our_answers(row: ops.Op) -> Answers:
    def answers(at: list[tuple[float, ...]]) -> list[list[float]]:
        found = []
        for xs in at:
            value = row.value(*xs)
            found.append([value, *listed(row.partials(value, *xs))])
        return found

    return answers


def torch_answers(row: ops.Op) -> Answers | None:
    import torch

    function = torch_rows().get(row.name)
    if function is None or row.arity is None or row.name in ("elu", "leaky_relu"):  # their slope is no tensor
        return None

    def answers(at: list[tuple[float, ...]]) -> list[list[float]]:
        columns = [torch.tensor(column, dtype=torch.float64, requires_grad=True) for column in zip(*at, strict=True)]
        out = function(*columns)
        if out.requires_grad:
            out.backward(torch.ones_like(out))
        slopes = [[nan] * len(at) if c.grad is None else c.grad.tolist() for c in columns]
        return [list(numbers) for numbers in zip(out.tolist(), *slopes, strict=True)]

    return answers


def jax_answers(row: ops.Op) -> Answers | None:
    import jax
    import numpy as np

    function = jax_rows().get(row.name)
    if function is None or row.arity is None:
        return None
    both = jax.jit(jax.vmap(lambda *xs: (function(*xs), jax.grad(function, argnums=tuple(range(len(xs))))(*xs))))

    def answers(at: list[tuple[float, ...]]) -> list[list[float]]:
        value, slopes = both(*[np.array(column) for column in zip(*at, strict=True)])
        return [list(numbers) for numbers in zip(value.tolist(), *[s.tolist() for s in slopes], strict=True)]

    return answers


def compiled_answers(row: ops.Op, kind: str) -> Answers:
    """What compiled functions give: by a kind of `KERNELS`. Orders and shapes are part of the program."""
    fixed = len(row.shapes) or int(row.name == "polygamma")

    def columns(xs: Sequence[tuple[float, ...]], orders: tuple[float, ...]) -> list[list[float]]:
        from wengert.compiler.derive import reverse
        from wengert.compiler.ir import BATCH, Access, Array, Compute, Program

        given = [*zip(*xs, strict=True)][fixed:]
        inputs = [Array(f"x{k}", (BATCH,), "input") for k in range(len(given))]
        operands = [("in", k) for k in range(len(given))]
        expr = (row.name, *[("const", order) for order in orders], *operands)
        out = Array("out", (BATCH,), "value")
        step = Compute(out, (BATCH,), [Access(array, 0, array.strides) for array in inputs], expr)
        program = Program([*inputs, out], [step], {"out": out})
        made = KERNELS[kind](program, reverse(program, tuple([a.name for a in inputs])), inputs, given)
        return made[:1] + [[nan] * len(xs)] * fixed + made[1:]

    def answers(at: list[tuple[float, ...]]) -> list[list[float]]:
        if not fixed:
            return [list(numbers) for numbers in zip(*columns(at, ()), strict=True)]
        found = {}
        for orders in {xs[:fixed] for xs in at}:
            some = [xs for xs in at if xs[:fixed] == orders]
            found |= dict(zip(some, zip(*columns(some, orders), strict=True), strict=True))
        return [list(found[xs]) for xs in at]

    return answers


def _by_code(width: int) -> Callable[..., list[list[float]]]:
    """Machine code in lanes; of 0 those of the machine."""

    def run(program: Any, back: Any, inputs: list[Any], given: list[Any]) -> list[list[float]]:
        import numpy as np

        from wengert.compiler.backends.native.layout import module
        from wengert.compiler.backends.native.machine import compiled, linked, native_width

        made = module(program, back, inputs, width or native_width())
        code = linked(compiled(made.text))
        count = len(given[0])
        arrays = [np.array(x, float) for x in given]
        left = [np.zeros(count) for _ in range(1 + len(inputs))]
        room = np.zeros(made.work(count) + 8)
        work = room[-room.ctypes.data % 64 // 8 :]
        of_arrays, of_left = (np.array([x.ctypes.data for x in some], np.int64) for some in (arrays, left))
        none = np.zeros(1)
        code.forward_backward(count, 1.0, *[x.ctypes.data for x in (of_arrays, none, none, of_left, work)])
        return [x.tolist() for x in left]

    return run


def _by_numpy(program: Any, back: Any, inputs: list[Any], given: list[Any]) -> list[list[float]]:
    import numpy as np

    from wengert.compiler.backends.numpy import NumPyKernel

    with np.errstate(all="ignore"):
        kernel = NumPyKernel(program, back, inputs)
        outputs, slopes = kernel.forward_backward([np.array(x, float) for x in given], 1.0, kernel.buffers())
        return [np.broadcast_to(x, len(given[0])).tolist() for x in (outputs["out"], *slopes)]


KERNELS = {"one number": _by_code(1), "in lanes": _by_code(0), "NumPy": _by_numpy}


def measured(
    row: ops.Op, truth: Truth, at: Sequence[tuple[float, ...]], who: dict[str, Answers | None]
) -> dict[str, list[Worst]]:
    """The largest errors of each in `who` at these points: of the value, then of each partial derivative."""
    functions = [truth.value, *truth.partials]
    kept, exacts = [], []
    with mp.workdps(DIGITS):
        for xs in at:
            numbers = [mpmath.mpf(x) for x in xs]
            value = real(truth.value, numbers)
            if value is None:
                continue
            cancel = [f(*numbers) if f else () for f in (truth.value_terms, truth.terms)]
            kept.append(xs)
            exacts.append([(value, cancel[0]), *[(real(f, numbers), cancel[1]) for f in truth.partials]])
        found = {}
        least = sys.float_info.min
        for name, answers in who.items():
            if answers is None:
                continue
            worst = found[name] = [Worst() for _ in functions]
            for xs, given, wanted in zip(kept, answers(kept), exacts, strict=True):
                ordinary = all(x == 0.0 or abs(x) >= least for x in xs)
                for record, actual, (exact, terms) in zip(worst, given, wanted, strict=True):
                    if exact is not None:
                        record.see(ulps(actual, exact, terms), xs, ordinary and (not exact or abs(exact) >= least))
    return found


def limit(name: str, quantity: int) -> float:
    """What the error of a row's value (quantity 0) or of a partial derivative may be, in units in the last place."""
    return LIMIT if quantity or name not in (*EXACT, *ROUNDED) else 0.0 if name in EXACT else 0.5


# -- operations on many numbers ---------------------------------------------------------------------------------------


@dataclass
class Many:
    """The largest errors of an operation on n numbers, as multiples of 2**-53 times what is summed, and the bound."""

    name: str
    size: int
    value: float = 0.0
    partial: float = 0.0
    torch: float = nan

    @property
    def bound(self) -> float:
        """The multiple that rounding every step allows: Higham, Accuracy and Stability, 2002, chapters 3 and 4."""
        n = self.size
        steps = {"sum": n - 1, "mean": n, "dot": n + 1, "prod": n - 1, "norm": n + 2, "logsumexp": 2 * n + 4}[self.name]
        return steps / (1.0 - steps * 2.0**-53)


def many(name: str, size: int, trials: int = 4) -> Many:
    """Measure an operation on `size` numbers (`size` products, of a dot), of three kinds."""
    row, found = ops.BY_NAME[name], Many(name, size)
    torch_row = torch_rows().get(name) if find_spec("torch") else None
    rng = random.Random(f"{name} {size}")
    for trial in range(trials):
        xs = [_draw(rng, name, trial) for _ in range(2 * size + 1 if name == "dot" else size)]
        value = row.value(*xs)
        partials = listed(row.partials(value, *xs))
        with mp.workdps(DIGITS):
            exact, scale, slopes, scales = _many_truth(name, [mpmath.mpf(x) for x in xs])
            unit, least = mpmath.mpf(2) ** -53, mpmath.mpf(2) ** -1074
            found.value = max(found.value, float(abs(value - exact) / (unit * scale)))
            for slope, true, size_of_it in zip(partials, slopes, scales, strict=True):
                found.partial = max(found.partial, float(abs(slope - true) / max(unit * size_of_it, least)))
            if torch_row is not None:
                import torch

                theirs = torch_row(*[torch.tensor(x, dtype=torch.float64) for x in xs]).item()
                found.torch = max(0.0 if trial == 0 else found.torch, float(abs(theirs - exact) / (unit * scale)))
    return found


def _draw(rng: random.Random, name: str, trial: int) -> float:
    """Numbers of a like size, of either sign; all of one sign; of very different sizes."""
    if name == "prod":
        return rng.choice((-1.0, 1.0)) * rng.uniform(0.7, 1.4)
    if name == "logsumexp":
        return rng.uniform(-1.0, 1.0) * (1.0, 10.0, 700.0)[trial % 3]
    return (rng.uniform(-1.0, 1.0), rng.uniform(0.0, 1.0), rng.gauss(0.0, 1.0) * 10 ** rng.uniform(-9, 9))[trial % 3]


def _many_truth(name: str, xs: list[Any]) -> tuple[Any, Any, list[Any], list[Any]]:
    """The value and the size of its error's unit, then the partials and theirs."""
    n, one = len(xs), mpmath.mpf(1)
    if name in ("sum", "mean"):
        share = one if name == "sum" else one / n
        return mpmath.fsum(xs) * share, mpmath.fsum(map(abs, xs)) * share, [share] * n, [share] * n
    if name == "dot":
        products = [w * x for w, x in zip(xs[: n // 2], xs[n // 2 : -1], strict=True)] + [xs[-1]]
        slopes = [*xs[n // 2 : -1], *xs[: n // 2], one]
        return mpmath.fsum(products), mpmath.fsum(map(abs, products)), slopes, slopes
    if name == "prod":
        product = mpmath.fprod(xs)
        return product, abs(product), [product / x for x in xs], [abs(product / x) for x in xs]
    if name == "norm":
        length = mpmath.sqrt(mpmath.fsum(x * x for x in xs))
        return length, length, [x / length for x in xs], [abs(x) / length for x in xs]
    greatest = max(xs)
    value = greatest + mpmath.log(mpmath.fsum(mpmath.exp(x - greatest) for x in xs))
    slopes = [mpmath.exp(x - value) for x in xs]
    scale = 1 + abs(greatest)
    return value, scale, slopes, [s * (scale + abs(x - value)) for s, x in zip(slopes, xs, strict=True)]


# -- second derivatives -----------------------------------------------------------------------------------------------


def second(row: ops.Op, x: float) -> float:
    """The second derivative of a row of one operand, as the engine differentiates its partial."""
    value = Value(x)
    slope = row.graph_partials(row(value), value)
    if not isinstance(slope, Value):
        return 0.0
    slope.backward()
    return value.grad


def second_error(row: ops.Op, x: float) -> float | None:
    """Its error over its own size and what a relative change of the operand by 1 would make, in 2**-53: of a result as
    good as that of a neighbouring operand it is a small number. None where there is nothing to compare with.
    """
    size = abs(math.log10(abs(x)))
    with mp.workdps(130 + int(2.5 * size) + 700 * (1.0 < abs(x) < 800.0)):  # as what is left of a slope near 1 counts
        known, at = truths()[row.name], mpmath.mpf(x)
        if real(known.value, [at]) is None:
            return None
        truth, step = known.partials[0], min(abs(at), 1) / mpmath.mpf(10) ** 30
        near = [real(truth, [at + k * step]) for k in (-1, 0, 1)]
        if None in near:
            return None
        exact = (near[2] - near[0]) / (2 * step)
        change = (near[2] - 2 * near[1] + near[0]) / step**2 * at
        actual = second(row, x)
        if not abs(exact) < mpmath.mpf(LARGEST) or abs(near[1]) > mpmath.mpf(LARGEST):
            return None
        least = mpmath.mpf(sys.float_info.min)
        if actual != actual:
            return inf
        return float(abs(mpmath.mpf(actual) - exact) / max(abs(exact) + abs(change), least) * mpmath.mpf(2) ** 53)


def second_partials(row: ops.Op, xs: Sequence[float]) -> dict[tuple[int, int], float]:
    """The second derivatives of a row, each once, as the engine finds them; shapes are operands as the others are."""
    matrix = hessian(lambda values: row(*values))([*xs])
    return {(i, j): matrix[i][j] for i in range(len(xs)) for j in range(i, len(xs))}


def first_partials(row: ops.Op, xs: Sequence[float]) -> dict[tuple[int, ...], float]:
    """The derivatives of a row by their operands, those in shapes too."""
    return {(i,): slope for i, slope in enumerate(grad(lambda values: row(*values))([*xs]))}


def exact_partials(row: ops.Op, xs: Sequence[float], places: Sequence[tuple[int, ...]]) -> dict[Any, tuple[Any, Any]]:
    """First and second derivatives by differences of the value in many digits, each with what relative changes of the
    operands by 1 would make of it. To be called at the precision that is wanted.
    """
    value, at = truths()[row.name].value, [mpmath.mpf(x) for x in xs]
    steps = [(abs(x) or 1) * mpmath.mpf(10) ** -24 for x in at]

    def derivative(place: Sequence[int], by: dict[int, int]) -> Any:
        if place:
            k, *rest = place
            sides = [derivative(rest, {**by, k: by.get(k, 0) + side}) for side in (1, -1)]
            return (sides[0] - sides[1]) / (2 * steps[k])
        return value(*[x + by.get(k, 0) * step for k, (x, step) in enumerate(zip(at, steps, strict=True))])

    return {
        place: (
            derivative(place, {}),
            sum(abs(derivative((*place, k), {}) * at[k]) for k in range(len(at))),
        )
        for place in places
    }


def twice(name: str, count: int) -> dict[tuple[int, ...], tuple[float, tuple[float, ...]]]:
    """By its operands the largest error of each second derivative of a row, and of a first one in a shape, over its
    size and the change by relative changes of the operands, in 2**-53; and where. Of hypot 1 / h is added to its size.
    """
    row, rng = ops.BY_NAME[name], random.Random(f"{name} twice")
    worst: dict[tuple[int, ...], tuple[float, tuple[float, ...]]] = {}
    for xs in _twice_at(row, rng, count):
        found: dict[tuple[int, ...], float] = {**second_partials(row, xs)}
        found |= {place: slope for place, slope in first_partials(row, xs).items() if place[0] < len(row.shapes)}
        with mp.workdps(160):
            exact = exact_partials(row, xs, [*found])
            for place, actual in found.items():
                truth, change = exact[place]
                noise = abs(truths()[name].value(*map(mpmath.mpf, xs))) / mpmath.mpf(10) ** 80
                for k in place:
                    noise /= abs(mpmath.mpf(xs[k])) or 1
                if abs(truth) <= noise >= abs(actual):  # 0, or as good as that beside the value
                    worst[place] = max(worst.get(place, (-1.0, ())), (0.0, tuple(xs)))
                    continue
                if name == "hypot":  # 1 / h, of which x * x / h**3 is subtracted
                    change += 1 / truths()[name].value(*map(mpmath.mpf, xs))
                scale = max(abs(truth) + change, mpmath.mpf(sys.float_info.min) * 2**53)
                error = float(abs(mpmath.mpf(actual) - truth) / scale * 2**53) if actual == actual else inf
                worst[place] = max(worst.get(place, (-1.0, ())), (error, tuple(xs)))
    return worst


def _twice_at(row: ops.Op, rng: random.Random, count: int) -> Iterator[tuple[float, ...]]:
    """Ordinary operands of a row, next to where it turns, and small and large ones."""
    size = lambda: 10.0 ** rng.uniform(-8.0, 8.0)  # noqa: E731  (a draw)
    for k in range(count):
        if row.shapes:
            xs = next(shaped(len(row.shapes), rng, 1))
            yield tuple([min(x, 150.5) if i < len(row.shapes) else x for i, x in enumerate(xs)])
        elif row.name == "sinc":
            yield (rng.choice((size(), rng.uniform(-6.0, 6.0), round(size()) * (1.0 + size() * 1e-9))),)
        elif row.arity == 1:
            yield (rng.choice((size(), rng.uniform(0.0, 1.0), 1.0 / math.e + rng.uniform(-1e-3, 1e-3))),)
        elif row.name == "xlog1py":
            yield rng.gauss(0.0, 1.0), rng.choice((size(), rng.uniform(-1.0, 1.0), size() * 1e-9, size() * 1e-9 - 1.0))
        elif row.name == "xlogy":
            yield rng.choice((size(), -size())), rng.choice((size(), rng.uniform(0.0, 2.0)))
        else:
            yield tuple([rng.choice((-1.0, 1.0)) * (size() if k % 2 else rng.uniform(0.1, 1.0)) for _ in range(2)])


TWICE = ("xlogy", "xlog1py", "entr", "sinc", "hypot", "gammainc", "gammaincc", "gamma_pdf", "betainc", "beta_pdf")
TWICE_BEGIN, TWICE_END = "<!-- second derivatives: begin -->", "<!-- second derivatives: end -->"


def twice_table(names: Sequence[str], count: int, say: Callable[[str], None]) -> str:
    """The errors of second derivatives, and of those in shapes, as Markdown."""
    lines = ["| operation | derivative | 2⁻⁵³ | where |", "|---|---|--:|---|"]
    for name in TWICE:
        if not names or name in names:
            say(f"{name}, twice")
            letters = _operands(ops.BY_NAME[name])
            for place, (error, at) in sorted(twice(name, count).items()):
                order = f"d/d{letters[place[0]]}" + (f" d/d{letters[place[1]]}" if len(place) > 1 else "")
                lines.append(f"| `{name}` | {order} | {figure(error)} | {', '.join(f'{x:.6g}' for x in at)} |")
    return "\n".join(lines) + "\n"


# -- the page ---------------------------------------------------------------------------------------------------------


def figure(error: float) -> str:
    """Three digits; ∞ for an infinity or nan where the truth is a number."""
    return "∞" if error == inf else "" if error != error else f"{error:.3g}" if error < 1e4 else f"{error:.0e}"


def _operands(row: ops.Op) -> str:
    """What its operands are called, each by a letter."""
    return (
        "x"
        if row.arity == 1
        else {"atan2": "yx", "polygamma": "nx"}.get(row.name, "".join(row.shapes) + "x" if row.shapes else "xy")
    )


def rows_of(row: ops.Op, found: dict[str, list[Worst]]) -> Iterator[str]:
    """The lines of a row: of its value, then of each partial derivative that is not exact everywhere."""
    names = _operands(row)
    for k, ours in enumerate(found["Wengert"]):
        if ours.count == 0:
            continue
        theirs = [figure(found[peer][k].normal) if peer in found else "" for peer in ("PyTorch", "JAX")]
        at = ", ".join(f"{x:.6g}" for x in ours.at) or "everywhere"
        which = f"d/d{names[k - 1]}" if k else "value"
        yield f"| `{row.name}` | {which} | {figure(ours.ulp)} | {at} | {' | '.join(theirs)} |"


def tables(names: Sequence[str], count: int, say: Callable[[str], None]) -> str:
    """Everything as Markdown."""
    lines = ["| operation | value or derivative | Wengert | where | PyTorch | JAX |", "|---|---|--:|---|--:|--:|"]
    total = 0
    for row in ROWS:
        if row.arity not in (1, 2) or row.name in EXACT or (names and row.name not in names):
            continue
        say(row.name)
        with mp.workdps(DIGITS):
            truth = truths()[row.name]
        who = {"Wengert": our_answers(row)}
        who |= {"PyTorch": torch_answers(row)} if find_spec("torch") else {}
        who |= {"JAX": jax_answers(row)} if find_spec("jax") else {}
        found = measured(row, truth, list(points(row, count)), who)
        total += found["Wengert"][0].count
        lines += rows_of(row, found)
    lines += ["", f"{total:,} points in all. {', '.join(f'`{name}`' for name in EXACT)} are exact.", ""]
    lines += ["| operation | numbers | value | partials | bound | PyTorch's value |", "|---|--:|--:|--:|--:|--:|"]
    for name in MANY:
        for size in SIZES:
            if not names or name in names:
                say(f"{name} {size}")
                one = many(name, size)
                value, partial, theirs = figure(one.value), figure(one.partial), figure(one.torch)
                lines.append(f"| `{name}` | {size:,} | {value} | {partial} | {one.bound:,.0f} | {theirs} |")
    return "\n".join(lines) + "\n"


def compiled_tables(names: Sequence[str], count: int, say: Callable[[str], None]) -> tuple[str, list[str]]:
    """The errors of what compiled functions run, and of second derivatives; which are beyond what is promised."""
    kinds = [*KERNELS]
    lines = [f"| operation | of the | engine | {' | '.join(kinds)} |", f"|---|---|--:|{'--:|' * len(kinds)}"]
    beyond = []
    for row in ROWS:
        if row.arity not in (1, 2) or (names and row.name not in names):
            continue
        say(row.name)
        with mp.workdps(DIGITS):
            truth = truths()[row.name]
        who = {"engine": our_answers(row)} | {kind: compiled_answers(row, kind) for kind in kinds}
        found = measured(row, truth, list(points(row, count)), who)
        for k in range(1 + row.arity):
            if found["engine"][k].count:
                which = f"with respect to {_operands(row)[k - 1]}" if k else "value"
                lines.append(f"| `{row.name}` | {which} | {' | '.join(figure(found[who][k].ulp) for who in found)} |")
                beyond += [
                    f"{row.name}, {which}, {kind}: {figure(worst[k].ulp)} at {worst[k].at}"
                    for kind, worst in found.items()
                    if not worst[k].ulp <= limit(row.name, k)
                ]
    lines += ["", "| second derivative of | 2⁻⁵³ | at |", "|---|--:|--:|"]
    for row in ROWS:
        if row.arity == 1 and row.name not in EXACT and (not names or row.name in names):
            say(f"{row.name}, twice")
            some = [(second_error(row, xs[0]) or 0.0, xs[0]) for xs in points(row, count // 8) if xs[0]]
            error, at = max(some)
            lines.append(f"| `{row.name}` | {figure(error)} | {at:.6g} |")
    return "\n".join(lines) + "\n", beyond


def main(argv: list[str] | None = None) -> int:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description="The error of every operation against 60 digits, beside PyTorch's.")
    parser.add_argument("rows", nargs="*", help="only these operations")
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go")
    parser.add_argument("--quick", action="store_true", help="few points: some seconds")
    parser.add_argument("--compiled", action="store_true", help="of what compiled functions run")
    parser.add_argument("--twice", action="store_true", help="of second derivatives, and of those in shapes")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.rows) - {row.name for row in ROWS})
    if unknown:
        parser.error(f"no operations: {', '.join(unknown)}")
    say, count = lambda name: print(name, file=sys.stderr, flush=True), 500 if options.quick else 3000
    if options.compiled:
        text, beyond = compiled_tables(options.rows, count, say)
        print(text, *beyond, sep="\n")
        return bool(beyond)
    if options.twice:
        text = twice_table(options.rows, count // 25, say)
        if options.page:
            into_page(options.page, TWICE_BEGIN, TWICE_END, text)
        print(text)
        return 0
    text = tables(options.rows, count, say)
    if options.page:
        into_page(options.page, BEGIN, END, text)
    print(text)
    return 0


def into_page(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between the marks of a page.

    Raises:
        ValueError: the page has no marks.
    """
    old = page.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1:
        raise ValueError(f"{page} has no place for the tables: expected {begin} and {end}, once each")
    page.write_text(f"{old.split(begin)[0]}{begin}\n{text}{end}{old.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
