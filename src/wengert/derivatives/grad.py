"""Derivatives of plain Python functions, to any order: grad, value_and_grad, jacobian, hessian, hvp, jvp, vjp.

The calling convention is JAX's: `grad(f)` is a function, and so is `grad(grad(f))`. The arguments to differentiate with
respect to are numbers, or lists, tuples, named tuples, dicts and NumPy arrays of numbers, nested in any way, and
derivatives have the same structure. The function is called with Values in place of these numbers; one that takes plain
numbers only is recorded on them, as `compile` does (see `compiler/record/floats.py`).

Given floats (or ints), the derivative consists of floats. It consists of Values, which can be differentiated again, if

- an argument is a Value or contains one; or
- the function's result depends on other Values, such as the parameters of a model: then the derivative depends on them
  too, and `backward()` reaches them. Under `no_grad()` such Values count as constants.

Nothing here reads or writes the `grad` of a Value. The function should have no side effects: if the derivative has to
consist of Values and a compiled function turns out to be involved, the function is run again, operation by operation.

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
from importlib import import_module  # `compile`, which stands on derivatives, makes sparse ones
from typing import Any, NamedTuple

from wengert import modes
from wengert._signatures import signature, spread
from wengert.derivatives.derivation import (
    Derivation,
    Run,
    Start,
    assembled,
    called,
    compiled_method,
    copied,
    derivation_of,
    is_compiled,
    note,
    signature_of,
)
from wengert.derivatives.linearize import LinearMap, OpaqueError, linear_map, linearize, linearize_gradient, number_of
from wengert.derivatives.programs import by_program, compiled_for_products
from wengert.derivatives.pytree import Numbers, array_of, tree_map
from wengert.engine import Value
from wengert.errors import ArgumentError, counted
from wengert.node import differentiated
from wengert.ops import coerce

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]

Function = Callable[..., Any]


def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Return the gradient of a function with one number as its result, as a function of the same arguments.

    Args:
        function: called with Values in place of the numbers to differentiate with respect to; plain code, as of `math`,
            is recorded on the numbers.
        argnums: the positional argument to differentiate with respect to, counted from 0, or from the end by -1, -2,
            ...; a tuple of them gives a tuple of gradients.
        has_aux: the function returns a pair (value, auxiliary data), and the gradient does too.

    Returns:
        A function that returns the derivatives in the structure of the argument.

    Raises:
        ArgumentError: when called: the function returned something else than one number, there is no such
            argument, or `argnums` names one twice.
        OperandError: when called: the argument contains something that is not a number.
        OperationError: when called: a second derivative needs an operation whose rule works on floats only, or a number
            leaves a plain function into one written in C that is not known.

    >>> import math
    >>> grad(lambda x: math.sin(x) + float(x))(0.0)
    2.0
    >>> grad(lambda w: w["a"] * w["b"][0] ** 2)({"a": 2.0, "b": [3.0, 4.0]})
    {'a': 9.0, 'b': [12.0, 0.0]}
    >>> grad(lambda x: x * grad(lambda y: x * y)(3.0))(2.0)    # of x * x, as the inner one is x
    4.0
    """

    @_like(function, "gradient", Derivation("grad", function, argnums, has_aux))
    def gradient(*args: Any, **named: Any) -> Any:
        served = NotImplemented if has_aux else by_program(gradient, args, named)
        if served is not NotImplemented:
            return served
        slopes = NotImplemented if has_aux or named else differentiated("grad", function, argnums, args)
        if slopes is NotImplemented:
            value, slopes = _value_and_slopes(function, argnums, has_aux, args, named)
        return (slopes, value[1]) if has_aux else slopes

    return gradient


