"""`check_gradients` compares the gradients of a function with finite differences of its values.

    >>> from wengert import op, sin
    >>> print(check_gradients(lambda x, y: sin(x) * y, (0.5, 2.0)))
    the gradients are right: 6 derivatives with respect to x, y, up to order 2
    >>> wrong = op("wrong_square", value=lambda x: x * x, partials=lambda out, x: 3.0 * x)
    >>> report = check_gradients(wrong, 2.0, order=1, raise_exception=False)
    >>> report.ok, report.worst.input, report.worst.gradient, round(report.worst.expected, 6)
    (False, 'x', 6.0, 4.0)

At a kink there is no derivative, and the documented convention applies (see Conventions): relu has the derivative 0 at
0, and equal operands of a maximum share the gradient. At and near kinks the gradient is compared with differences of
the recorded graph, evaluated with each kink replaced by the straight line that the convention prescribes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

from wengert import modes
from wengert._signatures import signature
from wengert.checking.replay import Replay
from wengert.derivatives import LinearMap, Numbers, argument_names
from wengert.engine import Value
from wengert.errors import ArgumentError, GradientError, counted
from wengert.graph import Graph
from wengert.ops import Slope, is_number, slopes

__all__ = ["ComparedDerivative", "GradientReport", "check_gradients"]

LOOSE = 1e-3  # the largest relative uncertainty of a difference that is tolerated
COLUMNS = 100  # for orders from 2 on, the number of inputs to differentiate with respect to
SHOWN = 10
GOLDEN = (sqrt(5.0) - 1.0) / 2.0  # its multiples modulo 1 are spread most evenly: Knuth, vol. 3, section 6.4, theorem S


class ComparedDerivative(NamedTuple):
    """A derivative, from backward() and from differences."""

    order: int
    """1 for a gradient, 2 for its derivative, and so on."""
    input: str
    """The number to differentiate with respect to: `x[2]`, or a parameter, `layers.0.neurons.3.w.17`."""
    output: str
    """The number that is differentiated: an output; from order 2 on a derivative of the outputs, `d/d x[0]`."""
    gradient: float
    """The derivative from the rules of the operations."""
    expected: float
    """The derivative from differences, or at a kink from the convention."""
    allowed: float
    """The largest difference of the two that is allowed."""
    source: str
    """The source of `expected`: "differences" or "convention"."""
    ok: bool
    """True if the two agree and are finite."""

    @property
    def error(self) -> float:
        """The absolute difference of the two; inf if one is not finite."""
        apart = abs(self.gradient - self.expected)
        return apart if apart == apart else inf


class GradientReport(NamedTuple):
    """The result of `check_gradients`, true if every derivative is right; printed, it is a table of the wrong ones."""

    name: str
    """The function's name."""
    comparisons: tuple[ComparedDerivative, ...]
    """Each derivative that was compared."""
    inputs: tuple[str, ...]
    """The names of the numbers to differentiate with respect to."""
    left_out: int
    """The number of inputs that were left out of orders from 2 on, because there are so many."""

    @property
    def ok(self) -> bool:
        """True if every derivative is right."""
        return all(c.ok for c in self.comparisons)

    @property
    def worst(self) -> ComparedDerivative:
        """The comparison with the largest error relative to what is allowed, of the lowest order with an error."""
        wrong = [c for c in self.comparisons if not c.ok]
        lowest = min([c.order for c in wrong], default=0)
        return max([c for c in wrong if c.order == lowest] or self.comparisons, key=_excess)

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        order = max(c.order for c in self.comparisons)
        named = self.inputs if len(self.inputs) <= 4 else (*self.inputs[:3], f"... ({len(self.inputs)} in all)")
        count = counted(len(self.comparisons), "derivative")
        lines = [f"{count} with respect to {', '.join(named)}, up to order {order}"]
        if self.left_out:
            lines.append(f"(orders from 2 on leave out {self.left_out} of the inputs)")
        if self.ok:
            return "the gradients are right: " + "\n".join(lines)
        wrong = sorted([c for c in self.comparisons if not c.ok], key=lambda c: (c.order, -_excess(c)))
        worst = self.worst
        lines[0] = f"{len(wrong)} of {lines[0]}, are wrong"
        head = f"the gradients of {self.name} are wrong, worst with respect to {worst.input}: {_sentence(worst)}"
        lines.insert(0, head)
        rows = [("order", "output", "input", "gradient", "expected", "error", "allowed", "source")]
        for c in wrong[:SHOWN]:
            numbers = [f"{x:.9g}" for x in (c.gradient, c.expected)] + [f"{x:.1e}" for x in (c.error, c.allowed)]
            rows.append((str(c.order), c.output, c.input, *numbers, c.source))  # type: ignore[arg-type]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        if len(wrong) > SHOWN:
            lines.append(f"and {len(wrong) - SHOWN} more")
        return "\n".join(lines)


