"""What objects and classes have and hold. No code of their classes runs while that is asked."""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from wengert.compiler.call import KINDS, MISSING, CallPath, dict_of, look
from wengert.compiler.code import LRU_CACHE, PLAIN, is_known
from wengert.engine import Value

__all__ = [
    "ARGS",
    "CELL",
    "CYTHON",
    "METHODS",
    "READS_ALL",
    "attributes_with_functions",
    "closes_over",
    "definition_of",
]
__all__ += ["has", "held_by", "inner", "is_data", "is_default", "is_known_class", "is_opaque", "of_class"]
__all__ += ["own", "spelt", "walks"]

CELL, ATTRIBUTE = KINDS[1:3]
# The names of functions that read all attributes of an object.
READS_ALL = frozenset(["__dict__", "__getstate__", "__reduce_ex__", "dir", "dumps", "vars"])
# Compiled methods that read all attributes of their own object: those of `wengert.nn.Module`.
WALKS = frozenset(["named_parameters", "parameters", "state_dict"])
VOLATILE = frozenset(["__annotations_cache__", "__annotate__", "__annotate_func__", "__dict__", "__weakref__"])
LONGEST = 200  # characters of the name of a part
METHODS = (FunctionType, staticmethod, classmethod)
ARGS: Any = vars(BaseException)["args"].__get__  # not what a subclass calls so
CYTHON = "cython_function_or_method"


def spelt(key: Any) -> str:
    """Spell a key in a name; of a user's object only the type, as its `repr` may do anything."""
    return repr(key) if type(key) in PLAIN else type(key).__name__


# -- attributes -------------------------------------------------------------------------------------------------------


def of_class(kind: type, name: str) -> Any:
    """Look up a name in a class and its bases; MISSING if it is not defined."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return MISSING


def has(x: Any, name: str) -> bool:
    """Return True if the class of an object defines a name. The object may be one that answers to every name, and so
    may its class: neither is asked.
    """
    return of_class(type(x), name) is not MISSING


def is_data(attribute: Any) -> bool:
    """Return True for a descriptor that takes precedence over an object's own attributes: a property, a slot."""
    return has(attribute, "__set__") or has(attribute, "__delete__")


def is_default(attribute: Any) -> bool:
    """Return True for a class attribute that serves objects which have none of their own."""
    return attribute is not MISSING and not has(attribute, "__get__")


def own(x: Any, name: str) -> Any:
    """Return an object's own attribute; MISSING if it has none, or only its class has one.

    The object's `__dict__` is avoided where possible: accessing it makes all its attributes slower for good.
    """
    inherited = of_class(type(x), name)
    if inherited is MISSING or isinstance(inherited, MemberDescriptorType):
        return look(ATTRIBUTE, x, name)
    if is_data(inherited):  # a property runs code
        return MISSING
    if type(inherited) not in METHODS and has(inherited, "__get__"):
        return dict_of(x).get(name, MISSING)
    now = look(ATTRIBUTE, x, name)
    return MISSING if inner(now) is inner(inherited) else now


def walks(kind: type, mentioned: Collection[str]) -> bool:
    """Return True if code that mentions some names may call a method that reads all attributes of such an object."""
    return any(of_class(kind, n) is not MISSING for n in WALKS.intersection(mentioned))


# -- what an object holds ---------------------------------------------------------------------------------------------