def value_and_grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the pair (value, gradient) in one run.

    It can be passed to SciPy: `scipy.optimize.minimize(value_and_grad(f), x0, jac=True)`; given an array it returns a
    float and an array. Arguments and errors are those of `grad`; with `has_aux` the pair is ((value, auxiliary data),
    gradient).

    >>> value_and_grad(lambda x, y: x * x * y)(3.0, 2.0)
    (18.0, 12.0)
    """

    @_like(function, "value and gradient", Derivation("value_and_grad", function, argnums, has_aux))
    def value_and_gradient(*args: Any, **named: Any) -> Any:
        served = NotImplemented if has_aux else by_program(value_and_gradient, args, named)
        if served is not NotImplemented:
            return served
        traced = NotImplemented if has_aux or named else differentiated("value_and_grad", function, argnums, args)
        return _value_and_slopes(function, argnums, has_aux, args, named) if traced is NotImplemented else traced

    return value_and_gradient


def _value_and_slopes(
    function: Function, argnums: int | Sequence[int], has_aux: bool, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, Any]:
    call = _Call(function, argnums, args, named, has_aux)
    _check_number(function, call.outputs, call.result)
    (value,) = call.run.values()
    slopes = call.inputs.unflatten(call.run.vjp({0: 1.0}))
    return ((value, call.aux) if has_aux else value), slopes


def jacobian(
    function: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    sparse: bool = False,
    sparsity: Any = None,
) -> Function:
    """Return the derivatives of all numbers that a function returns with respect to all numbers in its argument.

    It uses forward mode if there are fewer inputs than outputs, else reverse mode.

    Args:
        function: as for `grad`, but it may return numbers in any structure that arguments may have.
        argnums: as for `grad`.
        has_aux: as for `grad`.
        sparse: True for a `scipy.sparse.csr_array` with a row for each number of the result and a column for each
            number of the argument. The function is compiled, and only what may be nonzero is computed, in one direction
            for all columns, or rows, that share no nonzero; for a few full rows among sparse ones in both modes. The
            pattern has all branches that calls have taken. A call that runs uncompiled finds it in its own graph.
        sparsity: the pattern that each result has, for `sparse=True`, which it implies: a sparse matrix of SciPy, such
            as `wengert.sparsity(f)` returns when called, or an array of zeros and ones. A derivative outside it that is
            not 0 raises an ArgumentError.

    Returns:
        A function that returns, in place of each number of the result, its derivatives in the structure of the
        argument: for lists the rows of a matrix, and for arrays an array of the result's shape + the argument's shape,
        also if the argument is a list of numbers and the result an array.

    Raises:
        ArgumentError, OperandError, OperationError: as for `grad`; `sparse` takes floats only, and no auxiliary data.
        MissingExtraError: `sparse` needs SciPy.

    >>> jacobian(lambda x: [x[0] * x[1], x[1] ** 2, 7.0])([2.0, 3.0])
    [[3.0, 2.0], [0.0, 6.0], [0.0, 0.0]]
    """
    if sparse or sparsity is not None:
        return _sparse(function, argnums, has_aux, sparsity)

    @_like(function, "Jacobian", Derivation("jacobian", function, argnums, has_aux))
    def jacobian_of(*args: Any, **named: Any) -> Any:
        served = NotImplemented if has_aux else by_program(jacobian_of, args, named)
        if served is not NotImplemented:
            return served
        traced = NotImplemented if has_aux or named else differentiated("jacobian", function, argnums, args)
        if traced is not NotImplemented:
            return traced
        call = _Call(function, argnums, args, named, has_aux, forward=True)
        rows = _in_rows(call.run, call.outputs, call.inputs)
        return (rows, call.aux) if has_aux else rows

    return jacobian_of


def hessian(
    function: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    sparse: bool = False,
    sparsity: Any = None,
) -> Function:
    """Return the second derivatives of a function with one number as its result: the Jacobian of its gradient.

    Arguments and errors are those of `grad`, `sparse` and `sparsity` those of `jacobian`; the result has the argument's
    structure, nested in itself.

    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 2.0])
    [[4.0, 6.0], [6.0, 0.0]]
    """
    return jacobian(grad(function, argnums, has_aux), argnums, has_aux, sparse=sparse, sparsity=sparsity)


def entries_of(function: Function, argnums: int | Sequence[int]) -> Function:
    """Return a function that computes a Jacobian for `sparse=True`: the pattern, and an array of the entries in it, or
    of a single 0 if the pattern has none, since a program computes at least one number.
    """

    @_like(function, "entries of the Jacobian", Derivation("sparse", function, argnums))
    def entries(*args: Any, **named: Any) -> Any:
        with modes.no_grad():  # Values from outside are constants
            call = _Call(function, argnums, args, named, order=2, forward=True)  # no operation hides others
            if getattr(call, "result", 0.0) is None:
                raise ArgumentError(f"a Jacobian needs numbers, and {_name(function)} returned {_described(None)}")
            pattern, numbers = call.run.entries()
        return pattern, array_of(numbers or [0.0], (len(numbers) or 1,))

    return entries


def _sparse(function: Function, argnums: int | Sequence[int], has_aux: bool, sparsity: Any) -> Function:
    if has_aux:
        raise ArgumentError("sparse=True and has_aux=True do not go together: return the auxiliary data by themselves")
    kind: Any = import_module("wengert.compiler.sparse").SparseDerivative
    derivative: Function = kind(entries_of(function, argnums), sparsity)
    return derivative


def hvp(function: Function) -> Function:
    """Return the product of the Hessian with a vector, computed without the Hessian, by forward mode over the gradient.

    Returns:
        A function of (x, v, ...): x is the function's first argument, v has the structure of x, and the function's
        other arguments follow. It can be passed to SciPy: `scipy.optimize.minimize(..., hessp=hvp(f))`.

    Raises:
        LengthError: when called: v and x differ in shape.
        ArgumentError, OperandError, OperationError: as for `grad`.

    >>> hvp(lambda x: x[0] ** 2 * x[1])([3.0, 2.0], [1.0, 0.0])
    [4.0, 6.0]
    """
    gradient = grad(function)

    def product(x: Any, v: Any, *args: Any, **named: Any) -> Any:
        served = by_program(noted, (x, v, *args), named)
        if served is not NotImplemented:
            return served
        call = _Call(gradient, 0, (x, *args), named, forward=True)
        return call.inputs.unflatten(call.run.jvp(_moving(call.inputs.match(v, "v"))))

    product.__doc__ = f"The product of the Hessian of {_name(function)} with a vector, made by wengert.hvp."
    noted = note(product, Derivation("hvp", function, 0))
    return noted


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """Return a function's value and its derivative along a direction, by forward mode, in one sweep for all results.

    Args:
        function: as for `jacobian`.
        primals: its arguments, in a tuple or list.
        tangents: the direction, in the structure of the primals.
        has_aux: the function returns a pair (value, auxiliary data).

    Returns:
        (value, derivative along the direction), and with `has_aux` the auxiliary data.

    Raises:
        ArgumentError, LengthError: tangents and primals differ in structure.
        OperandError, OperationError: as for `grad`.

    >>> jvp(lambda x, y: [x * y, x], (3.0, 2.0), (1.0, 0.0))
    ([6.0, 3.0], [2.0, 1.0])
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(f"{name} is {coerce.named(given)}; expected a tuple of arguments, such as (x, y)")
    compiled = None
    if not has_aux and len(primals) == len(tangents):
        compiled = _of_compiled("jvp", compiled_for_products(function, [*primals, *tangents]), len(primals))
    if compiled is not None:
        pushed: tuple[Any, ...] = compiled(*primals, *tangents)
        return pushed
    call = _Call(function, tuple(range(len(primals))), tuple(primals), {}, has_aux, "primals", forward=True)
    results = _pushed(call.run, call.outputs, call.inputs.match(tangents, "tangents"))
    return (*results, call.aux) if has_aux else results


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return a function's value and its pullback, by reverse mode; the pullback can be called any number of times.

    Args:
        function: as for `jacobian`.
        *primals: its arguments.
        has_aux: the function returns a pair (value, auxiliary data).

    Returns:
        (value, pullback), and with `has_aux` the auxiliary data. The pullback takes a cotangent in the structure of the
        value and returns a tuple with the cotangent of each argument.

    Raises:
        OperandError, OperationError: as for `grad`.
        ArgumentError, LengthError: from the pullback: cotangent and value differ in structure.

    >>> value, pullback = vjp(lambda x, y: [x * y, x], 3.0, 2.0)
    >>> value, pullback([1.0, 10.0])
    ([6.0, 3.0], (12.0, 3.0))
    """
    by = function if has_aux else compiled_for_products(function, primals)
    compiled = None if has_aux else _of_compiled("value", by, len(primals))
    if compiled is not None:
        value, given = compiled(*primals), tree_map(copied, primals)
        if type(value) is Run:  # no program served
            value, residuals = value
            if not any(isinstance(x, Value) for x in Numbers(given).leaves):  # else they are of copies of these
                return value, _pullback(*residuals)
        pulled = _of_compiled("vjp", by, len(primals))
        if pulled is not None:
            return value, lambda cotangent: pulled(*given, cotangent)
    call = _Call(function, tuple(range(len(primals))), primals, {}, has_aux, "primals")
    value, pullback = call.outputs.unflatten(call.run.values()), _pullback(call.run, call.outputs, call.inputs)
    return (value, pullback, call.aux) if has_aux else (value, pullback)


def _pushed(run: LinearMap, outputs: Numbers, tangents: list[Any]) -> tuple[Any, Any]:
    """Return a run's value and its derivative along a direction, in their structure."""
    along = run.jvp(_moving(tangents))
    return outputs.unflatten(run.values()), outputs.unflatten(along)


