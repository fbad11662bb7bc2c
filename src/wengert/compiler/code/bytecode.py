"""What the bytecode of a function can do, beside computing: this module alone reads it.

Each Python has other opcodes. Those of 3.11 to 3.15 are listed below by what they do, and an opcode that is on no list
may do anything: read and set every global that the code names, import every module that it names, ask for identity,
assign items, have effects. So a Python that nobody has seen costs speed, and no result is wrong.
"""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Iterable, Iterator, Mapping
from enum import EnumType
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.code.keys import Itself, key_of
from wengert.engine import Value

__all__ = ["Bytecode", "FreeVariable", "asks_class", "bytecode_of", "computing", "constants_of", "names_of"]
__all__ += ["observes_bools", "tells_numbers", "tells_objects"]

READ = frozenset(["LOAD_FROM_DICT_OR_GLOBALS", "LOAD_GLOBAL", "LOAD_NAME"])  # they read a global,
WRITTEN = frozenset(["DELETE_GLOBAL", "DELETE_NAME", "STORE_GLOBAL", "STORE_NAME"])  # or set one,
IMPORTED = frozenset(["IMPORT_FROM", "IMPORT_NAME", "IMPORT_STAR"])  # or import;
IDENTITY = frozenset(["IS_OP"])  # these ask whether two objects are one;
ITEMS = frozenset(["STORE_SLICE", "STORE_SUBSCR"])  # these assign items;
EFFECTS = ITEMS | {  # and these change objects, or run code that no name in the function tells
    "DELETE_ATTR", "DELETE_DEREF", "DELETE_SUBSCR", "LOAD_BUILD_CLASS", "LOAD_LOCALS", "LOAD_SUPER_ATTR",
    "LOAD_SUPER_METHOD", "LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD", "PRINT_EXPR", "SETUP_ANNOTATIONS",
    "STORE_ATTR",
}  # fmt: skip
PADDING = frozenset(["CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN"])
# All others do nothing but compute, call and branch: on variables, constants, and what attributes and items hold.
COMPUTE = PADDING | {
    "ANNOTATIONS_PLACEHOLDER", "ASYNC_GEN_WRAP", "BEFORE_ASYNC_WITH", "BEFORE_WITH", "BINARY_OP", "BINARY_SLICE",
    "BINARY_SUBSCR", "BUILD_CONST_KEY_MAP", "BUILD_INTERPOLATION", "BUILD_LIST", "BUILD_MAP", "BUILD_SET",
    "BUILD_SLICE", "BUILD_STRING", "BUILD_TEMPLATE", "BUILD_TUPLE", "CALL", "CALL_FUNCTION_EX", "CALL_INTRINSIC_1",
    "CALL_INTRINSIC_2", "CALL_KW", "CHECK_EG_MATCH", "CHECK_EXC_MATCH", "CLEANUP_THROW", "COMPARE_OP",
    "CONTAINS_OP", "CONVERT_VALUE", "COPY", "COPY_FREE_VARS", "DELETE_FAST", "DICT_MERGE", "DICT_UPDATE",
    "END_ASYNC_FOR", "END_FOR", "END_SEND", "EXIT_INIT_CHECK", "FORMAT_SIMPLE", "FORMAT_VALUE", "FORMAT_WITH_SPEC",
    "FOR_ITER", "GET_AITER", "GET_ANEXT", "GET_AWAITABLE", "GET_ITER", "GET_LEN", "GET_YIELD_FROM_ITER", "JUMP",
    "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD", "JUMP_IF_FALSE", "JUMP_IF_FALSE_OR_POP",
    "JUMP_IF_TRUE", "JUMP_IF_TRUE_OR_POP", "JUMP_NO_INTERRUPT", "KW_NAMES", "LIST_APPEND", "LIST_EXTEND",
    "LIST_TO_TUPLE", "LOAD_ASSERTION_ERROR", "LOAD_ATTR", "LOAD_CLASSDEREF", "LOAD_CLOSURE", "LOAD_COMMON_CONSTANT",
    "LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_AND_CLEAR", "LOAD_FAST_BORROW",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST", "LOAD_FROM_DICT_OR_DEREF",
    "LOAD_METHOD", "LOAD_SMALL_INT", "LOAD_SPECIAL", "MAKE_CELL", "MAKE_FUNCTION", "MAP_ADD", "MATCH_CLASS",
    "MATCH_KEYS", "MATCH_MAPPING", "MATCH_SEQUENCE", "POP_BLOCK", "POP_EXCEPT", "POP_ITER",
    "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
    "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_NONE",
    "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE",
    "POP_JUMP_IF_NOT_NONE", "POP_JUMP_IF_TRUE", "POP_TOP", "PRECALL", "PREP_RERAISE_STAR", "PUSH_EXC_INFO",
    "PUSH_NULL", "RAISE_VARARGS", "RERAISE", "RESUME", "RETURN_CONST", "RETURN_GENERATOR", "RETURN_VALUE", "SEND",
    "SETUP_CLEANUP", "SETUP_FINALLY", "SETUP_WITH", "SET_ADD", "SET_FUNCTION_ATTRIBUTE", "SET_UPDATE",
    "STORE_DEREF", "STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_MAYBE_NULL", "STORE_FAST_STORE_FAST", "SWAP",
    "TO_BOOL", "UNARY_INVERT", "UNARY_NEGATIVE", "UNARY_NOT", "UNARY_POSITIVE", "UNPACK_EX", "UNPACK_SEQUENCE",
    "WITH_EXCEPT_START", "YIELD_VALUE",
}  # fmt: skip
HANDLERS = {"PUSH_EXC_INFO": 1, "WITH_EXCEPT_START": -1}  # of errors, of which a `with` statement has one of its own
LISTED = READ | WRITTEN | IMPORTED | IDENTITY | EFFECTS | COMPUTE
LOCALS = frozenset(  # these load one variable, or two
    ["LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_FAST_CHECK",
     "LOAD_FAST_LOAD_FAST"]
)  # fmt: skip
CONSTANTS = frozenset(["LOAD_COMMON_CONSTANT", "LOAD_CONST", "LOAD_SMALL_INT"])  # and these a constant
COMMON: tuple[Any, ...] = tuple(getattr(dis, "_common_constants", ()))  # those of LOAD_COMMON_CONSTANT, by place
ATTRIBUTES = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
CLASS = ATTRIBUTES | {"MATCH_CLASS"}  # these may read the class of an object
BOOLS = (bool, np.bool_)
NUMBERS = (int, float, complex)
# Objects of these types may be as good as another one that the function gets: the identity of all others is part of the
# signature, or noted where they are read.
REPLACED = (*NUMBERS, np.generic, str, bytes, Value, list, tuple, dict, set, frozenset, np.ndarray)
THEIRS = frozenset(name for kind in (*REPLACED, np.float64) for name in dir(kind))  # the names of their attributes