def check_gradients(
    function: Callable[..., Any],
    inputs: Any,
    *,
    order: int = 2,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    step: float | None = None,
    raise_exception: bool = True,
) -> GradientReport:
    """Compare the derivatives of a function with finite differences.

    Args:
        function: a function of numbers, lists or arrays; a `wengert.nn.Module`, whose parameters are checked too; or an
            operation, such as `wengert.exp` or one of your own.
        inputs: its argument, or a tuple of its arguments; a list of them, or a dict by name, works too if the function
            cannot take it as its only argument. Floats, Values and arrays of floats in them, nested in any way, are
            varied; ints, bools, strings and the like are passed unchanged.
        order: the highest order: 1 checks the gradients, 2 their derivatives too. From order 2 on the outputs are added
            up with weights, and with more than 100 inputs only 100 of them are varied.
        rtol: the allowed error of a derivative, relative to its size.
        atol: the allowed absolute error; the uncertainty of the difference is added to both.
        step: the first and largest step, by default a tenth of max(1, abs(input)). It is divided by 4 until the
            differences have converged.
        raise_exception: True raises an error for a wrong derivative; False returns the report.

    Returns:
        The report, with `ok`, `worst` and every comparison.

    Raises:
        GradientError: a derivative is wrong or not finite; its attribute `report` has the details.
        ArgumentError: there is no float to vary, the function returns nothing or something else at each call, or an
            option has an invalid value.
        OperationError: there is no second derivative, since the rule of your own operation works on floats only.

    >>> from wengert.nn import MLP
    >>> bool(check_gradients(MLP(2, [3, 1], activation="tanh"), [0.5, -1.0]))
    True
    """
    if type(order) is not int or order < 1:
        raise ArgumentError(f"order is {order!r}; expected an int >= 1")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not (is_number(tolerance) and tolerance >= 0.0):
            raise ArgumentError(f"{name} is {tolerance!r}; expected a number >= 0")
    if step is not None and not (is_number(step) and step > 0.0 and isfinite(step)):
        raise ArgumentError(f"step is {step!r}; expected a number above 0")
    with modes.recorded():
        subject = _Subject(function, inputs)
        try:
            for name, x in zip(subject.names, subject.point, strict=True):
                if step is not None and isfinite(x) and x + step == x:
                    raise ArgumentError(f"step is {step!r}, too small to change {name} = {x!r}: expected a larger one")
            found = [
                c for degree in range(1, order + 1) for c in _compare(subject, degree, _Tolerance(rtol, atol), step)
            ]
        finally:
            subject.restore()
    left_out = max(0, len(subject.leaves) - COLUMNS) if order > 1 else 0
    report = GradientReport(subject.name, tuple(found), tuple(subject.names), left_out)
    if raise_exception and not report.ok:
        raise GradientError(report)
    return report