def _pullback(run: LinearMap, outputs: Numbers, inputs: Numbers) -> Function:
    def pullback(cotangent: Any) -> Any:
        """Return the cotangent of each argument, given that of the value."""
        given = outputs.match(cotangent, "the cotangent")
        return inputs.unflatten(run.vjp(dict(enumerate(given))))

    return pullback


def _of_compiled(kind: str, function: Any, count: int) -> Any:
    """Return for a compiled function of so many arguments the compiled function for `jvp`, for `vjp` (of the arguments
    and the cotangent), or for its value, from which `vjp` begins: a `Run` unless a program serves. None if it has to be
    followed operation by operation.
    """
    function = compiled_method(function)
    if not count or not is_compiled(function) or function.static:
        return None
    if modes.eager_only() or type(Value(0.0).data) is not float:  # another function that calls it is recorded
        return None
    own = spread(function.signature, count).parameters.values()
    positional = [x for x in own if x.kind <= x.POSITIONAL_OR_KEYWORD]
    if len(positional) < count:
        return None

    def product(*args: Any) -> Any:
        call = _Call(function, tuple(range(count)), args[:count], {}, False, "primals", forward=kind == "jvp")
        if kind == "jvp":
            return _pushed(call.run, call.outputs, call.inputs.match(args[count:], "tangents"))
        if kind == "vjp":
            return _pullback(call.run, call.outputs, call.inputs)(args[count])
        return Run(call.outputs.unflatten(call.run.values()), (call.run, call.outputs, call.inputs))

    return note(product, Derivation(kind, function, tuple(range(count))))


