"""Derivatives of plain Python functions, to any order: grad, value_and_grad, jacobian, hessian, hvp, jvp, vjp.

The calling convention is JAX's: `grad(f)` is a function, and `grad(grad(f))` is one too. The arguments by which is
differentiated are numbers, or lists, tuples, named tuples, dicts and NumPy arrays of them, in any nesting; derivatives
come in the same shape. The function is called with Values in their places.

What comes out is what goes in. Of floats (ints count as floats) and of a function that depends on nothing else, the
derivative is made of floats. It is made of Values, which can be differentiated on, if

- an argument is a Value, or holds one; or
- the function's result depends on Values from outside, as the parameters of a model are: so does its derivative, and
  `backward()` reaches them. Under `no_grad()` such Values count as constants.

No `grad` of a Value is read or written by anything here. The function should have no effects: where a result has to be
made of Values and shows itself to come from a compiled function, it is run a second time, operation by operation.

    >>> def f(x, y):
    ...     return x**3 * y
    >>> grad(f)(2.0, 5.0), grad(f, argnums=(0, 1))(2.0, 5.0)
    (60.0, (60.0, 8.0))
    >>> grad(grad(grad(f)))(2.0, 5.0)
    30.0
    >>> hessian(lambda p: f(p["x"], p["y"]))({"x": 2.0, "y": 5.0})
    {'x': {'x': 60.0, 'y': 12.0}, 'y': {'x': 12.0, 'y': 0.0}}
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import chain as joined
from typing import Any

from wengert.derivatives.linearize import linearize
from wengert.derivatives.pytree import Numbers, array_of, tree_map
from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.ops import coerce

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]

Function = Callable[..., Any]


def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function that returns one number, as a function of the same arguments.

    Args:
        function: called with Values in the place of the numbers by which is differentiated.
        argnums: by which of the positional arguments, counted from 0, or from the end by -1, -2, ...; a tuple gives a
            tuple of gradients.
        has_aux: whether the function returns a pair (value, something else); then so does the gradient.

    Returns:
        A function that returns the derivatives in the shape of the argument.

    Raises:
        ArgumentError: from the call: the function returned something else than one number, there is no such
            argument, or one stands twice in `argnums`.
        OperandError: from the call: the argument holds something that is not a number.
        OperationError: from the call: a second derivative meets an operation whose rule is for floats only.

    >>> from wengert import sin
    >>> grad(sin)(0.0)
    1.0
    >>> grad(lambda w: w["a"] * w["b"][0] ** 2)({"a": 2.0, "b": [3.0, 4.0]})
    {'a': 9.0, 'b': [12.0, 0.0]}
    >>> grad(lambda x: x * grad(lambda y: x * y)(3.0))(2.0)    # of x * x, as the inner one is x
    4.0
    """
    both = value_and_grad(function, argnums, has_aux)

    @_like(function, "gradient")
    def gradient(*args: Any, **named: Any) -> Any:
        value, slopes = both(*args, **named)
        return (slopes, value[1]) if has_aux else slopes

    return gradient


def value_and_grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The function and its `grad` from one run: a function that returns the pair (value, gradient).

    `scipy.optimize.minimize(value_and_grad(f), x0, jac=True)` takes it as it is: of an array it is a float and an
    array. Arguments and errors as of `grad`; with `has_aux` the pair is ((value, something else), gradient).

    >>> value_and_grad(lambda x, y: x * x * y)(3.0, 2.0)
    (18.0, 12.0)
    """

    @_like(function, "value and gradient")
    def value_and_gradient(*args: Any, **named: Any) -> Any:
        call = _Call(function, argnums, args, named, has_aux)
        if not call.outputs.is_number():
            raise ArgumentError(
                f"a gradient is that of one number, and {_name(function)} returned {_described(call.result)}; "
                "wengert.jacobian takes the derivative of each of several"
            )
        (value,) = call.run.values()
        slopes = call.inputs.unflatten(call.run.vjp({0: 1.0}))
        return ((value, call.aux) if has_aux else value), slopes

    return value_and_gradient


def jacobian(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The derivative of every number that a function returns by every number in its argument.

    Forward mode if there are fewer inputs than outputs, else reverse mode.

    Args:
        function: as of `grad`; it may return numbers in any shape that arguments may have.
        argnums: as of `grad`.
        has_aux: as of `grad`.

    Returns:
        A function that returns, in the place of each number of the result, its derivatives in the shape of the
        argument: of a list by a list, the rows of a matrix; of an array by an array, an array of both shapes.

    Raises:
        ArgumentError, OperandError, OperationError: as `grad`.

    >>> jacobian(lambda x: [x[0] * x[1], x[1] ** 2, 7.0])([2.0, 3.0])
    [[3.0, 2.0], [0.0, 6.0], [0.0, 0.0]]
    """

    @_like(function, "Jacobian")
    def jacobian_of(*args: Any, **named: Any) -> Any:
        call = _Call(function, argnums, args, named, has_aux)
        rows = call.run.jacobian()
        made = call.outputs.map(
            lambda out, rows_shape: call.inputs.map(lambda by, shape: _entries(rows[out], by, rows_shape, shape))
        )
        return (made, call.aux) if has_aux else made

    return jacobian_of


