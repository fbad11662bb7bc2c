"""Calls LLVM, one thread at a time and never during a fork: compiles text for this machine, and links object code."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from ctypes.util import find_library
from functools import cache
from importlib.metadata import version
from itertools import count as counting
from typing import Any
from weakref import ref

import llvmlite
import llvmlite.binding as llvm

from wengert._forks import no_fork
from wengert._reserve import MIB, reserve
from wengert.compiler.backends.base import MachineCode
from wengert.compiler.backends.native.rows import C_FUNCTIONS

__all__ = ["Loaded", "compiled", "description", "linked", "native_width"]

Function = Callable[..., None]
PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, *[ctypes.c_void_p] * 5)
# Above this many lines code is not optimized: for straight-line code that costs little, and for very long code
# optimization takes too long.
STRAIGHT, LONG = 10_000, 30_000
# Without memory LLVM ends the process: so many bytes are asked for before it runs, several times what it takes.
COMPILING, PER_CHARACTER = 8 * MIB, 60
LINKING, PER_BYTE = 4 * MIB, 8

_numbers = counting()
# The libraries in use. Others are freed by the next call of `linked`, not by the garbage collector: it may run while
# the calls of a user's function are traced, and a call of LLVM would count as the function's own.
_libraries: dict[ref[Loaded], Any] = {}
_gone: list[ref[Loaded]] = []


class Loaded:
    def __init__(self, library: Any) -> None:
        self.code: MachineCode = MachineCode(library["forward"], library["both"])
        self.forward: Function = PROTOTYPE(self.code.forward)
        self.forward_backward: Function = PROTOTYPE(self.code.forward_backward)


@cache
def _machine(level: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, jit=True)


@cache
def _features() -> str:
    features = llvm.get_host_cpu_features()
    return ",".join([("+" if features[name] else "-") + name for name in sorted(features)])


@cache
def _linker() -> Any:
    _machine(1)
    return llvm.create_lljit_compiler(llvm.Target.from_default_triple().create_target_machine(jit=True))


@cache
def native_width() -> int:
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512dq"):
        return 8
    return 4 if features.get("avx2") else 2


@cache
def _c_functions() -> dict[str, int]:
    """Return the addresses of C's functions of numbers: Python itself links to their library."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    if not all(hasattr(library, name) for name in C_FUNCTIONS):
        library = ctypes.CDLL(find_library("m"))
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in C_FUNCTIONS}


@cache
def description() -> str:
    """Return what object code depends on besides the program: LLVM, the machine, the compiler's sources."""
    package = __file__.rsplit(os.sep, 4)[0]
    lowering, count = hashlib.sha256(), 0
    for folder in ("ops", "compiler/ir", "compiler/backends"):
        for at, folders, names in os.walk(f"{package}/{folder}"):
            folders.sort()
            for name in sorted([name for name in names if name.endswith(".py")]):
                with open(f"{at}/{name}", "rb") as file:
                    lowering.update(file.read())
                count += 1
    if not count:  # there are no sources, as in an archive
        lowering.update(version("wengert").encode())
    parts = (llvmlite.__version__, llvm.llvm_version_info, llvm.get_process_triple(), llvm.get_host_cpu_name())
    return repr((*parts, _features(), lowering.hexdigest()))


def compiled(text: str) -> bytes:
    with no_fork:
        lines, branches = text.count("\n"), text.count(" br i1")
        level = 0 if lines > (STRAIGHT if 100 * branches < lines else LONG) else 1
        reserve(COMPILING + PER_CHARACTER * len(text), "LLVM")
        machine = _machine(level)
        module = llvm.parse_assembly(text)
        return bytes(machine.emit_object(module))


def linked(code: bytes) -> Loaded:
    with no_fork:
        reserve(LINKING + PER_BYTE * len(code), "machine code")
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        for name, address in _c_functions().items():
            builder.import_symbol(name, address)
        for name in ("forward", "both"):
            builder.export_symbol(name)
        library = builder.link(_linker(), f"kernel{next(_numbers)}")
        loaded = Loaded(library)
        while _gone:
            del _libraries[_gone.pop()]
        _libraries[ref(loaded, _gone.append)] = library
        return loaded
