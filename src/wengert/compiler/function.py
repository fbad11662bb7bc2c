"""`compile`: the decorator, what it remembers, and when it leaves the work to the engine."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

from wengert import errors
from wengert.compiler.backends import BACKENDS, Backend, default_backend
from wengert.compiler.callpath import CallPath

__all__ = ["Compiled", "compile"]

CHECKS = ("powers", "first")
DEFERRED: tuple[tuple[Callable[[Any], bool], str, str], ...] = (  # functions whose calls run nothing, what to write
    (inspect.isgeneratorfunction, "a generator function", "return a list where it yields"),
    (inspect.iscoroutinefunction, "a coroutine function (async def)", "compile a plain def, and await outside of it"),
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
    """Record a function of scalars once and run it as an array program from then on.

    The result of a call is a Value as before, whose `backward()` gives the captured parameters, and Values among the
    arguments, their gradients. Code that branches by numbers is recorded once for each specialization; what cannot
    be recorded runs as it stands, and `report()` says why. Needs NumPy.

    Args:
        function: plain scalar code: one example in, a Value out (or lists of Values, for `map`).
        static: the names of arguments that are part of the program, as a size or a flag is.
        backend: "auto" follows a rule of counts: the first call with arguments of a kind is recorded, and from the
            second on machine code serves (where llvmlite is installed), at once for a program of at most 300 steps,
            later for a larger one; `report()` says what serves, and by which clause. "numpy", "native" (machine code)
            and "xla" (by JAX) serve whenever the program holds.
        checks: which calls also run the function and compare: "powers" the first four of each specialization, and
            then each call whose number is a power of two; "first" the first four alone.
        dtype: the numbers that the program computes with: "float64", or "float32" where the back end is "xla". Results
            are floats of Python's all the same.
        wait: is gone.

    Raises:
        MissingExtraError: no back end can run here: NumPy is not installed.
        ArgumentError: `static` names an argument that the function does not have, or there is no such back end, or it
            has no such numbers, or there are no such checks; or it is a generator function or an `async` one.

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
    if backend not in (known := ("auto", *BACKENDS)):
        raise errors.ArgumentError(f"backend is {backend!r}; expected one of {', '.join(map(repr, known))}")
    if checks not in CHECKS:
        raise errors.ArgumentError(f"checks is {checks!r}; expected {' or '.join(map(repr, CHECKS))}")
    if wait is not None:
        raise errors.ArgumentError(
            "wait is gone: machine code is made by the thread that calls, when the counts say so (see report()). To "
            "have it made ahead of time call prepare(*args) of the compiled function; backend='native' makes it at the "
            "second call, whatever the counts"
        )
    if function is None:
        return functools.partial(compile, static=static, backend=backend, checks=checks, dtype=dtype)
    _refuse_deferred(function)
    pinned = BACKENDS.get(backend)
    if pinned is None and dtype != "float64":
        raise errors.ArgumentError(f'dtype is {dtype!r}: anything but "float64" needs backend="xla"')
    return Compiled(function, static, pinned and pinned.typed(dtype), checks)