class _Subject:
    """A function whose numbers are leaves, so that each can be varied."""

    def __init__(self, function: Callable[..., Any], inputs: Any) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", "") or type(function).__name__
        self.name = "the function" if self.name == "<lambda>" else self.name
        given = _arguments(function, inputs)
        called = argument_names(function, len(given))
        given_numbers = [Numbers(x, name, True) for x, name in zip(given, called, strict=True)]
        self.names: list[str] = [name for numbers in given_numbers for name in numbers.names()]
        self.leaves: list[Value] = []
        self.arguments = []
        for numbers in given_numbers:
            leaves = [Value(x.data if isinstance(x, Value) else x) for x in numbers.leaves]
            self.leaves += leaves
            self.arguments.append(numbers.unflatten(leaves))
        if hasattr(function, "named_parameters"):
            for name, parameter in function.named_parameters():
                self.names.append(name)
                self.leaves.append(parameter)
        if not self.leaves:
            raise ArgumentError(f"there is no float among the inputs of {self.name} to vary: write 1.0 for 1")
        self.point = [leaf.data for leaf in self.leaves]
        self.began = min(leaf._made for leaf in self.leaves)
        result = Numbers(function(*self.arguments), "its result")
        self.output_names: list[str] = [name.replace("its result", self.name) for name in result.names()]
        if not result.leaves:
            raise ArgumentError(f"{self.name} returned no number: did it forget to return its result?")

    def outputs(self, order: int) -> list[Any]:
        """Compute the outputs (order 1), the derivatives of their sum (2), and of the sum of these (3)."""
        outputs = Numbers(self.function(*self.arguments), "its result").leaves
        for _ in range(order - 1):
            run = LinearMap(self.leaves, outputs, self.began, "values")
            run.prepare()
            outputs = run.vjp(_weights(len(outputs)))
        return outputs

    def numbers(self, order: int) -> list[float]:
        """Compute `outputs` as floats, with a reverse sweep in floats for the last derivative."""
        if order == 1:
            return [x.data if isinstance(x, Value) else x for x in self.outputs(1)]
        outputs = self.outputs(order - 1)
        return list(LinearMap(self.leaves, outputs, self.began).vjp(_weights(len(outputs))))

    def columns(self, order: int, chosen: Sequence[int]) -> list[list[float]]:
        """Compute the derivatives of all outputs with respect to some inputs, by the rules of the operations."""
        with modes.recorded(eager_only=order > 1):
            outputs = self.outputs(order)
        run = LinearMap(self.leaves, outputs, self.began)
        if order > 1:
            return [run.jvp({number: 1.0}) for number in chosen]
        rows = [run.vjp({number: 1.0}) for number in range(len(outputs))]
        return [[row[number] for row in rows] for number in chosen]

    def replay(self, order: int) -> Replay:
        """Record the outputs, to evaluate them again."""
        with modes.recorded(eager_only=True):
            outputs = self.outputs(order)
        return Replay(Graph(*[x for x in outputs if isinstance(x, Value)]), outputs)

    def moved(self, number: int, order: int) -> Callable[[float], list[float]]:
        """Return the outputs as a function of one of the inputs."""

        def function(x: float) -> list[float]:
            self.leaves[number].data = x
            try:
                return self.numbers(order)
            finally:
                self.leaves[number].data = self.point[number]

        return function

    def restore(self) -> None:
        for leaf, number in zip(self.leaves, self.point, strict=True):
            leaf.data = number


def _arguments(function: Callable[..., Any], inputs: Any) -> tuple[Any, ...]:
    """Return the arguments of the call: items of a list or dict only if the function does not take it as one."""
    if isinstance(inputs, (list, dict)):
        try:
            parameters = signature(function)
        except (TypeError, ValueError):  # for some functions written in C
            return (inputs,)
        try:
            parameters.bind(inputs)
        except TypeError:
            return parameters.bind(**inputs).args if isinstance(inputs, dict) else tuple(inputs)
    return inputs if type(inputs) is tuple else (inputs,)


