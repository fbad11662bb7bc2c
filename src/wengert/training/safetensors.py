"""A file of named tensors of doubles, in the layout of safetensors, that is believed only once it has been checked.

    8 bytes     the length of the header, little-endian
    header      JSON: for each tensor its dtype, shape and place in the data; strings under __metadata__
    data        the numbers, as little-endian doubles

(https://github.com/huggingface/safetensors.) The metadata holds a SHA-256 over header and data, the hash itself counted
as 64 zeros, so no damage goes unnoticed. A tensor here is a number (of shape []) or a list of them (of shape [n]).
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from wengert.errors import ArgumentError, CheckpointError

__all__ = ["Path", "Tensor", "header_size", "read", "some", "write"]

Path = str | os.PathLike[str]

FORMAT, VERSION = "wengert.checkpoint", "1"
NO_HASH = "0" * 64
CHUNK = 1 << 20  # bytes of a tensor that is not wanted, read at a time


class Tensor(NamedTuple):
    """Its shape, [] or [n], and its numbers."""

    shape: list[int]
    numbers: array[float]


Select = Callable[[dict[str, list[int]], dict[str, str]], Iterable[str]]


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Put a file of these tensors and strings in the place of what was at `path`, all or nothing.

    Raises:
        CheckpointError: the file cannot be written; the message names the cause.
        ArgumentError: the path is none.
    """
    target = _file_name(path)
    numbers = array("d")
    for tensor in tensors.values():
        numbers.extend(tensor.numbers)
    data = _little_endian(numbers).tobytes()
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    digest = _sha256([_header(shapes, metadata, NO_HASH), data])
    header = _header(shapes, metadata, digest)
    _replace(target, struct.pack("<Q", len(header)) + header + data)


def read(path: Path, longest: int, select: Select) -> tuple[dict[str, array[float]], dict[str, str]]:
    """The numbers of some of the tensors in a file, and its strings.

    Args:
        path: the file.
        longest: the most bytes of header that are read into memory.
        select: select(shapes, metadata) of all that the file says it holds gives the names that are wanted. Only
            these are read into memory. It raises a CheckpointError where they are not what was expected.

    Raises:
        CheckpointError: the file cannot be read, is damaged or no checkpoint; the message names the cause.
        ArgumentError: the path is none.
    """
    source = _file_name(path)
    try:
        with open(source, "rb") as file:
            return _read(file, longest, select)
    except (OSError, ValueError) as error:  # a ValueError: no file can have such a name
        raise CheckpointError(f"cannot read {source!r}: {getattr(error, 'strerror', None) or error}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{source}: {error}") from error.__cause__


def _file_name(path: Path) -> str:
    """A path as a string. A number is none, though `open` would take it for a file that is open already."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise ArgumentError(f"the path is {path!r:.60}; expected a string, or a pathlib.Path")
    return name


def header_size(shapes: Mapping[str, list[int]]) -> int:
    """How many bytes the header of such tensors takes."""
    return len(_header(shapes, {}, NO_HASH))


def some(fault: str, names: list[str]) -> str:
    """`2 missing (a, b)`; nothing if there are none. What a terminal would not print but obey is escaped."""
    shown = ", ".join(repr(name)[1:-1][:80] for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {fault} ({shown})" if names else ""


# -- what is in a file ------------------------------------------------------------------------------------------------

# hashlib, json and secrets are imported where they are used: they are a fifth of what `import wengert` costs.


def _sha256(parts: Iterable[bytes]) -> str:
    import hashlib

    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def _header(shapes: Mapping[str, list[int]], metadata: Mapping[str, str], digest: str) -> bytes:
    """The header as it stands in the file, padded so that the data start at a multiple of 8 bytes."""
    import json

    known = {"format": FORMAT, "version": VERSION, "sha256": digest}
    entries: dict[str, Any] = {"__metadata__": {**known, **metadata}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 8 * _size(shape)
        entries[name] = {"dtype": "F64", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _size(shape: list[int]) -> int:
    return shape[0] if shape else 1


def _read(file: BinaryIO, longest: int, select: Select) -> tuple[dict[str, array[float]], dict[str, str]]:
    """The numbers that are wanted, from a file of which nothing is believed until it has been checked."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    if len(start) < 8:
        raise CheckpointError(f"no checkpoint: it is {size} bytes long, and the length of a header alone takes 8")
    (length,) = struct.unpack("<Q", start)
    if length > size - 8:
        raise CheckpointError(f"no checkpoint, or cut short: it announces a header of {length} bytes and has {size}")
    if length > longest:
        raise CheckpointError(
            f"no checkpoint of such a model: its header is {length} bytes long; at most {longest} are read"
        )
    header = file.read(length)
    entries, metadata, digest = _parse(header)
    places = _places(entries, size - 8 - length)
    wanted = set(select({name: entry["shape"] for name, entry in entries.items()}, metadata))
    kept: dict[str, bytes] = {}

    def parts() -> Iterator[bytes]:
        yield header.replace(digest.encode(), NO_HASH.encode(), 1)
        for name, (begin, end) in sorted(places.items(), key=lambda tensor: tensor[1]):
            if name in wanted:
                kept[name] = file.read(end - begin)
                yield kept[name]
            else:
                for place in range(begin, end, CHUNK):
                    yield file.read(min(CHUNK, end - place))

    if _sha256(parts()) != digest:
        raise CheckpointError("damaged: its SHA-256 is not the one that it was saved with")
    return {name: _little_endian(array("d", data)) for name, data in kept.items()}, metadata