def _refuse_deferred(function: Any) -> None:
    """Refuse a function of which a call only begins what a loop or an `await` runs later.

    Raises:
        ArgumentError: it is one, or a method or a partial of one, or an object that is called as one.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    for is_one, kind, instead in DEFERRED:
        if is_one(function) or is_one(type(function).__call__):
            name = getattr(function, "__name__", type(function).__name__)
            raise errors.ArgumentError(f"{name} is {kind}, of which a call computes nothing yet: {instead}")


class Compiled(CallPath):
    """A function that `compile` has decorated. Call it as before, or on a whole batch."""

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
        self.signature: inspect.Signature = inspect.signature(function)
        self.static: tuple[str, ...] = (static,) if isinstance(static, str) else tuple(static)
        for name in self.static:
            if name not in self.signature.parameters:
                raise errors.ArgumentError(f"static names {name!r}, and {function.__name__} has no such argument")
        from wengert.compiler.runtime import Runtime

        self._runtime = Runtime(self, function)
        self.begin(function, self._runtime)

    def mean(self, *args: Any, **named: Any) -> Any:
        """The mean over a batch, as one Value.

        Args:
            *args: for each argument all examples along the first axis: an array, a list of numbers or rows, or a tuple
                or dict of such.
            **named: the same, by name.

        Raises:
            DataError: the arguments differ in the number of examples, a batch is empty, or its rows are ragged.
        """
        return self.call_batch(args, named, "mean")

    def sum(self, *args: Any, **named: Any) -> Any:
        """The sum over a batch, as one Value; arguments and errors as of `mean`."""
        return self.call_batch(args, named, "sum")

    def map(self, *args: Any, **named: Any) -> Any:
        """The function's values for a batch, as a NumPy array with the examples along the first axis, and no graph."""
        return self.call_batch(args, named, "map")

    def prepare(self, *args: Any, **named: Any) -> None:
        """Record, compile and compare for a call with such arguments, so that it takes no longer than later ones.

        For loops that cannot wait. The function runs on copies of the arguments, and no call is counted; machine code
        is made however many steps there are. What cannot be compiled says so, as at a call.
        """
        self._runtime.prepare(args, named)

    def source(self, language: str = "numpy", *, gradient: bool = True) -> str:
        """The array program of the last call as runnable code.

        Args:
            language: "numpy", "torch", "jax" or "c".
            gradient: whether the derivatives are computed too (NumPy and C; the others have their own).

        Raises:
            ArgumentError: another language, or nothing has been compiled yet.
        """
        return self._runtime.source(language, gradient)

    def to_jax(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The last call as a function of JAX: ``function(parameters, *arguments)``, and the parameters as they are now.

        Where the last call was on a batch, it takes batches, and gives the result of each example. Where the recording
        does not hold, as an example that takes another branch, the result is nan.

        Raises:
            MissingExtraError: JAX is not installed.
            ArgumentError: nothing has been compiled yet, or the function takes several ways.
        """
        errors.require("jax", "xla")
        from wengert.compiler.to_jax import to_jax

        return to_jax(self._runtime)

    def to_torch(self) -> Any:
        """The last call as a `torch.nn.Module` with named parameters, in double precision; all else as of `to_jax`."""
        errors.require("torch", "torch")
        from wengert.compiler.to_torch import RecordedModule

        return RecordedModule(self._runtime)

    def report(self) -> str:
        """What became of the function, in counts: calls, checks, what serves and by which clause, nodes, array
        operations, products, tables, guards, and why it fell back.
        """
        return self._runtime.report()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A compiled method, bound to the object that it is read from."""
        return self if instance is None else Bound(self, instance)

    def __reduce__(self) -> str:
        """The name by which it is pickled, as any function is: another process imports it, and records for itself.

        Raises:
            PicklingError: it has none.
        """
        module = sys.modules.get(self.__module__)
        names = [name for name, x in vars(module).items() if x is self] if module else []
        for name in (getattr(self, "__qualname__", ""), *names):
            if _attribute(module, name) is self:
                return name
        raise pickle.PicklingError(
            f"{self!r} cannot be pickled: another process would not find it by its name. Decorate a function at the "
            "top level of a module, or give what compile returns a name there"
        )

    def __copy__(self) -> Compiled:
        """Another compiled function of the same function, without recordings."""
        return Compiled(self.function, self.static, self.backend if self.pinned else None, self.checks)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        """Another compiled function, without recordings: of a function of the same, as `copy.deepcopy` leaves
        functions as they are, of a bound method or a model of its copy.
        """
        return Compiled(
            copy.deepcopy(self.function, memo), self.static, self.backend if self.pinned else None, self.checks
        )

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__name__', 'function')}>"


class Bound:
    """A compiled method of an object; the recordings are kept for each object."""

    def __init__(self, compiled: Compiled, instance: Any) -> None:
        self.compiled: Compiled = compiled
        self.instance: Any = instance

    def __call__(self, *args: Any, **named: Any) -> Any:
        """As `Compiled.__call__`."""
        return self.compiled(self.instance, *args, **named)

    def __getattr__(self, name: str) -> Any:
        """What the compiled function has; `mean`, `sum`, `map` and `prepare` with the object as first argument."""
        if name.startswith("__"):  # such as `copy` asks for, of an object that has no attributes yet
            raise AttributeError(name)
        found = getattr(self.compiled, name)
        return functools.partial(found, self.instance) if name in ("mean", "sum", "map", "prepare") else found

    def __reduce__(self) -> tuple[Any, tuple[Any, str]]:
        """As any method is pickled: with its object, and by its name.

        Raises:
            PicklingError: the object has no such method.
        """
        known = [name for kind in type(self.instance).__mro__ for name, x in vars(kind).items() if x is self.compiled]
        for name in (getattr(self.compiled, "__name__", ""), *known):
            if getattr(_attribute(self.instance, name), "compiled", None) is self.compiled:
                return getattr, (self.instance, name)
        raise pickle.PicklingError(
            f"{self.compiled!r} cannot be pickled: a {type(self.instance).__name__} has no method that is it"
        )

    def __dir__(self) -> list[str]:
        """What completion offers: the names of both."""
        return sorted({*super().__dir__(), *dir(self.compiled)})


def _attribute(x: Any, path: str) -> Any:
    """What a dotted name leads to from something; None if it does not."""
    try:
        return operator.attrgetter(path)(x)
    except AttributeError:
        return None
