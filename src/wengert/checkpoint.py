"""Save and load a model's parameters: safe against faults, damage and hostile files.

    >>> import os, tempfile
    >>> from wengert.nn import MLP
    >>> model = MLP(2, [3, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save(model, path)
    >>> twin = MLP(2, [3, 1])
    >>> load(twin, path)
    >>> twin.state_dict() == model.state_dict()
    True

The file has the layout of safetensors (https://github.com/huggingface/safetensors), so its libraries read it:

    8 bytes     the length of the header, little-endian
    header      JSON: for each tensor its dtype, shape and place in the data; under __metadata__ what follows
    data        the numbers, as little-endian doubles

A list of parameters is one tensor: `model.layers.0.neurons.3.w` of shape [64]; a parameter by itself has shape []. The
metadata holds a SHA-256 over header and data (the hash itself counted as 64 zeros), so no damage goes unnoticed.
Nothing in a file is ever run, and what is read into memory is bounded by the size of the model, not by the file's.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from wengert.engine import Value
from wengert.errors import CheckpointError

__all__ = ["HasNamedParameters", "load", "save"]

Path = str | os.PathLike[str]
Groups = dict[str, tuple[list[int], list[Value]]]  # tensor name -> shape, parameters

FORMAT, VERSION = "wengert.checkpoint", "1"
NO_HASH = "0" * 64
SPARE_HEADER = 1_000_000  # bytes that a header may have beyond four times those of the model's own
CHUNK = 1 << 20  # bytes of a tensor that is none of the model's, read at a time


class HasNamedParameters(Protocol):
    """A Module, or what else names its parameters."""

    def named_parameters(self) -> list[tuple[str, Value]]:
        """Every parameter with its name, such as `layers.0.neurons.3.w.17`."""


def save(model: HasNamedParameters, path: Path) -> None:
    """Write a model's parameters to a file, all or nothing.

    The file is written under another name in the same folder, flushed to the disk, and only then renamed. A save that
    fails or is killed at any point leaves what was at `path` before.

    Raises:
        CheckpointError: the file cannot be written, or two tensors would have one name; the message names the cause.
    """
    groups = _groups(model)
    data = _little_endian(array("d", [p.data for _, parameters in groups.values() for p in parameters])).tobytes()
    digest = _sha256([_header(groups, NO_HASH), data])
    header = _header(groups, digest)
    _replace(path, struct.pack("<Q", len(header)) + header + data)


def load(model: HasNamedParameters, path: Path) -> None:
    """Set a model's parameters to those in a file, or change nothing at all.

    Args:
        model: of the same structure as the one that was saved.
        path: the file.

    Raises:
        CheckpointError: the file cannot be read, is damaged or no checkpoint, or holds another model's parameters;
            the message names the cause.
    """
    groups = _groups(model)
    try:
        with open(path, "rb") as file:
            numbers = _read(file, groups)
    except (OSError, ValueError) as error:  # a ValueError: no file can have such a name
        raise CheckpointError(
            f"cannot read {os.fspath(path)!r}: {getattr(error, 'strerror', None) or error}"
        ) from error
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from error.__cause__
    for name, (_, parameters) in groups.items():
        for p, number in zip(parameters, numbers[name], strict=True):
            p.data = number


# -- what is in a file ------------------------------------------------------------------------------------------------


def _groups(model: HasNamedParameters) -> Groups:
    """The tensors of a model: parameters p.0, p.1, ... of one list together, any other by itself."""
    lists: dict[str, list[Value]] = {}
    singles: Groups = {}
    for name, p in model.named_parameters():
        parent, _, last = name.rpartition(".")
        if parent and last == str(len(lists.get(parent, ()))):
            lists.setdefault(parent, []).append(p)
        else:
            singles[f"model.{name}"] = ([], [p])
    for name in lists:
        if f"model.{name}" in singles:
            raise CheckpointError(f"a list and a parameter are both named {name!r}: rename one of them")
    return {**{f"model.{name}": ([len(ps)], ps) for name, ps in lists.items()}, **singles}


# hashlib, json and secrets are imported where they are used: they are a fifth of what `import wengert` costs.


def _sha256(parts: Iterable[bytes]) -> str:
    import hashlib

    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def _header(groups: Groups, digest: str) -> bytes:
    """The header as it stands in the file, padded so that the data start at a multiple of 8 bytes."""
    import json

    entries: dict[str, Any] = {"__metadata__": {"format": FORMAT, "version": VERSION, "sha256": digest}}
    end = 0
    for name, (shape, parameters) in groups.items():
        begin, end = end, end + 8 * len(parameters)
        entries[name] = {"dtype": "F64", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _read(file: BinaryIO, groups: Groups) -> dict[str, array[float]]:
    """The numbers of each tensor, from a file of which nothing is believed until it has been checked."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    if len(start) < 8:
        raise CheckpointError(f"no checkpoint: it is {size} bytes long, and the length of a header alone takes 8")
    (length,) = struct.unpack("<Q", start)
    if length > size - 8:
        raise CheckpointError(f"no checkpoint, or cut short: it announces a header of {length} bytes and has {size}")
    most = SPARE_HEADER + 4 * len(_header(groups, NO_HASH))
    if length > most:
        raise CheckpointError(
            f"no checkpoint of such a model: its header is {length} bytes long; at most {most} are read"
        )
    header = file.read(length)
    entries, digest = _parse(header)
    places = _places(entries, size - 8 - length)
    _compare({name: shape for name, (shape, _) in groups.items()}, entries)
    kept: dict[str, bytes] = {}

    def parts() -> Iterator[bytes]:
        yield header.replace(digest.encode(), NO_HASH.encode(), 1)
        for name, (begin, end) in sorted(places.items(), key=lambda tensor: tensor[1]):
            if name in groups:
                kept[name] = file.read(end - begin)
                yield kept[name]
            else:
                for place in range(begin, end, CHUNK):
                    yield file.read(min(CHUNK, end - place))

    if _sha256(parts()) != digest:
        raise CheckpointError("damaged: its SHA-256 is not the one that it was saved with")
    return {name: _little_endian(array("d", data)) for name, data in kept.items()}


