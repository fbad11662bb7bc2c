"""Programs of functions that take plain numbers only, which are recorded for their derivatives, and so compiled, too.

`grad(f)(x)` makes another derivative at each call, and a lambda is another function each time. So programs are kept by
the code of the function: of each code those of the last function, and of the last few codes.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from importlib import import_module  # `compile` stands on derivatives
from types import FunctionType
from typing import Any

from wengert import modes
from wengert.derivatives.derivation import (
    DEPTH,
    codes_of,
    compiled_method,
    derivations_of,
    floats_only,
    is_compiled,
    takes_floats,
)
from wengert.derivatives.pytree import items_of
from wengert.engine import Value

__all__ = ["by_program", "compiled_for_products", "programs_of"]

CODES = 16  # whose programs are kept


class _Programs:
    """The programs of one function: compiled derivatives, by their kinds, and the function itself, for its products."""

    def __init__(self, function: Any) -> None:
        self.function: Any = function
        self.compiled: dict[Any, Any] = {}

    def of(self, key: Any, function: Callable[..., Any]) -> Any:
        """Return what a function is compiled to, which is called like this in other calls."""
        if key not in self.compiled:
            self.compiled[key] = import_module("wengert.compiler.function").compiled_quietly(function)
        return self.compiled[key]


class _Serving(threading.local):
    derivatives: tuple[Any, ...] = ()  # whose programs are being run


_serving = _Serving()
_kept: OrderedDict[Any, _Programs] = OrderedDict()  # by the code of a function, the last one last


def programs_of(function: Any) -> _Programs | None:
    """Return the programs of a function, or of one that is compiled; None if it comes for the first time."""
    function = compiled_method(function)
    function = function.function if is_compiled(function) else function
    code = codes_of(function)
    programs = _kept.pop(code, None)
    is_known = programs is not None and _is_same(function, programs.function)
    _kept[code] = programs if is_known and programs is not None else _Programs(function)
    while len(_kept) > CODES:
        _kept.popitem(last=False)
    return programs if is_known else None


def _is_same(function: Any, other: Any, depth: int = 0) -> bool:
    """Return True if two functions have the same code, and the same objects around it."""
    if function is other:
        return True
    same = import_module("wengert.compiler.call").same
    if type(function) is functools.partial and type(other) is functools.partial:
        given, others = [(x.args, tuple(x.keywords.items())) for x in (function, other)]
        return _is_same(function.func, other.func, depth) and bool(same(given, others))
    if not (type(function) is FunctionType and type(other) is FunctionType):
        return bool(same(function, other))
    if function.__code__ is not other.__code__ or function.__globals__ is not other.__globals__ or depth > DEPTH:
        return False
    parts = [(x.__defaults__, tuple((x.__kwdefaults__ or {}).items())) for x in (function, other)]
    try:
        cells = [[cell.cell_contents for cell in x.__closure__ or ()] for x in (function, other)]
    except ValueError:  # a variable that has no value yet
        return False
    return bool(same(*parts)) and all(_is_same(x, y, depth + 1) for x, y in zip(*cells, strict=True))


def _is_served(function: Any, args: Sequence[Any]) -> bool:
    """Return True if a function takes plain numbers only, and gets no Values, and no operation is seen or recorded."""
    if not takes_floats(function) or modes.eager_only() or type(Value(0.0).data) is not float:
        return False
    return not any(isinstance(x, Value) for x in items_of(args))


def by_program(derivative: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """Serve a call of a derivative by the program of its function, if that takes plain numbers only, from the second
    call on. `NotImplemented` if the derivative itself has to serve.
    """
    if not floats_only:
        return NotImplemented
    function, derivations = derivations_of(derivative)
    if not derivations or derivative in _serving.derivatives or not _is_served(function, [*args, *named.values()]):
        return NotImplemented
    programs = programs_of(function)
    if programs is None:
        return NotImplemented
    program = programs.of(tuple([(x.kind, repr(x.argnums), x.has_aux) for x in derivations]), derivative)
    before = _serving.derivatives
    _serving.derivatives = (*before, derivative, program.function)
    try:
        return program(*args, **named)
    except (AttributeError, TypeError):  # this time it may take Values only
        floats_only.discard(codes_of(function))
        return NotImplemented
    finally:
        _serving.derivatives = before


def compiled_for_products(function: Any, args: Sequence[Any]) -> Any:
    """Return what a function that takes plain numbers only is compiled to, for `jvp` and `vjp` from the second call on;
    any other function as it is.
    """
    if not floats_only or is_compiled(compiled_method(function)):
        return function
    if derivations_of(function)[1] or not _is_served(function, args):
        return function
    programs = programs_of(function)
    return function if programs is None else programs.of("itself", function)
