"""A program and its reverse made into machine code, here or in an earlier process, which left it on disk."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence
from typing import NamedTuple

from wengert._forks import no_fork
from wengert.compiler.backends import cache
from wengert.compiler.backends.native.layout import Lowered, module
from wengert.compiler.backends.native.machine import Loaded, compiled, description, linked, native_width
from wengert.compiler.ir import Array, Program

__all__ = ["Built", "build"]

HEADER = struct.Struct("<qqq")  # what `Lowered` says


class Built(NamedTuple):
    """What runs, and the scratch that it takes."""

    lowered: Lowered
    loaded: Loaded


def build(program: Program, back: Program, wanted: Sequence[Array]) -> Built:
    """A program as machine code.

    Raises:
        Unsupported: it has an operation that only Python can do.
    """
    lowered, code = object_code(program, back, wanted)
    return Built(lowered, linked(code))


def object_code(program: Program, back: Program, wanted: Sequence[Array]) -> tuple[Lowered, bytes]:
    """What a program is as object code, from the disk if it is there."""
    name = ""
    with no_fork:  # LLVM is asked what it runs on, and Python's `tempfile` has a lock
        width = native_width()
        if cache.cache_folder() is not None:
            name = cache.digest(pickle.dumps((program, back, wanted)), description().encode())
            kept = cache.load(name)
            if kept is not None and len(kept) > HEADER.size:
                return Lowered("", *HEADER.unpack_from(kept)), kept[HEADER.size :]
    made = module(program, back, wanted, width)
    with no_fork:
        code = compiled(made.text)
        if name:
            cache.save(name, HEADER.pack(made.fixed, made.each, made.width) + code)
    return made._replace(text=""), code
