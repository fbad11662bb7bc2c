"""Checkpoints: what comes back, who else can read them, and what happens to damaged, foreign and hostile files."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import random
import socket
import stat
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from wengert import Value, checkpoint
from wengert.errors import ArgumentError, CheckpointError
from wengert.nn import MLP, Module
from wengert.optim import Adam

pytestmark = pytest.mark.once  # files and random numbers are Python's


class Mixed(Module):
    """Parameters of every kind: alone, in lists, in nested containers, on modules."""

    def __init__(self) -> None:
        self.scale = Value(math.pi)
        self.table = [[Value(1.0), Value(-0.0)], [Value(5e-324), Value(1e308)]]
        self.named = {"a": Value(math.inf), "b": Value(math.nan)}
        self.inner = MLP(2, [3, 1], rng=random.Random(1))


def bits(model: Module) -> dict[str, bytes]:
    return {name: struct.pack("<d", number) for name, number in model.state_dict().items()}


def zeroed(model: Module) -> Any:
    for p in model.parameters():
        p.data = 0.0
    return model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def header_of(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write(path: Path, header: Any, data: bytes, length: int | None = None) -> None:
    """A file with this header and data and the right hash, as whoever knows the format could write it."""
    if isinstance(header, dict) and isinstance(header.get("__metadata__"), dict):
        header = {**header, "__metadata__": {**header["__metadata__"], "sha256": "0" * 64}}
        draft = json.dumps(header).encode()
        digest = hashlib.sha256(draft + data).hexdigest()
        text = draft.replace(b"0" * 64, digest.encode(), 1)
    else:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def test_every_bit_comes_back(path: Path) -> None:
    model = Mixed()
    before = bits(model)
    checkpoint.save(model, path)
    other = zeroed(Mixed())
    checkpoint.load(other, path)
    assert bits(other) == before


def test_a_path_may_be_a_string(path: Path) -> None:
    checkpoint.save(Mixed(), str(path))
    checkpoint.load(zeroed(Mixed()), str(path))


def test_the_same_model_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    checkpoint.save(Mixed(), path)
    checkpoint.save(Mixed(), tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_the_safetensors_library_reads_it(path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors and NumPy")
    model = Mixed()
    checkpoint.save(model, path)
    tensors = safetensors.load_file(path)
    assert tensors["model.scale"].shape == ()
    assert tensors["model.scale"] == math.pi
    assert tensors["model.table.1"].tolist() == [5e-324, 1e308]
    assert tensors["model.inner.layers.0.neurons.2.w"].tolist() == [w.data for w in model.inner.layers[0].neurons[2].w]
    assert sum(t.size for t in tensors.values()) == len(model.parameters())
    assert {str(t.dtype) for t in tensors.values()} == {"float64"}


def test_a_file_that_the_safetensors_library_wrote_is_no_checkpoint_of_ours(path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors and NumPy")
    import numpy as np

    safetensors.save_file({"w": np.zeros(3)}, path)
    with pytest.raises(CheckpointError, match="no __metadata__"):
        checkpoint.load(Mixed(), path)
    safetensors.save_file({"w": np.zeros(3)}, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="its format is 'pt'"):
        checkpoint.load(Mixed(), path)


def test_a_checkpoint_that_the_safetensors_library_wrote_is_read(path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors and NumPy")
    model = Mixed()
    before = bits(model)
    checkpoint.save(model, path)
    tensors = safetensors.load_file(path)
    metadata = {"format": "wengert.checkpoint", "version": "1", "sha256": "0" * 64}
    theirs = safetensors.save(tensors, metadata=metadata)  # its header is in another order, and so are its tensors
    digest = hashlib.sha256(theirs[8:]).hexdigest()
    path.write_bytes(theirs.replace(b"0" * 64, digest.encode(), 1))
    checkpoint.load(zeroed(model), path)
    assert bits(model) == before


def test_the_data_start_at_a_multiple_of_eight(path: Path) -> None:
    for size in range(1, 9):
        checkpoint.save(MLP(size, [1]), path)
        assert struct.unpack("<Q", path.read_bytes()[:8])[0] % 8 == 0


def test_a_loaded_model_computes_the_same(path: Path) -> None:
    model = MLP(2, [3, 1], rng=random.Random(1))
    checkpoint.save(model, path)
    other = MLP(2, [3, 1], rng=random.Random(2))
    checkpoint.load(other, path)
    assert other([1.0, -2.0]).data == model([1.0, -2.0]).data


# -- another model's file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        (MLP(2, [2]), r"2 missing \(model\.layers\.1\.neurons\.0\.w, model\.layers\.1\.neurons\.0\.b\)"),
        (MLP(3, [2, 1]), r"2 of another shape \(model\.layers\.0\.neurons\.0\.w \[3\], expected \[2\]"),
        (MLP(2, [2, 1, 1]), r"2 unexpected \(model\.layers\.2"),
    ],
)
def test_another_models_parameters_are_refused(saved: MLP, words: str, path: Path) -> None:
    model = MLP(2, [2, 1])
    checkpoint.save(saved, path)
    before = bits(model)
    with pytest.raises(CheckpointError, match=words):
        checkpoint.load(model, path)
    assert bits(model) == before


# -- damage -----------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    model = MLP(2, [2, 1], rng=random.Random(1))
    checkpoint.save(model, path)
    content = path.read_bytes()
    before = bits(model)
    rng = random.Random(2)
    places = [*range(64), *(8 * rng.randrange(len(content)) + rng.randrange(8) for _ in range(1500))]
    for place in places:
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=str(path.name)):
            checkpoint.load(model, path)
    assert bits(model) == before


def test_every_truncation_is_noticed(path: Path) -> None:
    model = MLP(1, [1])
    checkpoint.save(model, path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            checkpoint.load(model, path)
    path.write_bytes(content + b"more")
    with pytest.raises(CheckpointError, match="bytes of data, but its tensors take"):
        checkpoint.load(model, path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot read .*nowhere.: No such file"):
        checkpoint.load(Mixed(), tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="cannot read"):
        checkpoint.load(Mixed(), tmp_path)


@pytest.mark.parametrize("wrong", [None, 3, 0.5, b"model", ["model"]])
def test_what_is_no_path(wrong: Any) -> None:
    for act in (checkpoint.save, checkpoint.load):
        with pytest.raises(ArgumentError, match=r"the path is .*; expected a string or a pathlib\.Path"):
            act(Mixed(), wrong)


@pytest.mark.parametrize("act", [checkpoint.save, checkpoint.load])
def test_what_is_no_model_optimizer_or_history(act: Any, path: Path) -> None:
    for model in (None, Mixed().parameters(), MLP, "model"):
        with pytest.raises(ArgumentError, match=r"model is .*; expected a Module, or an object with named_parameters"):
            act(model, path)
    with pytest.raises(ArgumentError, match=r"optimizer is type .*; expected an Optimizer, such as Adam"):
        act(Mixed(), path, optimizer=Adam)
    with pytest.raises(ArgumentError, match=r"history is list \[0\.5\]; expected a History"):
        act(Mixed(), path, history=[0.5])
    assert not path.exists()


def test_two_parameters_of_one_name(path: Path) -> None:
    class Doubled:
        def named_parameters(self) -> list[tuple[str, Value]]:
            return [("w", Value(1.0)), ("w", Value(2.0))]

    with pytest.raises(CheckpointError, match="two parameters are both named 'w': rename one of them"):
        checkpoint.save(Doubled(), path)


METADATA = {"format": "wengert.checkpoint", "version": "1"}
ENTRY = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
TWICE = b'{"__metadata__":{"format":"wengert.checkpoint","version":"1","sha256":"%s"},"a":1,"a":2}' % (b"0" * 64)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (TWICE, "not JSON"),
        ([1, 2], "no __metadata__"),
        ({"w": ENTRY}, "no __metadata__"),
        ({"__metadata__": [1]}, "no __metadata__"),
        ({"__metadata__": {"format": "x" * 1000}}, "its format is 'x{10,40}$"),
        ({"__metadata__": {**METADATA, "version": "2"}}, "reads version 1"),
        (json.dumps({"__metadata__": METADATA}).encode(), "SHA-256 is missing or invalid"),
        (json.dumps({"__metadata__": {**METADATA, "sha256": 5}}).encode(), "SHA-256 is missing or invalid"),
        ({"__metadata__": METADATA, "w": 3}, "is not described by"),
        ({"__metadata__": METADATA, "w": {"dtype": "F64"}}, "is not described by"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "dtype": "F32"}}, "of dtype 'F32'; expected F64"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [-2]}}, "the shape or the offsets"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [1, 2]}}, "the shape or the offsets"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": 2}}, "the shape or the offsets"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [True]}}, "the shape or the offsets"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "data_offsets": [0]}}, "the shape or the offsets"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "data_offsets": [16, 0]}}, "does not fit"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [2**61], "data_offsets": [0, 2**64]}}, "the shape or the"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [2**50], "data_offsets": [0, 2**53]}}, "does not fit"),
        ({"__metadata__": METADATA, "v": ENTRY, "w": ENTRY}, "overlap"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [1], "data_offsets": [8, 16]}}, "overlap or leave a gap"),
        ({"__metadata__": METADATA, "w": {**ENTRY, "shape": [1], "data_offsets": [0, 8]}}, "its tensors take 8"),
        ({"__metadata__": METADATA, "model.other": ENTRY}, "another model"),
    ],
)
def test_hostile_headers_are_refused(header: Any, words: str, path: Path) -> None:
    write(path, header, bytes(16))
    with pytest.raises(CheckpointError, match=words):
        checkpoint.load(MLP(1, [1]), path)


def test_a_name_cannot_command_the_terminal(path: Path) -> None:
    name = "model.\x1b[31m\n\u202egnp"
    write(path, {"__metadata__": METADATA, name: {**ENTRY, "shape": [0], "data_offsets": [0, 0]}}, b"")
    with pytest.raises(CheckpointError, match=r"1 unexpected \(model\.\\x1b\[31m\\n\\u202egnp\)"):
        checkpoint.load(MLP(1, [1]), path)


def peak_while(call: Any) -> int:
    """The bytes that were allocated at most at one time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_header_is_not_read(path: Path) -> None:
    write(path, b'{"a":[' + b"[]," * 1_000_000 + b"[]]}", b"")

    def refused() -> None:
        with pytest.raises(CheckpointError, match="its header has 3000010 bytes, and at most"):
            checkpoint.load(MLP(1, [1]), path)

    assert peak_while(refused) < 500_000


