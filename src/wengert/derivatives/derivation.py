"""What a derivative is of: the function, the kind of derivative, and the arguments to differentiate with respect to.

`grad`, `jacobian` and the like note it on the functions that they return, so that `compile` can record the function
itself and differentiate the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from importlib import import_module  # `compile`, which stands on derivatives, records what takes no Values
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert import modes
from wengert._signatures import signature as plain_signature
from wengert._signatures import spread
from wengert.derivatives.pytree import Numbers, array_of, is_array, tree_map
from wengert.engine import Value
from wengert.errors import OperandError, OperationError, WengertError
from wengert.node import settle

if TYPE_CHECKING:
    import inspect

__all__ = ["PRODUCTS", "Derivation", "OnValues", "Run", "Start", "assembled", "called", "derivation_of"]
__all__ += ["CaughtError", "codes_of", "compiled_method", "copied", "floats_only", "note_floats_only", "takes_floats"]
__all__ += ["derivations_of", "directions_of", "entries", "is_compiled", "note", "places_of"]
__all__ += ["result_of", "signature_of"]

Function = Callable[..., Any]
PRODUCTS = ("hvp", "jvp", "vjp", "value")  # the last derivative of a function, if at all; see `signature_of`


class Derivation(NamedTuple):
    """What a derivative is of, and its kind: grad, value_and_grad, jacobian, hvp, jvp, vjp, value, or sparse (see
    `entries_of`). Those of `hvp`, `jvp` and `vjp` take directions too: see `signature_of`.
    """

    kind: str
    function: Function
    argnums: int | Sequence[int]
    has_aux: bool = False
    derivative: Any = None  # the derivative itself, a function


def note(derivative: Function, derivation: Derivation) -> Function:
    """Note on a derivative what it is of, and return it; that of a compiled function is compiled, too."""
    derivative.__derivation__ = derivation._replace(derivative=derivative)  # type: ignore[attr-defined]
    function: Any = compiled_method(derivation.function)
    if not is_compiled(function):
        return derivative
    compiled: Function = function._compiled_derivative(
        (derivation.kind, repr(derivation.argnums), derivation.has_aux), derivative
    )
    return compiled


def derivation_of(function: Any) -> Derivation | None:
    """Return what a function is the derivative of; None if it is none."""
    function = compiled_method(function)
    function = function.function if is_compiled(function) else function
    derivation: Derivation | None = getattr(function, "__dict__", {}).get("__derivation__")
    if derivation is None or derivation.derivative is function:
        return derivation
    derivative = derivation.derivative
    if not isinstance(function, FunctionType) or function.__code__ is not getattr(derivative, "__code__", None):
        return None  # `functools.wraps` has copied the note
    own = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))  # a copy that is traced
    return derivation._replace(function=own["function"].cell_contents, derivative=function)


def derivations_of(function: Any) -> tuple[Any, list[Derivation]]:
    """Return the function that is differentiated, and its derivatives, the first one first."""
    derivations: list[Derivation] = []
    while (derivation := derivation_of(function)) is not None:
        derivations.append(derivation)
        function = derivation.function
    function = compiled_method(function)
    return (function.function if is_compiled(function) else function), derivations[::-1]


def signature_of(function: Function) -> inspect.Signature:
    """Return the signature of a function; of one in C that does not say what it takes, that it takes any number of
    arguments by position. A product with a vector takes directions: `hvp` one after the first argument, `jvp` one for
    each argument after all of them, `vjp` one after all of them.

    Raises:
        TypeError: it is no function.
    """
    derivation = derivation_of(function)
    if derivation is None or derivation.kind not in PRODUCTS:
        try:
            return plain_signature(function)
        except ValueError:  # of a function in C
            from inspect import Parameter, Signature  # 5 ms, for a program that may never ask

            return Signature([Parameter("xs", Parameter.VAR_POSITIONAL)])
    signature = signature_of(derivation.function)
    given, directions = _given_and_directions(derivation, signature)
    if derivation.kind == "hvp":
        others = list(spread(signature, 1, ends=False).parameters.values())[1:]
        return signature.replace(parameters=[*given, *directions, *others])
    required = [x.replace(default=signature.empty) for x in given]
    return signature.replace(parameters=[*required, *directions])


def _given_and_directions(
    derivation: Derivation, signature: inspect.Signature
) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """Return the parameters of a product with a vector that its function has, of this signature, and its directions."""
    count = len(derivation.argnums) if isinstance(derivation.argnums, tuple) else 1
    given = list(spread(signature, count).parameters.values())[:count]
    along = {"jvp": count, "value": 0}.get(derivation.kind, 1)
    names = [f"v{n}" for n in range(along)] if along > 1 else ["v"] * along
    while not signature.parameters.keys().isdisjoint(names):
        names = [name + "_" for name in names]
    return given, [given[0].replace(name=name, default=signature.empty) for name in names]


def places_of(argnums: Any, count: int) -> list[int] | None:
    """List the indices of the arguments that argnums names, of so many; None if it names another, or one twice.

    Args:
        argnums: as for `grad`.
        count: the number of arguments.
    """
    named = [*argnums] if isinstance(argnums, (tuple, list)) else [argnums]
    places = [n + count if type(n) is int and n < 0 else n for n in named]
    are_distinct = all(type(n) is int and 0 <= n < count for n in places) and len({*places}) == len(places)
    return places if are_distinct else None


def directions_of(function: Function) -> list[str]:
    """List the names of the arguments that are directions, for a product with a vector."""
    derivation = derivation_of(function)
    if derivation is None or derivation.kind not in PRODUCTS:
        return []
    _, directions = _given_and_directions(derivation, signature_of(derivation.function))
    return [direction.name for direction in directions]


def is_compiled(function: Any) -> bool:
    """Return True for what `compile` returns."""
    return hasattr(type(function), "_compiled_derivative")


def compiled_method(function: Any) -> Any:
    """Return a compiled method for a method of Python's whose function is compiled, as `classmethod` binds it from
    Python 3.13 on; anything else as it is.
    """
    if type(function) is MethodType and is_compiled(function.__func__):
        return function.__func__.__get__(function.__self__)
    return function


class Run(NamedTuple):
    """What a function returns whose run a derivative continues; a program that stands for it returns the result alone.

    Attributes:
        result: the result.
        residuals: what a derivative needs of the run: a `Start`, or for `vjp` a linear map, its outputs and its inputs.
    """

    result: Any
    residuals: Any


def result_of(x: Any) -> Any:
    """Return the result of a `Run`, and anything else as it is."""
    return x.result if type(x) is Run else x


class Start(NamedTuple):
    """What a run by `OnValues` was given: the arguments by position, in containers that the function does not reach,
    and the tick at which it began.
    """

    args: list[Any]
    began: int


class OnValues:
    """Calls a function with Values in place of the numbers in some arguments, and returns a `Run` with its `Start`.

    Args:
        function: the function, or its proxy in a recorded run.
        signature: of the call.
        names: the arguments whose numbers are replaced.
        extras: the arguments that the function does not get.
        on_floats: True to pass the numbers as they are, to a function that takes plain numbers only.
    """

    def __init__(
        self,
        function: Function,
        signature: inspect.Signature,
        names: Collection[str],
        extras: Collection[str] = (),
        on_floats: bool = False,
    ) -> None:
        self.function: Function = function
        self.signature: inspect.Signature = signature
        self.names: Collection[str] = names
        self.extras: Collection[str] = extras
        self.on_floats: bool = on_floats
        functools.update_wrapper(self, function, updated=())

    def of(self, function: Function) -> OnValues:
        """Return the same for another function."""
        return OnValues(function, self.signature, self.names, self.extras, self.on_floats)

    def __call__(self, *args: Any, **named: Any) -> Run:
        """Call the function."""
        import inspect

        given = self.signature.bind(*args, **named).arguments
        first = Value(0.0)
        began, recorder = first._made, getattr(first.data, "recorder", None)
        kept = given.copy()
        for name in self.names:
            if name in given and self.on_floats:  # the function may change its own
                given[name] = tree_map(_as_float, given[name]) if recorder is None else given[name]
            elif name in given:
                numbers = Numbers(given[name], name)
                values = [x if isinstance(x, Value) else Value(x) for x in settle(list(numbers.leaves))]
                given[name], kept[name] = numbers.unflatten(values), numbers.unflatten(values)
                if recorder is not None:  # traced numbers, which are Values for the function
                    recorder.lifted_values += values
                    recorder.plain.difference_update(map(id, values))
        own = self.signature
        if self.extras:
            own = own.replace(parameters=[x for name, x in own.parameters.items() if name not in self.extras])
        passed, fresh = inspect.BoundArguments(own, given), inspect.BoundArguments(own, kept)
        start = Start([*fresh.args], began)
        with modes.recorded():  # also inside `no_grad()`
            if self.on_floats:
                return Run(self.function(*passed.args, **passed.kwargs), start)
            return Run(called(self.function, passed.args, passed.kwargs, lambda: fresh.args), start)


floats_only: set[Any] = set()  # the `codes_of` functions that took plain numbers only
MOST = 1000  # how many of these are kept
DEPTH = 4  # of functions in variables of functions, which are looked at


def codes_of(function: Any, depth: int = 0) -> tuple[Any, ...] | None:
    """Return the code of a function, a method, an object that is called, or of what is compiled or a partial calls,
    with those of the functions in its variables; a function in C or a class itself, and None for others.
    """
    while is_compiled(function) or isinstance(function, (functools.partial, MethodType)):
        if isinstance(function, MethodType):
            function = function.__func__
        else:
            function = function.func if isinstance(function, functools.partial) else function.function
    if type(function) in (BuiltinFunctionType, type) or type(function).__name__ == "ufunc":
        return (function,)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if type(code) is not CodeType:
        return None
    inner: list[Any] = []
    for cell in getattr(function, "__closure__", None) or () if depth < DEPTH else ():
        try:
            held = cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
        if type(held) in (FunctionType, MethodType, BuiltinFunctionType) or is_compiled(held):
            inner.append(codes_of(held, depth + 1))
    return (code, *inner)


def note_floats_only(function: Any) -> None:
    """Note that a function took plain numbers only."""
    if len(floats_only) >= MOST:
        floats_only.clear()
    if (codes := codes_of(function)) is not None:
        floats_only.add(codes)


def takes_floats(function: Any) -> bool:
    """Return True if a function was called with Values before, and took plain numbers only."""
    return codes_of(function) in floats_only


def copied(x: Any) -> Any:
    """Copy an array; anything else as it is."""
    return x.copy() if is_array(x) else x


def _as_float(x: Any) -> Any:
    """Return the float that a Value of this int has; anything else copied."""
    return float(x) if isinstance(x, int) else copied(x)


class CaughtError(ArithmeticError):
    """A watched function may catch an error that plain numbers raise, and Values do not: it cannot be recorded."""


def called(function: Function, args: Sequence[Any], named: dict[str, Any], fresh: Callable[[], Sequence[Any]]) -> Any:
    """Call a function with Values, or record it on their numbers if it takes plain numbers only, or catches an error
    that they do not raise. `fresh` returns the positional arguments as they were, for the call may have changed them.
    An error of those functions of NumPy that take no objects gets advice.
    """
    if floats_only and takes_floats(function):
        result = import_module("wengert.compiler.record.floats").run_within(function, args, named)
        if result is not NotImplemented:
            return result
    try:
        return _as_it_catches(function, args, named, fresh)
    except (TypeError, AttributeError, ValueError) as error:
        if "from dtype('O')" in str(error) and not hasattr(error, "__notes__"):
            error.add_note(
                "This function of NumPy takes no Values: write wengert.solve, wengert.inv or wengert.det in place of "
                "np.linalg's, and wengert.interp in place of np.interp of an array"
            )
        if isinstance(error, WengertError) and not isinstance(error, OperandError):  # not of a Value as a plain number
            raise
        try:
            floats = import_module("wengert.compiler.record.floats")
        except ImportError as missing:  # of NumPy
            error.add_note(f"A function that takes plain numbers only is recorded, and {missing}")
            raise error from None
        return floats.run_on_floats(function, fresh(), named, error)


def _as_it_catches(function: Function, args: Sequence[Any], named: dict[str, Any], fresh: Any) -> Any:
    """Call a function. Where it may catch an error that plain numbers raise, and Values do not, it is recorded on the
    numbers, if it goes on after that; likewise where it has caught the error of a Value as a plain number.

    Raises:
        CaughtError: it may go on, and this run is watched.
    """
    result, caught = modes.called(function, args, named)
    if not caught or hasattr(function, "__derivation__") or type(Value(0.0).data) is not float:  # a recording
        return result
    try:
        floats = import_module("wengert.compiler.record.floats")
    except ImportError:  # of NumPy, without which nothing is recorded
        return result
    if caught is modes.Caught.ERROR_OF_VALUES:
        problem = OperandError()
        try:
            return floats.run_on_floats(function, fresh(), named, problem)
        except OperationError:  # numbers leave what is recorded
            raise
        except Exception:
            if hasattr(problem, floats.MARK):
                raise
            return result
    goes_on, of_floats = floats.run_as_it_catches(function, fresh(), named)
    return of_floats if goes_on else result


def assembled(kind: str, outputs: Numbers, inputs: Numbers, numbers: Sequence[Any]) -> Any:
    """Return a derivative in its structure, from its numbers: those of a Jacobian row by row."""
    if kind == "value_and_grad":
        return numbers[0], inputs.unflatten(numbers[1:])
    if kind in ("jvp", "value"):
        count = len(outputs.leaves)
        value = outputs.unflatten(numbers[:count])
        return value if kind == "value" else (value, outputs.unflatten(numbers[count:]))
    if kind == "sparse":
        return array_of(numbers, (len(numbers),))
    if kind != "jacobian":
        return inputs.unflatten(numbers)
    width = len(inputs.leaves)
    rows = [numbers[at : at + width] for at in range(0, len(numbers), width)] if width else [[] for _ in outputs.leaves]
    arrays = inputs.with_arrays()  # for an array of results: its rows are the results, as those of a list are

    def of_result(out: slice, of: tuple[int, ...] | None) -> Any:
        return (inputs if of is None else arrays).map(lambda by, shape: entries(rows[out], by, of, shape))

    return outputs.map(of_result)


def entries(rows: Sequence[Sequence[Any]], by: slice, *shapes: tuple[int, ...] | None) -> Any:
    """Return the derivatives of one number or array with respect to another."""
    if shapes == (None, None):
        return rows[0][by.start]
    return array_of([x for row in rows for x in row[by]], tuple([n for shape in shapes if shape for n in shape]))