def _parse(header: bytes) -> tuple[dict[str, Any], dict[str, str], str]:
    """The tensors that a header tells of, its strings, and the hash that it gives."""
    import json

    try:
        entries = json.loads(header.decode("utf-8"), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise CheckpointError("no checkpoint, or damaged: its header is not JSON") from error
    if not isinstance(entries, dict) or not isinstance(entries.get("__metadata__"), dict):
        raise CheckpointError("no checkpoint: its header has no __metadata__")
    metadata = entries.pop("__metadata__")
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"no checkpoint of wengert: its format is {metadata.get('format')!r:.40}")
    if metadata.get("version") != VERSION:
        raise CheckpointError(f"of version {metadata.get('version')!r:.40}, and this wengert reads version {VERSION}")
    digest = metadata.get("sha256")
    if not isinstance(digest, str) or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise CheckpointError("damaged: it gives no SHA-256")
    if not all(isinstance(text, str) for text in metadata.values()):
        raise CheckpointError("damaged: its metadata are not all strings")
    return entries, metadata, digest


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _places(entries: dict[str, Any], room: int) -> dict[str, tuple[int, int]]:
    """Where each tensor lies in the data: one behind the other, as many bytes as its shape says, to the end."""
    places = {}
    for name, entry in entries.items():
        keys = ("dtype", "shape", "data_offsets")
        if not isinstance(entry, dict) or sorted(entry) != sorted(keys):
            raise CheckpointError(f"damaged: tensor {name!r:.60} is not described by {', '.join(keys)}")
        dtype, shape, offsets = (entry[key] for key in keys)
        if dtype != "F64":
            raise CheckpointError(f"tensor {name!r:.60} is of dtype {dtype!r:.20}; expected F64")
        if not _naturals(shape) or len(shape) > 1 or not _naturals(offsets) or len(offsets) != 2:
            raise CheckpointError(f"damaged: the shape or the offsets of tensor {name!r:.60} are none")
        begin, end = offsets
        if end - begin != 8 * _size(shape) or end > room:
            raise CheckpointError(f"cut short or damaged: tensor {name!r:.60} does not lie in the {room} bytes of data")
        places[name] = (begin, end)
    reached = 0
    for begin, end in sorted(places.values()):
        if begin != reached:
            raise CheckpointError("damaged: its tensors overlap or leave a gap")
        reached = end
    if reached != room:
        raise CheckpointError(f"damaged: {room} bytes of data where its tensors take {reached}")
    return places


def _naturals(numbers: object) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


def _little_endian(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


# -- replacing a file -------------------------------------------------------------------------------------------------


def _replace(path: str, content: bytes) -> None:
    """Put a file in the place of another at once, and on the disk before this returns."""
    import secrets

    try:
        target = os.path.realpath(path)
        folder, name = os.path.split(target)
        draft = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
        try:
            with open(draft, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            with suppress(OSError):  # it may not have come to a draft
                os.unlink(draft)
            raise
    except (OSError, ValueError) as error:  # a ValueError: no file can have such a name
        raise CheckpointError(f"cannot write {path!r}: {getattr(error, 'strerror', None) or error}") from error
    if os.name == "posix":  # elsewhere a folder cannot be opened, and need not be
        with suppress(OSError):  # nor can every folder be read, or every file system flush one
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