def test_great_tensors_of_other_kinds_take_no_memory(path: Path) -> None:
    model = MLP(1, [1], rng=random.Random(1))
    checkpoint.save(model, path)
    header, data = header_of(path)
    end, size = len(data), 1 << 25
    header["optimizer.mean"] = {"dtype": "F64", "shape": [size // 8], "data_offsets": [end, end + size]}
    write(path, header, data + bytes(size))
    before = bits(model)
    assert peak_while(lambda: checkpoint.load(zeroed(model), path)) < 5_000_000
    assert bits(model) == before


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 100_000_001, 10_000])
def test_a_length_is_not_believed(length: int, path: Path) -> None:
    write(path, {"__metadata__": METADATA}, bytes(16), length)
    with pytest.raises(CheckpointError, match="its header should have"):
        checkpoint.load(MLP(1, [1]), path)


def test_tensors_of_other_kinds_may_stand_beside_the_models(path: Path) -> None:
    checkpoint.save(MLP(1, [1], rng=random.Random(1)), path)
    header, data = header_of(path)
    end = len(data)
    header["optimizer.mean"] = {"dtype": "F64", "shape": [1], "data_offsets": [end, end + 8]}
    write(path, header, data + bytes(8))
    model = MLP(1, [1])
    checkpoint.load(model, path)
    assert bits(model) == bits(MLP(1, [1], rng=random.Random(1)))


