"""Lists the code and the types that are not followed while a function is recorded; all other Python code is.

The list stands here alone: modules whose code never changes what it computes, and types written in C whose objects
never change, or are noted by `frozen.py`. An object of any other type written in C may change unnoticed: a function
that reads one runs uncompiled.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import sys
import threading
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    EllipsisType,
    GenericAlias,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    NotImplementedType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from wengert.compiler.call import dict_of
from wengert.ops import FLOATS, VALUES

__all__ = ["IMMUTABLE", "LRU_CACHE", "PLAIN", "SIGNATURES", "is_derivable", "is_known", "is_python", "is_standard"]

PLAIN = (int, bool, str, bytes, complex, type(None))
LRU_CACHE = type(lru_cache(len))
IMMUTABLE: tuple[type, ...] = (
    *PLAIN, float, range, slice, np.generic, np.dtype, np.ufunc, type(np.mean), date, time, timedelta, tzinfo, Decimal,
    operator.itemgetter, operator.attrgetter, operator.methodcaller, re.Pattern, re.Match, BuiltinFunctionType,
    ClassMethodDescriptorType, CodeType, EllipsisType, GenericAlias, GetSetDescriptorType, MemberDescriptorType,
    MethodDescriptorType, MethodWrapperType, NotImplementedType, UnionType, WrapperDescriptorType,
    np.random.Generator, np.random.RandomState, np.random.BitGenerator,  # purity.py detects draws
    type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
SIGNATURES = (inspect.Signature, inspect.Parameter)  # of Python, and never change
MODULES = frozenset(
    ["_collections_abc", "_weakrefset", "abc", "copy", "copyreg", "enum", "numbers", "random", "types", "typing",
     "warnings", "weakref"]
)  # fmt: skip
PACKAGES = frozenset(["numpy", "wengert", "importlib"])
FOLLOWED = frozenset(["nn", "optim", "data", "training", "estimator"])  # of this package: their objects may change
ODD = frozenset(["__class__", "__getattribute__"])  # an object of such a class says what it is, or has, itself
OURS = ("builtins", "typing", "wengert")  # their `__init_subclass__` has no side effects
HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was created at run time


def is_known(names: dict[str, Any]) -> bool:
    """Return True for the globals of a module whose code is not followed, and for the `View` of them."""
    if type(names) is not dict:
        names = dict_of(names).get("names", names)
    name = str(names.get("__name__"))
    package, _, rest = name.partition(".")
    if package == "wengert" and rest.partition(".")[0] in FOLLOWED:
        return False
    if names is FLOATS or names is VALUES:  # the rules of the table run with these
        return True
    if name in MODULES or package in PACKAGES:
        return vars(sys.modules.get(name, re)) is names  # another module may have the same name
    return False


def is_standard(code: CodeType) -> bool:
    """Return True for code of the standard library, which other code calls on a function's behalf."""
    path = code.co_filename
    return path.startswith(("<frozen", STANDARD)) and "-packages" not in path


STANDARD = os.path.dirname(os.__file__) + os.sep


def is_python(kind: type) -> bool:
    """Return True if a class is written in Python, so that its objects hold nothing but attributes.

    >>> is_python(type("A", (), {})), is_python(type("B", (list,), {})), is_python(threading.local)
    (True, True, False)
    """
    base, own = kind.__base__, vars(kind)
    if base is None or not kind.__flags__ & HEAP or kind.__itemsize__ != base.__itemsize__:
        return False
    slots = sum([isinstance(x, MemberDescriptorType) and x.__objclass__ is kind for x in own.values()])
    held = slots + ("__dict__" in own) + ("__weakref__" in own)  # fields that Python itself adds
    return bool(kind.__basicsize__ - base.__basicsize__ <= 8 * held)


def is_derivable(kind: type) -> bool:
    """Return True if a class and its bases are written in Python, and deriving from it has no side effects."""
    if type(kind).__module__ not in ("builtins", "abc"):
        return False
    for base in kind.__mro__:
        if base.__basicsize__ > object.__basicsize__ and not is_python(base):
            return False
        if base is not object and not ODD.isdisjoint(vars(base)):
            return False
        if "__init_subclass__" in vars(base) and base.__module__.partition(".")[0] not in OURS:
            return False
    return True
