"""Reads and writes files of named float64 tensors, in the layout of safetensors, and checks everything it reads.

    8 bytes     the length of the header, little-endian
    header      JSON: for each tensor its dtype, shape and offsets in the data; strings under __metadata__
    data        the numbers, as little-endian doubles

(https://github.com/huggingface/safetensors.) The metadata has a SHA-256 of header and data, in which the hash itself
counts as 64 zeros, so that any damage is detected. A tensor is a number (of shape []) or a list of numbers (of shape
[n]).
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from wengert._files import check_regular, opened
from wengert.errors import CheckpointError, file_name

__all__ = ["Path", "Tensor", "header_size", "read", "some", "write"]

Path = str | os.PathLike[str]

FORMAT, VERSION = "wengert.checkpoint", "1"
NO_HASH = "0" * 64
CHUNK = 1 << 20  # tensors that are skipped are read in pieces of this many bytes


class Tensor(NamedTuple):
    """A tensor: its shape, [] or [n], and its numbers."""

    shape: list[int]
    numbers: array[float]


Select = Callable[[dict[str, list[int]], dict[str, str]], Iterable[str]]


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file with these tensors and strings, atomically.

    Raises:
        CheckpointError: the file cannot be written; the message has the cause.
        ArgumentError: the path is not a path.
    """
    target = file_name(path)
    numbers = array("d")
    for tensor in tensors.values():
        numbers.extend(tensor.numbers)
    data = _little_endian(numbers).tobytes()
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    digest = _sha256([_header(shapes, metadata, NO_HASH), data])
    header = _header(shapes, metadata, digest)
    _replace(target, struct.pack("<Q", len(header)) + header + data)


def read(path: Path, longest: int, select: Select) -> tuple[dict[str, array[float]], dict[str, str]]:
    """Read the numbers of some of the tensors in a file, and its strings.

    Args:
        path: the file.
        longest: the largest header that is read, in bytes.
        select: select(shapes, metadata) gets the content of the file and returns the names of the tensors to read; only
            these are read into memory. It raises a CheckpointError if the content is not the expected one.

    Raises:
        CheckpointError: the file cannot be read, is damaged or not a checkpoint; the message has the cause.
        ArgumentError: the path is not a path.
    """
    source = file_name(path)
    try:
        with opened(source, largest=None) as file:
            return _read(file, longest, select)
    except (OSError, ValueError) as error:  # a ValueError: an invalid file name
        raise CheckpointError(f"cannot read {source!r}: {getattr(error, 'strerror', None) or error}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{source}: {error}") from error.__cause__


def header_size(shapes: Mapping[str, list[int]]) -> int:
    """Return the size of a header in bytes."""
    return len(_header(shapes, {}, NO_HASH))