# -- a save that fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file(
    step: str, failure: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save(MLP(1, [1], rng=random.Random(1)), path)
    content = path.read_bytes()

    def fail(*arguments: Any) -> None:
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises((CheckpointError, KeyboardInterrupt)) as caught:
        checkpoint.save(MLP(5, [5]), path)
    if isinstance(failure, OSError):
        assert "No space left on device" in str(caught.value)
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot write .*No such file or directory"):
        checkpoint.save(Mixed(), tmp_path / "nowhere" / "model")


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    checkpoint.save(MLP(1, [1]), path)
    link = tmp_path / "latest"
    try:
        link.symlink_to(path)
    except OSError:
        pytest.skip("this system makes no symbolic links")
    checkpoint.save(MLP(2, [2]), link)
    assert link.is_symlink()
    checkpoint.load(MLP(2, [2]), path)


# -- what stands at the path ------------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="this system has no permission bits, no pipes and no devices")


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644, 0o666, 0o755, 0o200])
def test_a_replaced_file_keeps_its_permissions(bits: int, path: Path) -> None:
    checkpoint.save(MLP(1, [1]), path)
    path.chmod(bits)
    checkpoint.save(MLP(2, [2]), path)
    assert permissions(path) == bits


@posix
@pytest.mark.parametrize(("umask", "bits"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_those_that_open_gives(umask: int, bits: int, path: Path) -> None:
    before = os.umask(umask)
    try:
        checkpoint.save(MLP(1, [1]), path)
    finally:
        os.umask(before)
    assert permissions(path) == bits


@posix
def test_nobody_else_reads_a_private_file_while_it_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(MLP(1, [1]), path)
    path.chmod(0o600)
    seen = []

    def look(draft: str, bits: int) -> None:
        seen.append((permissions(Path(draft)), os.path.getsize(draft), bits))

    monkeypatch.setattr(os, "chmod", look)
    checkpoint.save(MLP(1, [1]), path)
    assert seen == [(0o600, 0, 0o600)]


@posix
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_root_leaves_a_file_to_its_owner(path: Path) -> None:
    checkpoint.save(MLP(1, [1]), path)
    os.chown(path, 12345, 54321)
    checkpoint.save(MLP(2, [2]), path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@posix
@pytest.mark.parametrize("bits", [0o400, 0o444, 0o555])
def test_a_read_only_file_is_left_alone_by_root_too(bits: int, path: Path) -> None:
    checkpoint.save(MLP(1, [1]), path)
    content = path.read_bytes()
    path.chmod(bits)
    with pytest.raises(CheckpointError, match=r"^cannot write .*: it is read-only$"):
        checkpoint.save(MLP(2, [2]), path)
    assert (path.read_bytes(), permissions(path), os.listdir(path.parent)) == (content, bits, [path.name])


@posix
@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a socket", "a device"])
def test_what_is_no_file_is_neither_written_nor_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe would be waited for, and /dev/zero has no end."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "special"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        monkeypatch.chdir(folder)  # a socket's path is a short one
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    else:
        path.symlink_to("/dev/zero")
    before = os.lstat(path)
    for what, act in (("write", checkpoint.save), ("read", checkpoint.load)):
        with pytest.raises(CheckpointError, match=rf"^cannot {what} .*: it is {kind}, not a regular file$"):
            act(MLP(1, [1]), path)
    assert os.listdir(folder) == [path.name]
    assert (os.lstat(path).st_mode, os.lstat(path).st_ino) == (before.st_mode, before.st_ino)


@posix
def test_a_file_that_becomes_a_pipe_is_not_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(MLP(1, [1]), path)
    about = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda *_, **__: about)
    with pytest.raises(CheckpointError, match="it is a pipe, not a regular file"):
        checkpoint.load(MLP(1, [1]), path)


def fail_for_folders(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a system on which files can be flushed, and folders not."""
    flush = os.fsync

    def fail(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        flush(handle)

    monkeypatch.setattr(os, "fsync", fail)


@posix
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_folder_that_is_not_flushed_is_named(number: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for_folders(number, monkeypatch)
    model = MLP(1, [1])
    words = rf"is written, but its folder cannot be flushed to the disk: {os.strerror(number)}\. After a power failure"
    with pytest.raises(CheckpointError, match=words):
        checkpoint.save(model, path)
    twin = MLP(1, [1])
    checkpoint.load(twin, path)
    assert bits(twin) == bits(model)


@posix
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_where_no_folder_can_be_flushed_a_save_is_one(number: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for_folders(number, monkeypatch)
    checkpoint.save(MLP(1, [1]), path)
    checkpoint.load(MLP(1, [1]), path)


@posix
def test_a_folder_that_cannot_be_read_can_be_written_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(name: Any, flags: int, *rest: Any, **named: Any) -> int:
        if os.path.isdir(name):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(name, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    checkpoint.save(MLP(1, [1]), path)
    assert path.exists()
