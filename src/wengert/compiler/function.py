"""`compile`, the decorator, and `Compiled`, the function that it returns."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pickle
import sys
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from wengert import errors
from wengert._forks import no_fork
from wengert._reserve import MIB, reserve
from wengert._signatures import names_argument
from wengert.compiler.backends import BACKENDS, Backend, default_backend
from wengert.compiler.call import CallPath
from wengert.derivatives import signature_of

__all__ = ["Compiled", "compile", "compiled_quietly"]

IMPORTS = 64 * MIB  # of what the first compiled function imports, NumPy's extensions included
CHECKS = ("powers", "first")
OBJECTS = 8  # the derivatives of the methods of so many objects are kept, and with them the objects
DEFERRED: tuple[tuple[Callable[[Any], bool], str, str], ...] = (  # functions whose calls run nothing, and what to write
    (inspect.isgeneratorfunction, "a generator function", "return a list instead of yielding"),
    (inspect.iscoroutinefunction, "a coroutine function (async def)", "compile a plain def, and await outside it"),
    (inspect.isasyncgenfunction, "an asynchronous generator function", "compile a plain def that returns a list"),
)


def compile(
    function: Callable[..., Any] | None = None,
    *,
    static: Sequence[str] = (),
    backend: str = "auto",
    checks: str = "powers",
    dtype: str = "float64",
    wait: Any = None,
) -> Any:
    """Trace a function of scalars once, and run it as an array program from then on.

    A call returns the same as before; `backward()` of a result computes the gradients of captured parameters and of
    Values among the arguments. A function that branches on numbers is recorded once per branch (a specialization). A
    function that cannot be compiled runs unchanged, and `report()` says why. Needs NumPy.

    Args:
        function: plain scalar code for one example, which returns a Value or a number, or lists, tuples, dicts and
            arrays of them.
        static: the names of arguments that are part of the program, such as a size or a flag.
        backend: "auto" follows a rule of counts: the first call with a signature is recorded, and from the second call
            on machine code runs (if llvmlite is installed); what costs more to prepare than a function's budget allows
            waits until its calls have taken longer; `report()` says what runs and why. "numpy", "native" (machine code)
            and "xla" (JAX) run the program whenever it is valid.
        checks: the calls that also run the function itself and compare: "powers" checks the first four calls of each
            specialization and then each call whose number is a power of two; "first" checks only the first four.
        dtype: the type of numbers that the program computes with: "float64", or "float32" with the back end "xla".
            Results are Python floats in any case.
        wait: no longer supported.

    Raises:
        MissingExtraError: no back end is available, as NumPy is not installed.
        ArgumentError: `static` names an argument that the function does not have; `backend`, `checks` or `dtype` is
            unknown; or the function is a generator function or `async`.

    >>> from wengert import Value
    >>> w, b = Value(2.0), Value(1.0)
    >>> @compile
    ... def loss(x, y):
    ...     return (w * x + b - y) ** 2
    >>> total = loss.mean([1.0, 2.0, 3.0], [3.0, 5.0, 8.0])
    >>> total.backward()
    >>> round(total.data, 6), round(w.grad, 6)
    (0.333333, -2.0)
    """
    if backend not in (backends := ("auto", *BACKENDS)):
        raise errors.ArgumentError(f"backend is {backend!r}; expected one of {', '.join(map(repr, backends))}")
    if checks not in CHECKS:
        raise errors.ArgumentError(f"checks is {checks!r}; expected {' or '.join(map(repr, CHECKS))}")
    if wait is not None:
        raise errors.ArgumentError(
            "wait is no longer supported: the calling thread makes machine code, when the counts say so (see report())."
            " To make it in advance, call prepare(*args) on the compiled function; backend='native' makes it at the "
            "second call, independent of the counts"
        )
    again = functools.partial(compile, static=static, backend=backend, checks=checks, dtype=dtype)
    if function is None:
        return again
    if isinstance(function, (staticmethod, classmethod)):  # decorated in the other order
        kind = _ClassMethod if isinstance(function, classmethod) else staticmethod
        return kind(again(function.__func__))
    _refuse_deferred(function)
    if hasattr(type(function), "_compiled_with"):  # a sparse derivative, whose entries are what is compiled
        return function._compiled_with(static=static, backend=backend, checks=checks, dtype=dtype)  # type: ignore[attr-defined]
    pinned = BACKENDS.get(backend)
    if pinned is None and dtype != "float64":
        raise errors.ArgumentError(f'dtype is {dtype!r}; only backend="xla" computes in another type than "float64"')
    return Compiled(function, static, pinned and pinned.typed(dtype), checks)


def compiled_quietly(function: Callable[..., Any]) -> Compiled:
    """Compile a function that nobody has asked to compile, so that nobody is told what runs uncompiled."""
    compiled = Compiled(function)
    compiled._server.fallback.is_quiet = True
    return compiled


def _refuse_deferred(function: Any) -> None:
    """Raise an error for a function whose call does not run its body, such as a generator function.

    Raises:
        ArgumentError: it is one, or a method or a partial of one, or an object whose `__call__` is one.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    for is_one, kind, instead in DEFERRED:
        if is_one(function) or is_one(type(function).__call__):
            name = getattr(function, "__name__", type(function).__name__)
            raise errors.ArgumentError(f"{name} is {kind}, whose call computes nothing yet: {instead}")