def some(fault: str, names: list[str]) -> str:
    """Write `2 missing (a, b)`; empty if there are no names. Control characters are escaped."""
    shown = ", ".join(repr(name)[1:-1][:80] for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {fault} ({shown})" if names else ""


# -- the content of a file --------------------------------------------------------------------------------------------

# hashlib, json and secrets are imported where they are used: they would be a fifth of the time of `import wengert`.


def _sha256(parts: Iterable[bytes]) -> str:
    import hashlib

    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def _header(shapes: Mapping[str, list[int]], metadata: Mapping[str, str], digest: str) -> bytes:
    """Return the header of a file, padded so that the data start at a multiple of 8 bytes."""
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
    """Read the selected tensors, checking the whole file."""
    about = os.fstat(file.fileno())
    check_regular(about)  # it may have been replaced meanwhile
    size = about.st_size
    start = file.read(8)
    if len(start) < 8:
        raise CheckpointError(f"not a checkpoint: the file has {size} bytes, but the length of a header takes 8")
    (length,) = struct.unpack("<Q", start)
    if length > size - 8:
        raise CheckpointError(f"not a checkpoint, or truncated: its header should have {length} bytes, the file {size}")
    if length > longest:
        raise CheckpointError(
            f"not a checkpoint of this model: its header has {length} bytes, and at most {longest} are read"
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
        raise CheckpointError("damaged: its SHA-256 differs from the saved one")
    return {name: _little_endian(array("d", data)) for name, data in kept.items()}, metadata


def _parse(header: bytes) -> tuple[dict[str, Any], dict[str, str], str]:
    """Return the tensors in a header, its strings, and its hash."""
    import json

    try:
        entries = json.loads(header.decode("utf-8"), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise CheckpointError("not a checkpoint, or damaged: its header is not JSON") from error
    if not isinstance(entries, dict) or not isinstance(entries.get("__metadata__"), dict):
        raise CheckpointError("not a checkpoint: its header has no __metadata__")
    metadata = entries.pop("__metadata__")
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"not a checkpoint of wengert: its format is {metadata.get('format')!r:.40}")
    if metadata.get("version") != VERSION:
        raise CheckpointError(f"its version is {metadata.get('version')!r:.40}; this wengert reads version {VERSION}")
    digest = metadata.get("sha256")
    if not isinstance(digest, str) or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise CheckpointError("damaged: its SHA-256 is missing or invalid")
    if not all(isinstance(text, str) for text in metadata.values()):
        raise CheckpointError("damaged: its metadata are not all strings")
    return entries, metadata, digest


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _places(entries: dict[str, Any], room: int) -> dict[str, tuple[int, int]]:
    """Return the offsets of each tensor, which have to fit the shapes and fill the data without gaps."""
    places = {}
    for name, entry in entries.items():
        keys = ("dtype", "shape", "data_offsets")
        if not isinstance(entry, dict) or sorted(entry) != sorted(keys):
            raise CheckpointError(f"damaged: tensor {name!r:.60} is not described by {', '.join(keys)}")
        dtype, shape, offsets = (entry[key] for key in keys)
        if dtype != "F64":
            raise CheckpointError(f"tensor {name!r:.60} is of dtype {dtype!r:.20}; expected F64")
        if not _naturals(shape) or len(shape) > 1 or not _naturals(offsets) or len(offsets) != 2:
            raise CheckpointError(f"damaged: the shape or the offsets of tensor {name!r:.60} are invalid")
        begin, end = offsets
        if end - begin != 8 * _size(shape) or end > room:
            raise CheckpointError(f"truncated or damaged: tensor {name!r:.60} does not fit the {room} bytes of data")
        places[name] = (begin, end)
    reached = 0
    for begin, end in sorted(places.values()):
        if begin != reached:
            raise CheckpointError("damaged: its tensors overlap or leave a gap")
        reached = end
    if reached != room:
        raise CheckpointError(f"damaged: it has {room} bytes of data, but its tensors take {reached}")
    return places


def _naturals(numbers: object) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


def _little_endian(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


# -- files ------------------------------------------------------------------------------------------------------------


def _replaced(target: str) -> os.stat_result | None:
    """Return the status of the file that will be replaced; None if there is none.

    Raises:
        OSError: it is read-only. (Replacing it would be possible, but it was made read-only to be kept.)
    """
    try:
        about = os.stat(target)
    except FileNotFoundError:
        return None
    check_regular(about)
    if not about.st_mode & 0o222 or not os.access(target, os.W_OK):  # root may write in spite of the bits
        raise PermissionError(errno.EACCES, "it is read-only")
    return about


def _keep(draft: str, about: os.stat_result) -> None:
    """Give a new file the permissions of the one that it will replace and, as far as allowed, its owner."""
    with suppress(AttributeError, PermissionError):  # Windows has no owners, and only root can change them freely
        os.chown(draft, about.st_uid, about.st_gid)
    os.chmod(draft, stat.S_IMODE(about.st_mode))


def _replace(path: str, content: bytes) -> None:
    """Replace a file atomically, and flush it to the disk."""
    import secrets

    try:
        target = os.path.realpath(path)
        folder, name = os.path.split(target)
        draft = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
        about = _replaced(target)
        try:
            bits = 0o666 if about is None else 0o600  # minus the umask; private until the old permissions are set
            with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, bits)) as file:
                if about is not None:
                    _keep(draft, about)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            with suppress(OSError):  # there may be no draft yet
                os.unlink(draft)
            raise
    except (OSError, ValueError) as error:  # a ValueError: an invalid file name
        raise CheckpointError(f"cannot write {path!r}: {getattr(error, 'strerror', None) or error}") from error
    try:
        _flush_folder(folder)
    except OSError as error:
        raise CheckpointError(
            f"{path!r} is written, but its folder cannot be flushed to the disk: {error.strerror}. After a power "
            "failure the old file may be back"
        ) from error


def _flush_folder(folder: str) -> None:
    """Flush the entries of a folder to the disk, if the system supports that."""
    if os.name != "posix":  # elsewhere a folder cannot be opened, and need not be
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that can be written but not read cannot be flushed
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):  # the file system cannot flush folders
            raise
    finally:
        os.close(handle)