def _parse(header: bytes) -> tuple[dict[str, Any], str]:
    """The tensors that a header tells of, and the hash that it gives."""
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
    return entries, digest


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
        if end - begin != 8 * (shape[0] if shape else 1) or end > room:
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


def _compare(expected: dict[str, list[int]], entries: dict[str, Any]) -> None:
    """Refuse the parameters of another model."""
    found = {name: entry["shape"] for name, entry in entries.items() if name.startswith("model.")}
    reshaped = [name for name, shape in expected.items() if found.get(name, shape) != shape]
    faults = [
        _some("missing", [name for name in expected if name not in found]),
        _some("unexpected", [name for name in found if name not in expected]),
        _some("of another shape", [f"{name} {found[name]}, expected {expected[name]}" for name in reshaped]),
    ]
    if any(faults):
        raise CheckpointError(f"it holds another model's parameters: {'; '.join(filter(None, faults))}")


def _some(fault: str, names: list[str]) -> str:
    """`2 missing (a, b)`; nothing if there are none. What a terminal would not print but obey is escaped."""
    shown = ", ".join(repr(name)[1:-1][:80] for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {fault} ({shown})" if names else ""


def _little_endian(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


# -- replacing a file -------------------------------------------------------------------------------------------------


def _replace(path: Path, content: bytes) -> None:
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
        raise CheckpointError(
            f"cannot write {os.fspath(path)!r}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if os.name == "posix":  # elsewhere a folder cannot be opened, and need not be
        with suppress(OSError):  # nor can every folder be read, or every file system flush one
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