class Bytecode(NamedTuple):
    """What some code names, and what it may do.

    Attributes:
        read: the globals that it may read.
        written: those that it may set.
        attributes: all names in it: of attributes, globals and modules.
        imported: the modules that it may import.
        identities: by what it asks ``x is ...``: a constant in a tuple, the name of a global, or None for any object.
        compares: both sides of each ``x is y``, like `identities`; with dots for an attribute of a global, `OWN` for a
            variable that holds an object which is not of the types in `REPLACED`, `SENTINEL` for one that holds a new
            ``object()``, and a `FreeVariable`.
        assigns_items: True if it may assign items, or change an object in place.
        catches_errors: True if it may go on after an error.
    """

    read: frozenset[str]
    written: frozenset[str]
    attributes: frozenset[str]
    imported: tuple[str, ...]
    identities: tuple[tuple[Any] | str | None, ...]
    assigns_items: bool
    compares: tuple[tuple[Any, Any], ...] = ()
    catches_errors: bool = True


OWN, SENTINEL = object(), object()


class FreeVariable(NamedTuple):
    """A variable of an enclosing function; `names` of code have its object under it."""

    name: str


@functools.lru_cache(4096)
def bytecode_of(code: CodeType) -> Bytecode:
    """Read some code."""
    read, written, imported, identities = set(), set(), [], []
    names, assigns_items, handlers, before = frozenset(code.co_names), False, 0, None
    steps = list(_steps(code))
    compares: list[tuple[Any, Any]] = []
    for n, step in enumerate(steps):
        name = step.opname
        if name in READ:
            read.add(step.argval)
        elif name in WRITTEN:
            written.add(step.argval)
        elif name in IMPORTED:
            imported.append(step.argval)
        elif name in IDENTITY:
            compares.append(_sides(steps, n))
            identities.append(
                None if step.is_jump_target else _loaded(before)
            )  # then more than one object may be there
        elif name in ITEMS or (name == "BINARY_OP" and step.argrepr.endswith("=")):  # += may change an array
            assigns_items = True
        elif name in HANDLERS:
            handlers += HANDLERS[name]
        elif name not in LISTED:
            return Bytecode(names, names, names, tuple(code.co_names), (None,), True, ((None, None),))
        before = step
    return Bytecode(
        *(frozenset(read), frozenset(written), names, tuple(imported)),
        *(tuple(dict.fromkeys(identities)), assigns_items, tuple(compares), handlers > 0),
    )