class _Tolerance(NamedTuple):
    """The allowed error of a derivative, and the tests that use it."""

    rtol: float
    atol: float

    def allowed(self, slope: Slope, gradient: float) -> float:
        """Return the allowed difference: the tolerance plus the uncertainty of the finite difference."""
        uncertain = min(slope.error, LOOSE * abs(slope.slope) + 1e-6)
        return self.atol + self.rtol * max(abs(gradient), abs(slope.slope)) + uncertain

    def agree(self, slope: Slope, gradient: float) -> bool:
        """Return True if the two differ by no more than that."""
        return abs(gradient - slope.slope) <= self.allowed(slope, gradient)

    def smooth(self, slope: Slope) -> bool:
        """Return True if the differences show no kink."""
        return not abs(slope.jump) > self.atol + self.rtol * abs(slope.slope) + slope.jump_error

    def enough(self, found: Sequence[Slope], column: Sequence[float]) -> bool:
        """Return True if smaller steps are not needed."""
        return all(
            slope.error <= self.atol + self.rtol * abs(slope.slope)
            and self.agree(slope, gradient)
            and self.smooth(slope)
            for slope, gradient in zip(found, column, strict=True)
        )


def _compare(subject: _Subject, order: int, tolerance: _Tolerance, step: float | None) -> list[ComparedDerivative]:
    count = len(subject.leaves)
    chosen = range(count) if order == 1 or count <= COLUMNS else [k * count // COLUMNS for k in range(COLUMNS)]
    before = subject.numbers(order)
    if repr(before) != repr(subject.numbers(order)):
        raise ArgumentError(f"{subject.name} returns different results for the same inputs: is it random?")
    of = subject.output_names if order == 1 else [f"d/d {name}" for name in subject.names]
    found = []
    replay: Replay | None = None
    first_order: Replay | None = None
    for number, column in zip(chosen, subject.columns(order, chosen), strict=True):
        x = subject.point[number]
        first = step or 0.1 * max(1.0, abs(x))
        measured = slopes(subject.moved(number, order), x, first, partial(tolerance.enough, column=column))
        straight: list[Slope] | None = None
        for place, (slope, gradient) in enumerate(zip(measured, column, strict=True)):
            ok, source = tolerance.agree(slope, gradient), "differences"
            if isfinite(gradient) and not (ok and tolerance.smooth(slope)):
                replay = replay or subject.replay(order)
                first_order = first_order or (replay if order == 1 else subject.replay(1))
                leaf = subject.leaves[number]
                if not tolerance.smooth(slope) or first_order.has_kink(leaf):
                    if replay.has_rules(leaf):
                        straight = straight or slopes(replay.moved(leaf), x, first)
                        slope, source = straight[place], "convention"
                        ok = tolerance.agree(slope, gradient)
                    if not tolerance.smooth(slope):  # without a convention, anything between the two sides is right
                        low, high = sorted([slope.slope - slope.jump / 2.0, slope.slope + slope.jump / 2.0])
                        allowed = tolerance.allowed(slope, gradient)
                        ok = low - allowed <= gradient <= high + allowed
            allowed, ok = tolerance.allowed(slope, gradient), ok and isfinite(gradient)
            found.append(
                ComparedDerivative(order, subject.names[number], of[place], gradient, slope.slope, allowed, source, ok)
            )
    return found


def _weights(count: int) -> dict[int, float]:
    """Return a factor for each output, so that they do not cancel in their sum."""
    return {k: 1.0 if count == 1 else 0.5 + k * GOLDEN % 1.0 for k in range(count)}


def _excess(c: ComparedDerivative) -> float:
    """Return the error as a multiple of what is allowed."""
    return c.error / c.allowed if c.allowed > 0.0 else c.error * inf if c.error else 0.0


def _sentence(c: ComparedDerivative) -> str:
    if not isfinite(c.gradient):
        return f"the derivative of {c.output} is {c.gradient:g}"
    what = "the convention at this kink gives" if c.source == "convention" else "differences give"
    return f"the derivative of {c.output} is {c.gradient:.9g}, but {what} {c.expected:.9g}"