class Product(NamedTuple):
    """A derivative times a vector.

    Attributes:
        run: the linear map of what is differentiated.
        outputs: its results.
        inputs: its arguments.
        vector: a tangent of each input.
        values: the results' numbers.
        tangents: and their tangents.
    """

    run: LinearMap
    outputs: Numbers
    inputs: Numbers
    vector: list[float]
    values: list[Any]
    tangents: list[Any]

    def largest(self, number: int) -> float:
        """Return the largest term that one of the tangents was computed from."""
        return self.run.largest(number, dict(enumerate(self.vector)))


class _Call:
    """One call of a function, with new Values in place of the numbers of some arguments.

    `forward` is for forward mode: the derivative of a gradient is then taken from the run of the function itself.
    """

    def __init__(
        self,
        function: Function,
        argnums: int | Sequence[int],
        args: tuple[Any, ...],
        named: dict[str, Any],
        has_aux: bool = False,
        name: str = "",
        order: int = 1,
        forward: bool = False,
    ) -> None:
        self.run: LinearMap
        self.outputs: Numbers
        self.result: Any
        self.aux: Any
        if named:
            args, named = _by_position(function, args, named)
        single = not isinstance(argnums, (tuple, list))
        places = _places(function, argnums, args)
        chosen = args[places[0]] if single else tuple([args[place] for place in places])
        self.inputs = Numbers(chosen, name or (f"args[{places[0]}]" if single else "argument"))
        of = derivation_of(function) if forward and self._is_plain() else None
        is_gradient = of is not None and (of.kind, of.has_aux) == ("grad", has_aux)
        if of is not None and is_gradient and _places(of.function, of.argnums, args) == places:
            call = _Call(of.function, of.argnums, args, named, has_aux, order=2)
            _check_number(of.function, call.outputs, call.result)
            self.run, self.outputs, self.aux = linearize_gradient(call.run), call.inputs, call.aux
            return

        def on(values: list[Any]) -> list[Any]:
            def given() -> list[Any]:
                every, built = list(args), self.inputs.unflatten(values)
                for place, x in zip(places, [built] if single else built, strict=True):
                    every[place] = x
                return every

            self.result, self.aux = called(function, given(), named, given), None
            if has_aux:
                if not isinstance(self.result, tuple) or len(self.result) != 2:
                    raise ArgumentError(
                        f"has_aux expects a pair (value, auxiliary data); {_name(function)} returned "
                        f"{_described(self.result)}"
                    )
                self.result, self.aux = self.result
            self.outputs = Numbers(self.result, f"the result of {_name(function)}")
            return self.outputs.leaves

        self.run = linearize(on, self.inputs.leaves, order)
        if self.run.kind == "floats":
            self.aux = tree_map(number_of, self.aux)

    def _is_plain(self) -> bool:
        """Return True if all numbers are floats, and nobody sees or records each operation."""
        floats = not any(isinstance(x, Value) for x in self.inputs.leaves)
        return floats and not modes.eager_only() and type(Value(0.0).data) is float