class BytecodeStep(NamedTuple):
    """An instruction that is no padding."""

    opname: str
    opcode: int
    arg: Any
    argval: Any
    argrepr: str
    is_jump_target: bool  # jumps lead to it, or to padding right before it


def _steps(code: CodeType) -> Iterator[BytecodeStep]:
    is_target = False
    for each in dis.get_instructions(code):
        is_target |= each.is_jump_target
        if each.opname not in PADDING:
            yield BytecodeStep(each.opname, each.opcode, each.arg, each.argval, each.argrepr, is_target)
            is_target = False


def _sides(steps: list[BytecodeStep], at: int) -> tuple[Any, Any]:
    """Describe what an instruction that asks ``x is y`` compares; None for what is not known."""
    start, others = _reach(steps, at)
    if others == 1 and steps[start].opname in LOCALS:  # two variables at once: the first is the other side
        left, right = [_held(steps, name) for name in steps[start].argval]
        return left, right if start == at - 1 else None
    if others:
        return None, None
    first = _start(steps, start)
    return (None if first is None else _side(steps, first, start)), _side(steps, start, at)


def _start(steps: list[BytecodeStep], end: int) -> int | None:
    """Return the place of the first instruction that computes the top of the stack before the one at `end`; None if it
    cannot be told.
    """
    start, others = _reach(steps, end)
    return None if others else start


def _reach(steps: list[BytecodeStep], end: int) -> tuple[int, int]:
    """Return the place of that instruction, and how many other objects it puts below this one; -1 instead of that count
    if a jump leads to between the two.
    """
    needed = 1
    for n in range(end - 1, -1, -1):
        if steps[n + 1].is_jump_target:
            break
        needed -= dis.stack_effect(steps[n].opcode, steps[n].arg, jump=False)
        if needed <= 0:
            return n, -needed
    return 0, -1


def _side(steps: list[BytecodeStep], start: int, end: int) -> Any:
    first = steps[start]
    if end == start + 1 and first.opname in CONSTANTS:
        return _loaded(first)
    if end == start + 1 and first.opname in LOCALS and isinstance(first.argval, str):
        return _held(steps, first.argval)
    if first.opname == "LOAD_GLOBAL" and all(step.opname in ATTRIBUTES for step in steps[start + 1 : end]):
        return ".".join([step.argval for step in steps[start:end]])
    return None


def _held(steps: list[BytecodeStep], variable: str) -> Any:
    """Return `OWN` for a variable that the code calls, or of which it reads an attribute that no number, Value or
    container has: with any of these it would raise an error. Else `SENTINEL` or a `FreeVariable`, if it is one.
    """
    stored = [n for n, step in enumerate(steps) if step.opname.startswith("STORE") and variable in _named(step)]
    if stored and all(steps[n].opname == "STORE_FAST" and _makes_object(steps, n) for n in stored):
        return SENTINEL
    loads = [step.opname for step in steps if variable in _named(step)]
    if {*loads} == {"LOAD_DEREF"}:
        return FreeVariable(variable)
    for n, step in enumerate(steps):
        if step.opname in ATTRIBUTES and step.argval not in THEIRS and _last(steps[n - 1]) == variable:
            return OWN
        if step.opname == "CALL" and variable in _called(steps, n):
            return OWN
    return None


def _named(step: BytecodeStep) -> tuple[Any, ...]:
    return step.argval if isinstance(step.argval, tuple) else (step.argval,)


def _makes_object(steps: list[BytecodeStep], end: int) -> bool:
    """Return True if the instructions before one are ``object()``."""
    before = [step for step in steps[max(end - 4, 0) : end] if step.opname not in ("PRECALL", "PUSH_NULL")][-2:]
    is_call = [step.opname for step in before] == ["LOAD_GLOBAL", "CALL"]
    return is_call and before[0].argval == "object" and not before[1].arg


def _last(step: BytecodeStep | None) -> Any:
    """Return the variable that an instruction puts on top of the stack; None for anything else."""
    if step is None or step.opname not in LOCALS:
        return None
    return step.argval[-1] if isinstance(step.argval, tuple) else step.argval


def _called(steps: list[BytecodeStep], at: int) -> tuple[Any, ...]:
    """Return the variable that a call calls, in a tuple; an empty one if it calls anything else."""
    start: int | None = at
    while start and steps[start - 1].opname in ("KW_NAMES", "PRECALL"):
        start -= 1
    for _ in range(steps[at].arg):
        start = start and _start(steps, start)
    if not start or start < 2 or steps[start].is_jump_target:
        return ()
    before = steps[start - 2 : start]  # the order depends on the Python
    return tuple(map(_last, before)) if "PUSH_NULL" in (step.opname for step in before) else ()