class Compiled(CallPath):
    """A compiled function. Call it as before, or on a whole batch with `mean`, `sum` or `map`."""

    def __init__(
        self,
        function: Callable[..., Any],
        static: Sequence[str] = (),
        backend: Backend | None = None,
        checks: str = "powers",
    ) -> None:
        self.pinned: bool = backend is not None  # else the counts decide
        self.backend: Backend = default_backend() if backend is None else backend
        self.backend.require()
        self.checks: str = checks
        functools.update_wrapper(self, function)
        self.signature: inspect.Signature = signature_of(function)
        self.static: tuple[str, ...] = (static,) if isinstance(static, str) else tuple(static)
        for name in self.static:
            if not names_argument(self.signature, name):
                raise errors.ArgumentError(f"static names {name!r}, but {function.__name__} has no such argument")
        if "wengert.compiler.serve" not in sys.modules:
            reserve(IMPORTS, "the compiler's modules")
        with no_fork:
            from wengert.compiler.serve import Server

        self._derivatives: dict[Any, Compiled] = {}
        self._bound: dict[int, Compiled] = {}  # see `_bound_to`
        self.begin(function, Server(self, function))

    def mean(self, *args: Any, **named: Any) -> Any:
        """Return the mean of the results over a batch, as one Value.

        Args:
            *args: for each argument all examples along the first axis: an array, a list of numbers or rows, or a tuple
                or dict of these.
            **named: arguments by name.

        Raises:
            DataError: the arguments differ in the number of examples, a batch is empty, or its rows differ in length.
        """
        return self.call_batch(args, named, "mean")

    def sum(self, *args: Any, **named: Any) -> Any:
        """Return the sum of the results over a batch, as one Value; arguments and errors are those of `mean`."""
        return self.call_batch(args, named, "sum")

    def map(self, *args: Any, **named: Any) -> Any:
        """Return the results for a batch as a NumPy array with the examples along the first axis, without a graph.

        Where a result is no regular array, such as a dict, or a pair of a number and a list, its lists, tuples and
        dicts stay, with an array for each number or regular list in them: `compile(value_and_grad(f)).map` returns the
        array of the values and that of the gradients.

        Raises:
            DataError: as for `mean`.
            ArgumentError: the results differ in structure from example to example.
        """
        return self.call_batch(args, named, "map")

    def prepare(self, *args: Any, **named: Any) -> None:
        """Record, compile and check in advance for calls with such arguments, so that the first one is fast too.

        The function runs on copies of the lists, tuples, dicts and arrays among the arguments, and no call is counted.
        Machine code is made for any number of steps. A function that cannot be compiled warns, as at a call.

        Other objects are not copied, as what is compiled is for these objects. A function that changes one of them, a
        global variable or anything else outside itself has run once then; it is left to the calls, each of which does
        what the function does.
        """
        self._server.prepare(args, named)

    def source(self, language: str = "numpy", *, gradient: bool = True) -> str:
        """Return the array program of the last call as runnable source code.

        A C function returns the one number that there is; otherwise it fills an array, and returns a status that its
        comment explains.

        Args:
            language: "numpy", "torch", "jax" or "c".
            gradient: True includes the derivatives of one number with respect to the parameters (NumPy and C; PyTorch
                and JAX differentiate by themselves).

        Raises:
            ArgumentError: the language is unknown or cannot express an operation of the user's own, or nothing has been
                compiled yet.
        """
        source: str = self._server.source(language, gradient)
        return source

    def to_jax(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return a JAX function for calls like the last one, ``function(parameters, *arguments)``, and the parameters.

        If the last call was on a batch, it takes batches and returns the results of all examples. The result is nan
        where the recording is not valid, as for an example that takes another branch.

        Raises:
            MissingExtraError: JAX is not installed.
            ArgumentError: nothing has been compiled yet, or the function has several specializations.
        """
        errors.require("jax", "xla")
        from wengert.compiler.export import to_jax

        return to_jax(self._server)

    def to_torch(self) -> Any:
        """Return a `torch.nn.Module` for calls like the last one, in double precision; otherwise like `to_jax`."""
        errors.require("torch", "torch")
        from wengert.compiler.export import RecordedModule

        return RecordedModule(self._server)

    def _compiled_derivative(self, key: Any, function: Callable[..., Any]) -> Compiled:
        """Compile a derivative of this function in the same way; the same one for each key."""
        return self._derivatives.get(key) or self._derivatives.setdefault(key, self._again(function))

    def _again(self, function: Callable[..., Any]) -> Compiled:
        """Compile another function in the same way."""
        static = [name for name in self.static if names_argument(signature_of(function), name)]
        return Compiled(function, static, self.backend if self.pinned else None, self.checks)

    def _bound_to(self, instance: Any) -> Compiled:
        """Compile the method of one object, whose derivatives it keeps; the same one for the last few objects."""
        key = id(instance)  # of an object that lives as long as its entry
        bound = self._bound.pop(key, None) or self._again(MethodType(self.function, instance))
        self._bound[key] = bound
        if len(self._bound) > OBJECTS:
            self._bound.pop(next(iter(self._bound)), None)
        return bound

    def report(self) -> str:
        """Describe what was compiled: calls and checks, what runs and by which rule, the sizes of the programs, guards,
        and the reason if the function runs uncompiled.
        """
        report: str = self._server.report()
        return report

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a compiled method to its object."""
        return self if instance is None else Bound(self, instance)

    def __reduce__(self) -> str:
        """Pickle the function by its name, like any function: another process imports it and records it again.

        Raises:
            PicklingError: it cannot be found by a name.
        """
        module = sys.modules.get(self.__module__)
        names = [name for name, x in vars(module).items() if x is self] if module else []
        for name in (getattr(self, "__qualname__", ""), *names):
            if _attribute(module, name) is self:
                return name
        raise pickle.PicklingError(
            f"{self!r} cannot be pickled: another process could not import it by its name. Decorate a function at the "
            "top level of a module, or assign the result of compile to a name there"
        )

    def __copy__(self) -> Compiled:
        """Compile the same function again, without its recordings."""
        return self._again(self.function)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        """Compile a deep copy of the function, without recordings. `copy.deepcopy` does not copy plain functions, but
        bound methods and models.
        """
        return self._again(copy.deepcopy(self.function, memo))

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__name__', 'function')}>"


class _ClassMethod(classmethod):  # type: ignore[type-arg]
    """A class method whose function is compiled; from Python 3.13 on `classmethod` itself asks it no more to bind."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.__func__.__get__(type(instance) if owner is None else owner)


class Bound:
    """A compiled method bound to an object; each object has its own recordings."""

    _is_method = True  # as an argument it is known by its function and its object

    def __init__(self, compiled: Compiled, instance: Any) -> None:
        self.compiled: Compiled = compiled
        self.instance: Any = instance

    @property
    def __self__(self) -> Any:
        """The object, as of any method."""
        return self.instance

    @property
    def __func__(self) -> Compiled:
        """The compiled function, as of any method."""
        return self.compiled

    @property
    def function(self) -> MethodType:
        """The method as it was written."""
        return MethodType(self.compiled.function, self.instance)

    @property
    def signature(self) -> inspect.Signature:
        """The arguments of a call, without the object."""
        return signature_of(self.function)

    __signature__ = signature

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the method as before."""
        return self.compiled(self.instance, *args, **named)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled function; `mean`, `sum`, `map` and `prepare` get the object first."""
        if name.startswith("__") and name not in functools.WRAPPER_ASSIGNMENTS:
            raise AttributeError(name)  # `copy` looks these up before the object has attributes
        attribute = getattr(self.compiled, name)
        return functools.partial(attribute, self.instance) if name in ("mean", "sum", "map", "prepare") else attribute

    def __eq__(self, other: object) -> bool:
        """Return True for the same method of the same object, like any method."""
        return type(other) is Bound and self.compiled is other.compiled and self.instance is other.instance

    def __hash__(self) -> int:
        return hash((self.compiled, id(self.instance)))

    def _compiled_derivative(self, key: Any, function: Callable[..., Any]) -> Compiled:
        """Compile a derivative of this method in the same way; the same one for each key and object."""
        return self.compiled._bound_to(self.instance)._compiled_derivative(key, function)

    def __reduce__(self) -> tuple[Any, tuple[Any, str]]:
        """Pickle the object and the method's name, like any method.

        Raises:
            PicklingError: the object has no such method.
        """
        names = [name for kind in type(self.instance).__mro__ for name, x in vars(kind).items() if x is self.compiled]
        for name in (getattr(self.compiled, "__name__", ""), *names):
            if getattr(_attribute(self.instance, name), "compiled", None) is self.compiled:
                return getattr, (self.instance, name)
        raise pickle.PicklingError(
            f"{self.compiled!r} cannot be pickled: it is not a method of {type(self.instance).__name__}"
        )

    def __dir__(self) -> list[str]:
        """List the names of both, for completion."""
        return sorted({*super().__dir__(), *dir(self.compiled)})


def _attribute(x: Any, path: str) -> Any:
    """Look up a dotted name; None if it does not exist."""
    try:
        return operator.attrgetter(path)(x)
    except AttributeError:
        return None