def _check_number(function: Function, outputs: Numbers, result: Any) -> None:
    if not outputs.is_number():
        raise ArgumentError(
            f"a gradient needs a function that returns one number, and {_name(function)} returned "
            f"{_described(result)}; wengert.jacobian differentiates several results"
        )


class FunctionRun:
    """A run of a function by `OnValues`, from which its derivatives are computed.

    Args:
        derivations: the derivative, and what it is of.
        result: what it returned.
        start: what it was given.
        on_floats: it was given plain numbers, so that it does not tell the derivative.
    """

    def __init__(self, derivations: Sequence[Derivation], result: Any, start: Start, on_floats: bool = False) -> None:
        self.derivations = derivations
        self.result = result
        self.start = start
        self._product: Product | None = None  # once it has been asked for
        self.on_floats = on_floats
        self._linearized: list[tuple[LinearMap, Numbers, Numbers] | None] = [None] if on_floats else []  # likewise

    @property
    def linearized(self) -> tuple[LinearMap, Numbers, Numbers] | None:
        """The linear map of what the derivative is of, its outputs and inputs; None if this run does not tell."""
        if not self._linearized:
            self._linearized.append(self._linearize())
        return self._linearized[0]

    def _linearize(self) -> tuple[LinearMap, Numbers, Numbers] | None:
        first, last, start = self.derivations[0], self.derivations[-1], self.start
        order = len(self.derivations) + (last.kind == "hvp")
        is_told = order == 1 or (
            order == 2 and first.kind in ("grad", "hvp") and last.kind not in ("grad", "value_and_grad")
        )
        if not is_told or first.argnums != last.argnums:
            return None
        chosen = [start.args[n] for n in _places(first.function, first.argnums, start.args)]
        inputs = Numbers(tuple(chosen) if isinstance(first.argnums, (tuple, list)) else chosen[0])
        outputs = Numbers(self.result, f"the result of {_name(first.function)}")
        if first.kind in ("grad", "value_and_grad", "hvp"):
            _check_number(first.function, outputs, self.result)
        try:
            run = linear_map(inputs.leaves, outputs.leaves, start.began)
            return (run, outputs, inputs) if order == 1 else (linearize_gradient(run), inputs, inputs)
        except OpaqueError:  # a compiled function in it was not followed
            return None

    def derivative(self, *args: Any, **named: Any) -> Any:
        """Return the derivative, given its arguments; one beyond the second runs the function again."""
        last = self.derivations[-1]
        if last.kind == "sparse" or self.linearized is None:
            return last.derivative(*args, **named)
        run, outputs, inputs = self.linearized
        along = list(args[len(self.start.args) :])
        if last.kind == "hvp":
            _, v, *_ = signature_of(last.derivative).bind(*args, **named).arguments.values()
            return inputs.unflatten(run.jvp(_moving(inputs.match(v, "v"))))
        if last.kind == "jacobian":
            return _in_rows(run, outputs, inputs)
        if last.kind == "jvp":
            return _pushed(run, outputs, inputs.match(along, "tangents"))
        if last.kind == "vjp":
            return _pullback(run, outputs, inputs)(*along)
        if last.kind == "value":
            return Run(outputs.unflatten(run.values()), self.linearized)
        slopes = inputs.unflatten(run.vjp({0: 1.0}))
        return slopes if last.kind == "grad" else (run.values()[0], slopes)

    def product(self, along: Callable[[int], list[float]], *args: Any, **named: Any) -> Product:
        """Return the derivative times a vector, the first one that is asked for: see `product`."""
        if self._product is None:
            if self.linearized is None:
                self._product = product(self.derivations[-1], along, *args, **named)
            else:
                self._product = _product(*self.linearized, along)
        return self._product