def _loaded(step: BytecodeStep | None) -> tuple[Any] | str | None:
    """Return the constant, in a tuple, or the name of the global that an instruction loads; None for anything else."""
    if step is None or step.opname not in CONSTANTS:
        return step.argval if step is not None and step.opname == "LOAD_GLOBAL" else None
    x = step.argval
    if step.opname == "LOAD_COMMON_CONSTANT":  # of which Python 3.14 tells the place only
        x = COMMON[step.arg] if step.arg < len(COMMON) else Unknown
    return (x,) if _is_hashable(x) else None


def _is_hashable(x: Any) -> bool:
    return x is None or x is Ellipsis or isinstance(x, (str, bytes, *BOOLS, *NUMBERS)) or any(x is y for y in COMMON)


def constants_of(codes: Iterable[CodeType]) -> list[Any]:
    """List the constants in some code, and in its tuples."""
    constants: list[Any] = [x for code in codes for x in code.co_consts]
    for x in constants:
        if isinstance(x, tuple):
            constants += x
    return constants


def names_of(code: CodeType) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the globals that code reads, those that it sets, and the attributes that it names."""
    return bytecode_of(code)[:3]


def observes_bools(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Return True for code that may ask whether a bool is another one: ``x is True``, ``(a > 0) is b``. Its globals are
    `names`. Only ``x is None``, another constant, or a global that is no bool, as ``x is MISSING``, does not ask that.
    """
    for each in bytecode_of(code).identities:
        operand = (names.get(each),) if isinstance(each, str) else each
        if operand is None or isinstance(operand[0], BOOLS):
            return True
    return False


def tells_numbers(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Return True for code that asks whether a number is a constant itself: ``n is 0``, ``x is math.nan``. Its globals
    are `names`.
    """
    sides = [_global(side, names) for pair in bytecode_of(code).compares for side in pair]
    return any(type(x) in NUMBERS or isinstance(x, np.number) for x in sides)


def tells_objects(code: CodeType, names: Mapping[str, Any], own: bool = False) -> bool:
    """Return True for code that may ask whether two numbers, Values or containers are the same object; with `own` also
    two objects of other types. Its globals are `names`.
    """
    return any(
        all((own or side is not OWN) and _has_equals(_global(side, names), own) for side in pair)
        for pair in bytecode_of(code).compares
    )


def _has_equals(x: Any, own: bool) -> bool:
    """Return True for an object beside which there may be another one that equals it for a program."""
    if x is None or type(x) is bool:
        return False
    return isinstance(x, (*REPLACED, Unknown)) or (own and type(key_of(x)) is not Itself)


class Unknown:
    """What code compares, and may be any object."""


def _global(side: Any, names: Mapping[str, Any]) -> Any:
    """Return the constant, global or free variable that is one side of ``x is y``; `Unknown()` for anything else."""
    if isinstance(side, FreeVariable):
        return names.get(side, Unknown())  # type: ignore[call-overload]
    if side is SENTINEL:
        return side if names.get("object", object) is object else Unknown()
    if not isinstance(side, str):
        return side[0] if isinstance(side, tuple) else Unknown()
    name, *attributes = side.split(".")
    x = names.get(name, vars(builtins).get(name, Unknown()))
    for attribute in attributes:
        x = _attribute(x, attribute)
    return x


def _attribute(x: Any, name: str) -> Any:
    """Return an attribute of a module or a member of an enumeration, which is fixed; `Unknown()` for any other."""
    if type(x) is ModuleType:
        return vars(x).get(name, Unknown())
    return x._member_map_.get(name, Unknown()) if isinstance(x, EnumType) else Unknown()


def asks_class(frame: Any) -> bool:
    """Return True if what a frame does now is to read `__class__`, and not to call or compute what asks for it."""
    if frame.f_globals.get("__name__", "").startswith("wengert."):
        return False
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return name in CLASS or name not in LISTED


def computing(code: CodeType) -> Iterator[Any] | None:
    """Return the instructions of code that changes nothing but its own variables; None if it may do more."""
    steps = [*dis.get_instructions(code)]
    for step in steps:
        does = step.opname in COMPUTE or step.opname in ("IS_OP", "LOAD_GLOBAL", "LOAD_NAME")
        if not does or (step.opname == "BINARY_OP" and step.argrepr.endswith("=")):
            return None
    return iter(steps)