def hessian(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The second derivatives of a function that returns one number: the Jacobian of its gradient.

    Arguments and errors as of `grad`; the shape is that of the argument, twice.

    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 2.0])
    [[4.0, 6.0], [6.0, 0.0]]
    """
    return jacobian(grad(function, argnums, has_aux), argnums, has_aux)


def hvp(function: Function) -> Function:
    """The product of the Hessian with a vector, without the Hessian: forward mode over the gradient.

    Returns:
        A function of (x, v, ...): x is the function's first argument, v has its shape, the function's other arguments
        follow. So `scipy.optimize.minimize(..., hessp=hvp(f))` takes it as it is.

    Raises:
        LengthError: from the call: v has another shape than x.
        ArgumentError, OperandError, OperationError: as `grad`.

    >>> hvp(lambda x: x[0] ** 2 * x[1])([3.0, 2.0], [1.0, 0.0])
    [4.0, 6.0]
    """
    gradient = grad(function)

    def product(x: Any, v: Any, *args: Any, **named: Any) -> Any:
        call = _Call(gradient, 0, (x, *args), named)
        return call.inputs.unflatten(call.run.jvp(_moving(call.inputs.match(v, "v"))))

    product.__doc__ = f"The product of the Hessian of {_name(function)} with a vector, as wengert.hvp makes it."
    return product


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """The derivative along a direction: forward mode, in one sweep however many results there are.

    Args:
        function: as of `jacobian`.
        primals: its arguments, in a tuple or list.
        tangents: the direction, in the same shape.
        has_aux: whether the function returns a pair (value, something else).

    Returns:
        (value, its derivative along the direction), and the something else.

    Raises:
        ArgumentError, LengthError: the tangents have another shape than the primals.
        OperandError, OperationError: as `grad`.

    >>> jvp(lambda x, y: [x * y, x], (3.0, 2.0), (1.0, 0.0))
    ([6.0, 3.0], [2.0, 1.0])
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(f"{name} is {coerce.named(given)}; expected the arguments in a tuple, such as (x, y)")
    call = _Call(function, tuple(range(len(primals))), tuple(primals), {}, has_aux, "primals")
    along = call.run.jvp(_moving(call.inputs.match(tangents, "tangents")))
    results = call.outputs.unflatten(call.run.values()), call.outputs.unflatten(along)
    return (*results, call.aux) if has_aux else results


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value, and a function that pulls cotangents back: reverse mode, from one run for as many calls as one likes.

    Args:
        function: as of `jacobian`.
        *primals: its arguments.
        has_aux: whether the function returns a pair (value, something else).

    Returns:
        (value, pullback), and the something else. The pullback takes a cotangent in the shape of the value, and
        returns a tuple with the cotangent of each argument.

    Raises:
        OperandError, OperationError: as `grad`.
        ArgumentError, LengthError: from the pullback: the cotangent has another shape than the value.

    >>> value, pullback = vjp(lambda x, y: [x * y, x], 3.0, 2.0)
    >>> value, pullback([1.0, 10.0])
    ([6.0, 3.0], (12.0, 3.0))
    """
    call = _Call(function, tuple(range(len(primals))), primals, {}, has_aux, "primals")

    def pullback(cotangent: Any) -> Any:
        """The cotangent of each argument, from that of the value."""
        given = call.outputs.match(cotangent, "the cotangent")
        return call.inputs.unflatten(call.run.vjp(dict(enumerate(given))))

    value = call.outputs.unflatten(call.run.values())
    return (value, pullback, call.aux) if has_aux else (value, pullback)


class _Call:
    """One call of a function, on fresh Values in the place of some of its arguments."""

    def __init__(
        self,
        function: Function,
        argnums: int | Sequence[int],
        args: tuple[Any, ...],
        named: dict[str, Any],
        has_aux: bool = False,
        name: str = "",
    ) -> None:
        self.result: Any
        self.aux: Any  # what comes beside it
        if named:
            args, named = _by_position(function, args, named)
        single = not isinstance(argnums, (tuple, list))
        numbers: Sequence[Any] = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
        places = [_place(function, number, args) for number in numbers]
        if len(set(places)) < len(places):
            raise ArgumentError(f"argnums is {argnums!r}, which names an argument twice: name each once")
        chosen = args[places[0]] if single else tuple([args[place] for place in places])
        self.inputs = Numbers(chosen, name or (f"args[{places[0]}]" if single else "argument"))

        def on(values: list[Any]) -> list[Any]:
            given = list(args)
            built = self.inputs.unflatten(values)
            for place, x in zip(places, [built] if single else built, strict=True):
                given[place] = x
            self.result, self.aux = function(*given, **named), None
            if has_aux:
                if not isinstance(self.result, tuple) or len(self.result) != 2:
                    raise ArgumentError(
                        f"has_aux expects a pair (value, something else); {_name(function)} returned "
                        f"{_described(self.result)}"
                    )
                self.result, self.aux = self.result
            self.outputs = Numbers(self.result, f"the result of {_name(function)}")
            return self.outputs.leaves

        self.run = linearize(on, self.inputs.leaves)
        if self.run.kind == "floats":
            self.aux = tree_map(lambda x: x.data if isinstance(x, Value) else x, self.aux)


def _entries(rows: list[list[Any]], by: slice, *shapes: tuple[int, ...] | None) -> Any:
    """The derivatives of one number or array by another."""
    if shapes == (None, None):
        return rows[0][by.start]
    return array_of([x for row in rows for x in row[by]], tuple(joined.from_iterable(filter(None, shapes))))


def _moving(tangents: list[Any]) -> dict[int, Any]:
    """Those that are not 0: along the others nothing moves, not even where a slope is infinite."""
    return {number: t for number, t in enumerate(tangents) if isinstance(t, Value) or t != 0.0}


def _place(function: Function, number: Any, args: tuple[Any, ...]) -> int:
    """Which argument is meant."""
    count = len(args)
    if not isinstance(number, int) or not -count <= number < count:
        few = f"{count} positional argument{'' if count == 1 else 's'}"
        raise ArgumentError(
            f"argnums is {number!r}, and {_name(function)} was called with {few}: what is differentiated by is counted "
            "from 0, or from the end by -1"
        )
    return number % count


def _by_position(function: Function, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    """The same arguments, by position where the function allows it: `argnums` counts them."""
    import inspect

    try:
        bound = inspect.signature(function).bind(*args, **named)
    except (TypeError, ValueError):
        return args, named  # the call itself will say what is wrong
    return bound.args, bound.kwargs


def _described(result: Any) -> str:
    """What a function returned, in a few words."""
    if result is None:
        return "None (was its return forgotten?)"
    if isinstance(result, (list, tuple, dict)):
        return f"a {type(result).__name__} of {len(result)}"
    return f"an array of the shape {result.shape}" if hasattr(result, "shape") else coerce.named(result)


def _name(function: Any) -> str:
    """What to call a function."""
    name = getattr(function, "__name__", "")
    return "the function" if name in ("", "<lambda>") else name


def _like(function: Any, what: str) -> Callable[[Function], Function]:
    """Give a derivative the signature of its function."""

    def dressed(derivative: Function) -> Function:
        functools.update_wrapper(derivative, function)
        derivative.__doc__ = f"The {what} of {_name(function)}, as wengert.derivatives.grad makes it."
        return derivative

    return dressed