def product(derivation: Derivation, along: Callable[[int], list[float]], *args: Any, **named: Any) -> Product:
    """Run a function, and return its derivative times a vector, without the derivative itself.

    Args:
        derivation: the derivative.
        along: returns a direction for so many inputs.
        *args: the arguments of the derivative.
        **named: likewise.
    """
    call = _Call(derivation.function, derivation.argnums, args, named, forward=True)
    return _product(call.run, call.outputs, call.inputs, along)


def _product(run: LinearMap, outputs: Numbers, inputs: Numbers, along: Callable[[int], list[float]]) -> Product:
    vector = along(len(inputs.leaves))
    return Product(run, outputs, inputs, vector, run.values(), run.jvp(dict(enumerate(vector))))


def _in_rows(run: LinearMap, outputs: Numbers, inputs: Numbers) -> Any:
    return assembled("jacobian", outputs, inputs, [x for row in run.jacobian() for x in row])


def _moving(tangents: list[Any]) -> dict[int, Any]:
    """Return the tangents that are not 0; others contribute nothing, even where a partial derivative is infinite."""
    return {number: t for number, t in enumerate(tangents) if isinstance(t, Value) or t != 0.0}


def _places(function: Function, argnums: int | Sequence[int], args: Sequence[Any]) -> list[int]:
    numbers: Sequence[Any] = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    places = [_place(function, number, args) for number in numbers]
    if len(set(places)) < len(places):
        raise ArgumentError(f"argnums is {argnums!r}, which names an argument twice: name each once")
    return places


def _place(function: Function, number: Any, args: Sequence[Any]) -> int:
    """Return the index of an argument from an item of argnums."""
    count = len(args)
    if not isinstance(number, int) or not -count <= number < count:
        raise ArgumentError(
            f"argnums is {number!r}, and {_name(function)} was called with {counted(count, 'positional argument')}: "
            "count them from 0, or from the end by -1"
        )
    return number % count


def _by_position(function: Function, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    """Make keyword arguments positional where the signature allows it, since `argnums` counts positions."""
    try:
        bound = signature(function).bind(*args, **named)
    except (TypeError, ValueError):
        return args, named  # the call will raise the error
    return bound.args, bound.kwargs


def _described(result: Any) -> str:
    if result is None:
        return "None (was its return forgotten?)"
    if isinstance(result, (list, tuple, dict)):
        return f"a {type(result).__name__} of {len(result)}"
    return f"an array of the shape {result.shape}" if hasattr(result, "shape") else coerce.named(result)


def _name(function: Any) -> str:
    name = getattr(function, "__name__", "")
    return "the function" if name in ("", "<lambda>") else name


def _like(function: Any, what: str, derivation: Derivation) -> Callable[[Function], Function]:
    """Give a derivative the name and the signature of its function."""

    def dressed(derivative: Function) -> Function:
        functools.update_wrapper(derivative, function)
        derivative.__doc__ = f"The {what} of {_name(function)}, made by wengert.derivatives.grad."
        return note(derivative, derivation)

    return dressed
