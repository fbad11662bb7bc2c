"""Compiles a program and its reverse, or loads their object code from disk."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence

from wengert._forks import no_fork
from wengert.compiler.backends import cache
from wengert.compiler.backends.native.layout import Lowered, module
from wengert.compiler.backends.native.machine import Loaded, compiled, description, linked, native_width
from wengert.compiler.ir import Array, Program

__all__ = ["build"]

HEADER = struct.Struct("<qqq")  # the fields of `Lowered` except for the text


def build(program: Program, back: Program, wanted: Sequence[Array]) -> tuple[Lowered, Loaded]:
    """Compile a program.

    Raises:
        Unsupported: it has an operation that only Python can compute.
    """
    lowered, code = object_code(program, back, wanted)
    return lowered, linked(code)


def object_code(program: Program, back: Program, wanted: Sequence[Array]) -> tuple[Lowered, bytes]:
    """Return the object code of a program, from disk if it is there."""
    name = ""
    with no_fork:  # this calls LLVM, and Python's `tempfile`, which has a lock
        width = native_width()
        if cache.cache_folder() is not None:
            name = cache.digest(pickle.dumps((program, back, wanted)), description().encode())
            cached = cache.load(name)
            if cached is not None and len(cached) > HEADER.size:
                return Lowered("", *HEADER.unpack_from(cached)), cached[HEADER.size :]
    lowered = module(program, back, wanted, width)
    with no_fork:
        code = compiled(lowered.text)
        if name:
            cache.save(name, HEADER.pack(lowered.fixed, lowered.each, lowered.width) + code)
    return lowered._replace(text=""), code