def held_by(x: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Yield what an object of a type written in C holds, each part with its name: what a function closes over, a
    container's items. Floats in containers are left out, and Values in lists, of which there may be many; so are the
    attributes of an object, and its class.
    """
    kind = type(x)
    if len(name) > LONGEST:  # of deeply nested containers
        name = f"{name[: LONGEST // 2]}..."
    if kind is FunctionType:
        for free, cell in closes_over(x):
            yield look(CELL, cell, None), free
        for part in (x.__defaults__, x.__kwdefaults__, vars(x).get("__wrapped__")):
            if part is not None:
                yield part, x.__name__
    elif issubclass(kind, (list, deque)):
        items = list.__iter__ if issubclass(kind, list) else deque.__iter__
        for n, item in enumerate([*items(x)]):
            if type(item) is not float and type(item) is not Value:
                yield item, f"{name}[{n}]"
    elif issubclass(kind, tuple):
        for n, item in enumerate(tuple.__iter__(x)):
            if type(item) is not float:
                yield item, f"{name}[{n}]"
    elif issubclass(kind, (dict, MappingProxyType)):
        for key, item in [*(dict.items(x) if issubclass(kind, dict) else x.items())]:
            if type(item) is not float:
                yield item, f"{name}[{spelt(key)}]"
            if type(key) not in PLAIN and type(key) is not float:
                yield key, name
        if issubclass(kind, defaultdict):
            yield x.default_factory, name
    elif issubclass(kind, (set, frozenset)):
        for item in [*(set if issubclass(kind, set) else frozenset).__iter__(x)]:
            yield item, name
    elif issubclass(kind, BaseException):
        for n, item in enumerate(ARGS(x)):
            yield item, f"{name}.args[{n}]"
    elif issubclass(kind, np.ndarray):
        if x.dtype == object:
            for item in x.ravel().tolist():
                yield item, name
    else:
        parts = PARTS.get(functools.partial if issubclass(kind, functools.partial) else kind)
        for part in () if parts is None else parts(x):
            yield part, name


def _bound_to(x: Any) -> tuple[Any, ...]:
    of = x.__self__
    return () if of is None or issubclass(type(of), (ModuleType, type)) else (of,)


PARTS: dict[Any, Callable[[Any], tuple[Any, ...]]] = {
    MethodType: lambda x: (x.__func__, x.__self__),
    functools.partial: lambda x: (x.func, x.args, x.keywords),
    property: lambda x: (x.fget, x.fset, x.fdel),
    staticmethod: lambda x: (x.__func__,),
    classmethod: lambda x: (x.__func__,),
    LRU_CACHE: lambda x: (x.__wrapped__,),
    CallPath: lambda x: (x.function,),  # its own cache is no effect
    BuiltinFunctionType: _bound_to,
    MethodWrapperType: _bound_to,
}


def inner(x: Any) -> Any:
    """Return the function of a method; other objects as they are."""
    return x.__func__ if type(x) in (MethodType, staticmethod, classmethod) else x


def closes_over(x: Any) -> Iterator[tuple[str, Any]]:
    """Yield the free variables of a function, and their cells."""
    return zip(x.__code__.co_freevars, x.__closure__ or (), strict=True)


# -- classes ----------------------------------------------------------------------------------------------------------


def attributes_with_functions(kind: type) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """List a class's own attributes, each with its name and the functions in it, as those of a property."""
    listed = []
    for n, attribute in list(vars(kind).items()):
        what = type(attribute)
        functions: tuple[Any, ...] = ()
        if what is FunctionType or what.__name__ == CYTHON:
            functions = (attribute,)
        elif what in (property, staticmethod, classmethod):
            functions = PARTS[what](attribute)
        listed.append((n, attribute, functions))
    return listed


def definition_of(kind: type) -> tuple[Any, ...]:
    """Return the bases of a class, and its special methods and attributes, which Python finds though none is named."""
    own = vars(kind)
    return (
        type.__dict__["__bases__"].__get__(kind),
        *[(n, own[n]) for n in own if n[:2] == "__" and n not in VOLATILE],
    )


def is_known_class(kind: type) -> bool:
    """Return True if none of a class's functions is followed, and there are some."""
    every = [functions for _, _, functions in attributes_with_functions(kind)]
    names = {id(f.__globals__): f.__globals__ for each in every for f in each if isinstance(f, FunctionType)}
    return bool(names) and all(map(is_known, names.values()))


def is_opaque(kind: type) -> bool:
    """Return True if a class has methods written in C or not followed, whose names are unknown."""
    if is_known_class(kind):
        return True
    return any(type(f).__name__ == CYTHON for _, _, functions in attributes_with_functions(kind) for f in functions)
