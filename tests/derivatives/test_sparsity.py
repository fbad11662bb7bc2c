"""Patterns of Jacobians and Hessians, beside dense derivatives at random points, and numbers that carry sets."""

from __future__ import annotations

import math
import operator
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value, sparsity
from wengert.errors import ArgumentError, MissingExtraError
from wengert.ops import Operators

np = pytest.importorskip("numpy", reason="needs NumPy")
pytest.importorskip("scipy.sparse", reason="needs SciPy")
pytestmark = [pytest.mark.once]  # a recording and its arrays: the engine takes no part in a pattern

# -- the oracle: the plain function is run on numbers that know what they depend on -----------------------------------

COMPARED = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
FLAT = {"floor", "sign", "round", "stop_gradient"}
LINEAR = {"add", "sub", "neg", "sum", "mean", "relu", "abs", "maximum", "minimum", "where", "clip", "max", "min"}


class Tracked(Operators):
    """A number with the inputs that it depends on, and the pairs of inputs that interact in it."""

    def __init__(self, number: float, inputs: frozenset[int], pairs: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.number, self.inputs, self.pairs = number, inputs, pairs

    def _operated(self, name: str, *operands: Any) -> Any:
        return apply(name, operands)

    def _apply_op(self, op: Any, operands: Any) -> Any:
        return apply(op.name, operands)


for name, compare in COMPARED.items():
    setattr(Tracked, f"__{name}__", lambda x, y, compare=compare: compare(x.number, plain(y)))


def plain(x: Any) -> float:
    return x.number if isinstance(x, Tracked) else float(x)


def inputs_of(x: Any) -> frozenset[int]:
    return x.inputs if isinstance(x, Tracked) else frozenset()


def apply(name: str, operands: Any) -> Any:
    number = wengert.ops.BY_NAME[name].value(*map(plain, operands))
    if name in FLAT:
        return number
    if name == "where":
        operands = operands[1:]
    sets = [inputs_of(x) for x in operands]
    pairs = {pair for x in operands if isinstance(x, Tracked) for pair in x.pairs}
    for i, j in curved(name, operands):
        pairs |= {pair for a in sets[i] for b in sets[j] for pair in ((a, b), (b, a))}
    return Tracked(number, frozenset().union(*sets), frozenset(pairs))


def curved(name: str, operands: Any) -> list[tuple[int, int]]:
    """The pairs of operands whose second derivative is not 0 everywhere, as a calculus book has them."""
    if name in LINEAR:
        return []
    if name == "mul":
        return [(0, 1)]
    if name == "div":
        return [(0, 1), (1, 1)]
    if name == "pow" and operands[1] in (0.0, 1.0):
        return []
    return [(i, j) for i in range(len(operands)) for j in range(len(operands))]


def expected(f: Callable[..., Any], x: list[float], order: int = 1) -> Any:
    result = f([Tracked(number, frozenset([n])) for n, number in enumerate(x)])
    if order == 2:
        pattern = np.zeros((len(x), len(x)), bool)
        for pair in result.pairs if isinstance(result, Tracked) else ():
            pattern[pair] = True
        return pattern
    return np.array([[n in inputs_of(y) for n in range(len(x))] for y in result])


# -- the structures ---------------------------------------------------------------------------------------------------


def bent(choose: random.Random) -> Callable[..., Any]:
    """A smooth function of some numbers: linear in some of them, curved in others."""
    kind, c = choose.randrange(6), choose.uniform(0.5, 2.0)

    def f(*xs: Any) -> Any:
        a, b = xs[0], xs[-1]
        return [
            c * a - b, a * b, wengert.sin(a) + c * b, a / (2.0 + b * b), a**2 * b, wengert.exp(a - c * b)
        ][kind]  # fmt: skip

    return f


def banded(choose: random.Random) -> Any:
    width, f = choose.choice([1, 1, 2, 3]), bent(choose)
    return lambda x: [f(*x[i : i + width + 1]) for i in range(len(x) - width)]


def arrow(choose: random.Random) -> Any:
    f, g = bent(choose), bent(choose)
    return lambda x: [*[f(y, x[-1]) for y in x[:-1]], sum(g(y, x[-1]) for y in x)]


def block(choose: random.Random) -> Any:
    size, f = choose.choice([2, 3]), bent(choose)
    blocks = lambda x: [x[i : i + size] for i in range(0, len(x), size)]  # noqa: E731
    return lambda x: [f(a, b) for part in blocks(x) for a in part for b in part]


def tree(choose: random.Random) -> Any:
    parents = [choose.randrange(n) for n in range(1, 24)]
    f = bent(choose)
    return lambda x: [f(x[n + 1], x[parent]) for n, parent in enumerate(parents[: len(x) - 1])]


def lagrangian(choose: random.Random) -> Any:
    f, g, half = bent(choose), bent(choose), choose.randrange(3, 6)

    def residuals(x: Any) -> Any:
        states, multipliers = x[:half], x[half : 2 * half - 1]
        steps = [states[i + 1] - f(states[i], x[-1]) for i in range(half - 1)]
        return [m * s for m, s in zip(multipliers, steps, strict=False)] + [g(s, s) for s in states]

    return residuals


def scattered(choose: random.Random) -> Any:
    places = [(choose.randrange(6), choose.randrange(6)) for _ in range(12)]
    f = bent(choose)
    return lambda x: [f(x[i], x[j]) for i, j in places]


def choices(choose: random.Random) -> Any:
    f, level = bent(choose), choose.uniform(-0.5, 0.5)
    one = lambda a, b: wengert.where(a > level, f(a, b), b * 2.0) + wengert.floor(a)  # noqa: E731
    two = lambda a, b: wengert.maximum(a, b * b) + wengert.relu(a) * wengert.stop_gradient(b)  # noqa: E731
    return lambda x: [(one if i % 2 else two)(x[i], x[(i + 2) % len(x)]) for i in range(len(x))]


def ragged(choose: random.Random) -> Any:
    rows = [[(choose.randrange(6), choose.uniform(0.5, 2.0)) for _ in range(choose.randrange(1, 6))] for _ in range(7)]
    f, weighted = bent(choose), choose.random() < 0.5
    return lambda x: [sum((c if weighted else 1.0) * f(x[i], x[(i + 1) % 6]) for i, c in row) for row in rows]


def extremes(choose: random.Random) -> Any:
    f = bent(choose)
    return lambda x: [wengert.max([f(y, z) for z in x[:i]]) for i, y in enumerate(x) if i]


def rk4(choose: random.Random) -> Any:
    steps, h = choose.randrange(5, 20), 0.1

    def slope(state: Any, control: Any) -> Any:
        return [state[1], control - wengert.sin(state[0]) * 0.5]

    def moved(state: Any, k: Any, by: float) -> Any:
        return [s + by * d for s, d in zip(state, k, strict=True)]

    def residuals(x: Any) -> Any:
        state, seen = [x[0], x[1]], []
        for step in range(steps):
            control = x[2 + step] if step + 2 < len(x) else 0.3
            a = slope(state, control)
            b = slope(moved(state, a, h / 2), control)
            c = slope(moved(state, b, h / 2), control)
            d = slope(moved(state, c, h), control)
            state = [s + h / 6 * (p + 2 * q + 2 * r + t) for s, p, q, r, t in zip(state, a, b, c, d, strict=True)]
            seen.append(state[0])
        return seen

    return residuals


def garch(choose: random.Random) -> Any:
    returns = [choose.gauss(0.0, 1.0) for _ in range(choose.randrange(20, 40))]

    def residuals(x: Any) -> Any:
        h, terms = x[3], []
        for r in returns:
            h = x[0] * x[0] + 0.1 * x[1] * r * r + 0.5 * x[2] * h + 1.0
            terms.append(wengert.log(h * h) + r * r / (h * h))
        return terms

    return residuals


def filtered(choose: random.Random) -> Any:
    """A recurrence whose input is a number of its own at each step, with memory of two steps."""
    f = bent(choose)

    def residuals(x: Any) -> Any:
        a, b, seen = 0.1, 0.2, []
        for i in range(len(x)):
            a, b = 0.5 * b + f(x[i], x[i]) * 0.1, a + x[i] * 0.1
            seen.append(a)
        return seen

    return residuals


def oscillator(choose: random.Random) -> Any:
    """The position depends on what bends the velocity only an iteration later."""
    steps, h = choose.randrange(30, 60), 0.1

    def residuals(x: Any) -> Any:
        position, velocity, seen = x[0], x[1], []
        for step in range(steps):
            force = x[2 + step % (len(x) - 2)]
            position, velocity = position + h * velocity, velocity + h * (force - position**3)
            seen.append(position)
        return [*seen, position * 2.0]

    return residuals


STRUCTURES = (
    *(banded, arrow, block, tree, lagrangian, scattered, choices, ragged, extremes, rk4, garch, filtered, oscillator),
)  # fmt: skip
SEEDS = 16  # with 13 structures 208 cases


def size_of(structure: Any, choose: random.Random) -> int:
    if structure is garch:
        return 4
    if structure is filtered:
        return choose.randrange(25, 40)
    return 2 * choose.randrange(6, 12) if structure is not block else 6 * choose.randrange(1, 3)


@pytest.mark.sampled(16)  # so that each structure is among them
@pytest.mark.parametrize(("seed", "structure"), [(seed, s) for s in STRUCTURES for seed in range(SEEDS)])
def test_patterns_are_those_of_sets_and_have_every_nonzero(seed: int, structure: Any) -> None:
    choose = random.Random(f"{structure.__name__} {seed}")
    f = structure(choose)
    x = [choose.uniform(-1.0, 1.0) for _ in range(size_of(structure, choose))]

    def squares(x: Any) -> Any:
        return sum((y * y if n % 2 else 2.0 * y) for n, y in enumerate(f(x)))

    found = sparsity(f)(x).toarray()
    assert np.array_equal(found, expected(f, x))
    second = sparsity(squares, order=2)(x).toarray()
    assert np.array_equal(second, expected(squares, x, order=2))
    for _ in range(2):
        x = [choose.uniform(-1.0, 1.0) for _ in x]
        assert not (np.array(wengert.jacobian(f)(x)) != 0.0)[~found].any()
        assert not (np.array(wengert.hessian(squares)(x)) != 0.0)[~second].any()


@pytest.mark.parametrize(("room", "dense"), [(1, 0), (40, 0), (40, 1 << 26)])
@pytest.mark.parametrize("structure", [arrow, lagrangian, ragged, rk4])
def test_a_large_pattern_is_made_in_pieces(
    structure: Any, room: int, dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits as if there were little memory: in pieces, by sorting, by filling a matrix."""
    for name, limit in {"ROOM": room, "DENSE": dense}.items():
        monkeypatch.setattr(f"wengert.compiler.derive.sparsity.{name}", limit)
    test_patterns_are_those_of_sets_and_have_every_nonzero(3, structure)


# -- what is known only when a call is made ---------------------------------------------------------------------------


def chosen(x: Any, i: int, j: int) -> Any:
    return [wengert.pick(x, i) * x[0], wengert.pick(x[2:5], j) ** 2 + x[1]]


def test_an_integer_argument_may_choose_any_item() -> None:
    x = [0.3, -0.2, 0.7, 1.1, 0.4, 0.9]
    found = sparsity(chosen)(x, 2, 1).toarray()
    assert found.astype(int).tolist() == [[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0]]
    for i in range(6):
        for j in range(3):
            assert not (np.array(wengert.jacobian(chosen)(x, i, j)) != 0.0)[~found].any()


def test_two_choices_by_one_integer_go_together_and_by_two_do_not() -> None:
    x = [0.3, -0.2, 0.7, 1.1, 0.4, 0.9]
    together = sparsity(lambda x, i: wengert.pick(x[:3], i) * wengert.pick(x[3:], i), order=2)(x, 1).toarray()
    apart = sparsity(lambda x, i, j: wengert.pick(x[:3], i) * wengert.pick(x[3:], j), order=2)(x, 1, 2).toarray()
    assert np.array_equal(apart, np.kron([[0, 1], [1, 0]], np.ones((3, 3))))
    assert np.array_equal(together[:3, 3:] & np.eye(3, dtype=bool), np.eye(3, dtype=bool))
    assert not (together & ~apart).any()


def test_each_branch_that_is_seen_adds_to_the_pattern() -> None:
    def f(x: Any) -> Any:
        return [x[0] * x[1] if x[0] > 0.0 else x[2], x[1] if x[1] > 5.0 else 2.0 * x[0]]

    pattern = sparsity(f)
    seen = [pattern(x).toarray().astype(int).tolist() for x in ([1.0, 2.0, 3.0], [-1.0, 2.0, 3.0], [-1.0, 7.0, 3.0])]
    assert seen == [[[1, 1, 0], [1, 0, 0]], [[1, 1, 1], [1, 0, 0]], [[1, 1, 1], [1, 1, 0]]]
    assert pattern([1.0, 2.0, 3.0]).toarray().astype(int).tolist() == seen[-1]
    assert sparsity(f)([-1.0, 2.0, 3.0]).toarray().astype(int).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_what_only_a_comparison_reads_interacts_with_nothing() -> None:
    found = sparsity(lambda x: x[0] ** 2 if x[1] * x[2] > 0.0 else x[1], order=2)([1.0, 2.0, 3.0])
    assert found.toarray().astype(int).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]


# -- programs made by hand, of forms that few recordings have ---------------------------------------------------------


def hessian_pattern(program: Any, inputs: Any) -> Any:
    """That of the sum of the outputs, as the Jacobian's of its gradient; the program is changed."""
    from wengert.compiler.derive import gradient, jacobian_pattern
    from wengert.compiler.ir import Array, Compute, verify, whole

    out, total = program.outputs["out"], Array("total", (), "value")
    program.arrays.append(total)
    program.steps.append(Compute(total, out.shape, [whole(out)], ("in", 0), "sum" if out.shape else ""))
    program.outputs["out"] = total
    gradient(program, [array.name for array in inputs])
    verify(program)
    return jacobian_pattern(program, inputs).symmetric


def test_padding_and_masks_of_an_expression_carry_nothing() -> None:
    from wengert.compiler.derive import jacobian_pattern
    from wengert.compiler.ir import ZERO, Access, Array, Compute, Program, verify, whole

    mask = np.array([[True, True, False], [True, False, False]])
    x, padded = Array("x", (6,), "input"), Array("padded", (2, 3), "value", mask=mask)
    square = ("where", ("mask", mask), ("mul", ("in", 0), ("in", 0)), ZERO)
    fill = Compute(padded, (2, 3), [Access(x, 0, (3, 1))], square)
    either = Array("either", (2, 3), "value")
    choose = Compute(
        either, (2, 3), [whole(padded), Access(x, 5, (-3, -1))], ("where", ("mask", mask), ("in", 0), ("in", 1))
    )
    total = Array("total", (2,), "value")  # the padding is 0, so what it is multiplied by does not count
    add = Compute(total, (2, 3), [whole(padded), Access(x, 3, (0, 1))], ("mul", ("in", 0), ("in", 1)), "sum")
    program = Program([x, padded, either, total], [fill, choose, add], {"out": total})
    verify(program)
    assert jacobian_pattern(program, [x]).lists() == [[0, 1, 3, 4], [3]]
    assert hessian_pattern(program, [x]).lists() == [[0, 3], [1, 4], [], [0, 3], [1], []]
    program.outputs["out"] = either
    assert jacobian_pattern(program, [x]).lists() == [[0], [1], [3], [3], [1], [0]]
    assert hessian_pattern(program, [x]).lists() == [[0], [1], [], [3], [], []]


def test_a_product_of_two_chosen_operands_and_a_sum_of_chosen_places() -> None:
    from wengert.compiler.derive import jacobian_pattern
    from wengert.compiler.ir import Access, Array, Assemble, Compute, Index, Program, verify

    x, which = Array("x", (6,), "input"), Array("which", (2,), "index")
    first, second = (Index(which, 1, k, (), 2 + k) for k in (0, 1))
    out = Array("out", (), "value")
    times = Compute(
        out, (), [Access(x, 0, (), None, first), Access(x, 3, (), None, second)], ("mul", ("in", 0), ("in", 1))
    )
    program = Program([x, which, out], [times], {"out": out})
    verify(program)
    assert jacobian_pattern(program, [x]).lists() == [[0, 1, 3, 4, 5]]
    assert hessian_pattern(program, [x]).lists() == [[3, 4, 5], [3, 4, 5], [], [0, 1], [0, 1], [0, 1]]
    placed = Array("placed", (4,), "value")
    put = Assemble(placed, [(Access(placed, 0, (), None, second), out), (Access(placed, 3, ()), out)])
    program = Program([x, which, out, placed], [times, put], {"out": placed})
    verify(program)
    assert jacobian_pattern(program, [x]).lists() == [[0, 1, 3, 4, 5]] * 4
    assert hessian_pattern(program, [x]).lists()[0] == [3, 4, 5]


def test_what_an_iteration_bends_reaches_the_result_in_the_next_one() -> None:
    from wengert.compiler.derive import jacobian_pattern
    from wengert.compiler.ir import Access, Array, Compute, Loop, LoopOutput, Program, Slice, verify, whole

    x, copy, plus = Array("x", (3,), "input"), ("in", 0), ("add", ("in", 0), ("in", 1))
    first = [Array(f"{name}0", (), "value") for name in "pva"]
    every = [Array(f"{name}s", (5,), "value") for name in "pva"]
    p, v, a = now = [Array(name, (), "slice", slice=Slice(own, 0, 1)) for name, own in zip("pva", every, strict=True)]
    new = [Array(f"{name}1", (), "value") for name in "pva"]
    begin = [Compute(array, (), [Access(x, n, ())], copy) for n, array in enumerate(first)]
    bend = ("add", ("in", 0), ("mul", ("in", 1), ("in", 1)))
    reads = [([p, v], plus), ([v, a], plus), ([a, p], bend)]
    body = [Compute(made, (), [*map(whole, read)], e) for made, (read, e) in zip(new, reads, strict=True)]
    loop = Loop(4, body, [LoopOutput(*each) for each in zip(new, every, first, strict=True)])
    out = Array("out", (), "value")
    end = Compute(out, (), [Access(every[0], 4, ())], copy)
    program = Program([x, *first, *every, *now, *new, out], [*begin, loop, end], {"out": out})
    verify(program)
    assert jacobian_pattern(program, [x]).lists() == [[0, 1, 2]]
    assert hessian_pattern(program, [x]).lists() == [[0, 1, 2]] * 3
    program.outputs["out"] = every[0]
    assert jacobian_pattern(program, [x]).lists() == [[0], [0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


# -- arguments and results --------------------------------------------------------------------------------------------


def test_structures_are_end_to_end_and_argnums_chooses() -> None:
    def f(p: Any, q: Any) -> Any:
        return {"a": [p["w"][1] * q[0, 0], p["b"]], "c": (q[1, 0] ** 2, p["w"][0] + q[1, 1])}

    p, q = {"w": [1, Value(2.0)], "b": 3.0}, np.arange(4.0).reshape(2, 2)
    by_p = sparsity(f)(p, q).toarray().astype(int).tolist()
    assert by_p == [[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert sparsity(f, argnums=-1)(p, q=q).toarray().astype(int).tolist() == [
        [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]
    ]  # fmt: skip


def test_what_is_flat_everywhere_carries_nothing() -> None:
    def f(x: Any) -> Any:
        return [wengert.floor(x[0]), wengert.sign(x[0]) * x[1], wengert.stop_gradient(x[0]) * x[2], x[0] ** 0.0 + x[2]]

    assert sparsity(f)([1.5, 2.0, 3.0]).toarray().astype(int).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    linear = sparsity(lambda x: wengert.sum(f(x)) + x[1] ** 1.0, order=2)([1.5, 2.0, 3.0])
    assert linear.nnz == 0


def test_one_number_has_one_row_and_a_constant_an_empty_one() -> None:
    assert sparsity(lambda x: x * x)(2.0).toarray().tolist() == [[True]]
    assert sparsity(lambda x: [x[0], 1.0, x[0]])([2.0, 3.0]).toarray().astype(int).tolist() == [[1, 0], [0, 0], [1, 0]]
    made = sparsity(lambda x: x[0] + x[1], order=2)([2.0, 3.0])
    assert (made.shape, made.nnz, made.dtype) == ((2, 2), 0, bool)


def test_a_compiled_function_and_a_derivative_have_patterns_too() -> None:
    def f(x: Any) -> Any:
        return x[0] ** 2 * x[1] + wengert.sin(x[2])

    x = [1.0, 2.0, 3.0]
    second = sparsity(f, order=2)(x).toarray()
    assert second.astype(int).tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert np.array_equal(sparsity(wengert.compile(f), order=2)(x).toarray(), second)
    assert np.array_equal(sparsity(wengert.grad(f))(x).toarray(), second)


def sparse_pairs(expr: Any) -> list[list[int]]:
    from wengert.compiler.ir import Access, Array, Compute, Program

    x, out = Array("x", (1,), "input"), Array("out", (), "value")
    return hessian_pattern(Program([x, out], [Compute(out, (), [Access(x, 0, ())], expr)], {"out": out}), [x]).lists()


def test_operations_of_the_user_are_known_by_their_rules() -> None:
    halved = wengert.op("halved", value=lambda x, y: 0.5 * x * y, partials=lambda out, x, y: (0.5 * y, 0.5 * x))
    opaque = wengert.op("opaque", value=lambda x: math.sin(x), partials=lambda out, x: math.cos(x))
    expr = ("opaque", ("in", 0))
    assert sparse_pairs(expr) == [[0]]
    found = sparsity(lambda x: halved(x[0], x[1]) + opaque(x[2]), order=2)([1.0, 2.0, 3.0])
    assert found.toarray().astype(int).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_every_row_of_the_table_has_every_nonzero() -> None:
    x = [0.31, 0.47, 0.83]
    for row in wengert.ops.TABLE[1 : wengert.ops.BUILT_IN]:
        if row.arity not in (1, 2, 3) or row.name in ("polygamma", *COMPARED, "eq", "ne", "where"):
            continue

        def f(x: Any, row: Any = row) -> Any:
            a, b, c = x
            if row.domain[0][0] > 1.0:
                a = a + 1.5
            fixed = [2.5] * len(row.shapes)
            return row(*fixed, *[a * b, b + c, c * a][: row.arity - len(fixed)]) * 1.0

        first, second = sparsity(lambda x: [f(x)])(x).toarray(), sparsity(f, order=2)(x).toarray()
        dense = np.array(wengert.hessian(f)(x))
        assert not (np.array(wengert.grad(f)(x)) != 0.0)[~first[0]].any(), row.name
        assert not (dense != 0.0)[~second].any(), row.name
        assert np.array_equal(second, second.T), row.name


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 3, "2"])
def test_the_order_is_one_or_two(order: Any) -> None:
    with pytest.raises(ArgumentError, match="expected 1 for the Jacobian or 2 for the Hessian"):
        sparsity(lambda x: x, order=order)


def test_a_hessian_of_several_results_and_an_argument_that_is_not_there() -> None:
    with pytest.raises(ArgumentError, match="a function that returns one number"):
        sparsity(lambda x: [x[0], x[1]], order=2)([1.0, 2.0])
    with pytest.raises(ArgumentError, match="argnums is 1"):
        sparsity(lambda x: x, argnums=1)([1.0])


def test_a_function_that_cannot_be_recorded_says_why() -> None:
    def f(x: Any) -> Any:
        return x[0] * random.random()

    with pytest.raises(ArgumentError, match=r"f cannot be recorded: .*random"):
        sparsity(f)([1.0])


def test_without_scipy_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(MissingExtraError, match=r'pip install scipy \(the extra "sparse"\)'):
        sparsity(lambda x: x)


@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_variable_takes_less_than_two_kilobytes(n: int) -> None:
    """Rosenbrock's function and a tridiagonal system, as they are recorded; without the recording."""
    import tracemalloc

    from wengert.compiler.derive import jacobian_pattern
    from wengert.compiler.ir import Access, Array, Compute, Program, verify
    from wengert.derivatives.coloring import color_columns, star_coloring

    x, out, total = Array("x", (n,), "input"), Array("out", (n - 2,), "value"), Array("total", (), "value")
    low, middle, high = (Access(x, k, (1,)) for k in (0, 1, 2))
    curve = ("sub", ("in", 1), ("square", ("in", 0)))
    add = Compute(total, (n - 1,), [low, middle], ("add", ("square", curve), ("square", ("in", 0))), "sum")
    row = ("add", ("sub", ("in", 0), ("mul", ("const", 2.0), ("in", 1))), ("mul", ("in", 2), ("exp", ("in", 1))))
    system = Compute(out, (n - 2,), [low, middle, high], row)
    scalar = Program([x, total], [add], {"out": total})
    residuals = Program([x, out], [system], {"out": out})
    tracemalloc.start()
    try:
        for program, find, color in (
            (scalar, hessian_pattern, star_coloring),
            (residuals, jacobian_pattern, color_columns),
        ):
            verify(program)
            pattern = find(program, [x])
            assert (len(color(pattern)), len(pattern.indices)) == (3, 3 * n - (2 if find is hessian_pattern else 6))
        assert tracemalloc.get_traced_memory()[1] < 2000 * n
    finally:
        tracemalloc.stop()
