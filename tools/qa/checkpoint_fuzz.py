"""Savers that are killed, files that are damaged or forged: two commands, of which the suite runs a small part.

    python -m tools.qa.checkpoint_fuzz kill 1000
    python -m tools.qa.checkpoint_fuzz mutate 10000

kill: a process saves again and again, and is killed (SIGKILL) at a random point: every other time after a random time,
every other time at a random line of the code that saves, or in the midst of a write. Each time the file must hold the
last state whose `save` had returned, or the one after it, whole.

mutate: files are damaged (bits, bytes, pieces lost, doubled, moved), or forged with a right hash. Each must be refused
with a CheckpointError and change nothing, or give exactly what a decoder of a few lines, written here, reads in it.
Python's audit hook watches that reading runs no code, and tracemalloc how much memory it takes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import struct
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wengert import checkpoint
from wengert.errors import CheckpointError
from wengert.nn import MLP, Module
from wengert.optim import Adam
from wengert.training.history import History

INTEGERS = ("rng.words", "optimizer.steps", "history.interrupted", "history.stopped_early", "history.diverged")
HARMLESS = ("array.__new__", "builtins.id", "object.__getattr__", "sys._getframe")
MEMORY = 64 << 20  # bytes that reading a file of at most 2 MB may take, the JSON of a header of 1 MB among them


class Run:
    """All that a checkpoint holds: a small network, its optimizer, the history, random numbers."""

    def __init__(self, k: int) -> None:
        """One in which every number tells that it is of state k."""
        self.model = MLP(3, [4, 1], rng=random.Random(0))
        self.optimizer = Adam(self.model)
        self.history = History([float(k)] * 3, [float(k)] * 3, seconds=float(k), backend="eager", fallback=f"run {k}")
        self.rng = random.Random(k)
        for p in self.model.parameters():
            p.data = float(k)
        state = self.optimizer.state_dict()
        self.optimizer.load_state_dict({**state, "steps": k, "mean": [float(k)] * len(state["mean"])})

    @property
    def parts(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer, "history": self.history, "rng": self.rng}

    def save(self, path: Path) -> None:
        checkpoint.save(self.model, path, **self.parts)

    def load(self, path: Path) -> None:
        checkpoint.load(self.model, path, **self.parts)

    def bits(self) -> list[bytes]:
        """Everything, to the bit."""
        optimizer, history = self.optimizer.state_dict(), self.history.state_dict()
        words = [*self.rng.getstate()[1]]
        normal = self.rng.getstate()[2]
        numbers = [[*self.model.state_dict().values()], words, [] if normal is None else [normal]]
        numbers += [part if isinstance(part, list) else [part] for part in (*optimizer.values(), *history.values())]
        return [
            x.encode() if isinstance(x, str) else struct.pack("<d", x) for part in numbers for x in [len(part), *part]
        ]


# -- a saver that is killed -------------------------------------------------------------------------------------------


def kill(count: int, seed: int = 0) -> str:
    """Kill `count` savers; what was found, in a line. An AssertionError where something was lost."""
    rng = random.Random(seed)
    kept = advanced = drafts = 0
    states = {k: Run(k).bits() for k in range(200)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        Run(0).save(path)
        for number in range(count):
            last = _killed_saver(path, rng, by_line=number % 2 == 1)
            run = Run(199)
            run.load(path)  # a CheckpointError here would be a file lost
            found = run.optimizer.steps
            assert run.bits() == states[found], f"kill {number}: a mixture of states"
            assert found in (last, last + 1), f"kill {number}: state {found}, and {last} had been saved"
            kept, advanced = kept + (found == last), advanced + (found == last + 1)
            left = [name for name in os.listdir(folder) if name != path.name]
            drafts += len(left)
            for name in left:
                os.unlink(path.parent / name)
            Run(0).save(path)
    return (
        f"{count} savers killed: {kept} files as last saved, {advanced} one save further, {drafts} drafts left, 0 lost"
    )


def _killed_saver(path: Path, rng: random.Random, by_line: bool) -> int:
    """Start a saver, kill it; the last state of which it said that it was saved."""
    reading, writing = os.pipe()
    runs = [Run(k) for k in range(1, 150)]
    line, share = rng.randrange(4000), rng.random()
    child = os.fork()
    if child == 0:
        if by_line:
            _die_at(line, share)
        for k, run in enumerate(runs, 1):
            run.save(path)
            os.write(writing, bytes([k]))
        os._exit(0)
    os.close(writing)
    if not by_line:
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    confirmed = b""
    while more := os.read(reading, 1000):
        confirmed += more
    os.close(reading)
    return confirmed[-1] if confirmed else 0


def _die_at(line: int, share: float) -> None:
    """Let this process be killed when it has run so many lines of what saves; where it writes, in the midst of it."""
    left = line

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_globals.get("__name__") not in ("wengert.checkpoint.states", "wengert.checkpoint.safetensors"):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                file = frame.f_locals.get("file")
                if file is not None and not file.closed and file.tell() == 0:
                    content = frame.f_locals["content"]
                    file.write(content[: int(share * len(content))])
                    file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


# -- a file that is damaged or forged ---------------------------------------------------------------------------------


def mutate(count: int, seed: int = 0) -> str:
    """Read `count` mutated files; what came of them, in a line. An AssertionError where one was read wrong."""
    rng = random.Random(seed)
    refused = same = right = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        original = Run(7)
        original.rng.gauss(0.0, 1.0)  # half of a pair of normal numbers is kept
        original.save(path)
        content = path.read_bytes()
        target = Run(3)
        target.load(path)  # what loading imports is imported
        target = Run(3)
        before = target.bits()
        watch = _Watch(path)
        tracemalloc.start()
        most = 0
        for number in range(count):
            mutation = rng.choice(MUTATIONS)
            forged = mutation(content, rng)
            path.write_bytes(forged)
            tracemalloc.reset_peak()
            base = tracemalloc.get_traced_memory()[0]
            watch.on = True
            try:
                target.load(path)
                outcome = "loaded"
            except CheckpointError as error:
                outcome = "refused" if str(path) in str(error) else f"refused without its name: {error}"
            finally:
                watch.on = False
            what = f"file {number} ({mutation.__name__})"
            most = max(most, tracemalloc.get_traced_memory()[1] - base)
            assert not watch.seen, f"{what}: {watch.seen}"
            assert most < MEMORY, f"{what}: {most} bytes of memory"
            if outcome != "loaded":
                assert outcome == "refused"
                refused += 1
                assert target.bits() == before, f"{what}: refused, and yet something changed"
                continue
            same, right = same + (forged == content), right + (forged != content)
            assert forged == content or mutation in FORGERIES, f"{what}: damage was loaded"
            assert target.bits() == _decoded(forged), f"{what}: loaded as something else than it says"
            target = Run(3)
        tracemalloc.stop()
    return (
        f"{count} files: {refused} refused, {same} the original after all, {right} forged with a right hash and read "
        f"right; 0 silent loads, 0 crashes, 0 code run, at most {most / 2**20:.1f} MB of memory"
    )


class _Watch:
    """Notes what Python is asked to do besides reading one file. (An audit hook cannot be taken off again.)"""

    def __init__(self, path: Path) -> None:
        self.on = False
        self.seen: list[str] = []
        self.path = str(path)
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or event.startswith(HARMLESS):
            return
        if event == "open" and str(arguments[0]) == self.path and arguments[1] in ("rb", "r", None):
            return
        self.seen.append(f"{event} {arguments!r:.80}")


def _decoded(content: bytes) -> list[bytes]:
    """What a file says, in the order of `Run.bits`: the oracle, which checks nothing."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    strings = header.pop("__metadata__")
    data = content[8 + length :]

    def numbers(name: str) -> list[float]:
        begin, end = header[name]["data_offsets"]
        found = struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])
        return [x + 0.0 if name in INTEGERS else x for x in found]  # an integer has no -0.0

    run = Run(3)
    state = {name: [*numbers(f"model.{name}")] for name in _list_names(run.model)}
    parts: list[list[Any]] = [[x for part in state.values() for x in part], numbers("rng.words"), numbers("rng.normal")]
    for prefix, keys in (("optimizer", run.optimizer.state_dict()), ("history", run.history.state_dict())):
        for key in keys:
            name = f"{prefix}.{key}"
            if name in header:
                parts.append(numbers(name))
            else:
                text = strings[name]
                shown = "".join(c if c.isprintable() else " " for c in text) if key == "fallback" else text
                parts.append([shown])
    return [x.encode() if isinstance(x, str) else struct.pack("<d", x) for part in parts for x in [len(part), *part]]


def _list_names(model: Module) -> list[str]:
    """The names of a model's parameters, those of one list together."""
    names = [name for name, _ in model.named_parameters()]
    return list(dict.fromkeys(name.rpartition(".")[0] if name[-1].isdigit() else name for name in names))


# Damage: of a file by whatever befalls files. None of these may ever be loaded, but where nothing was changed.


def flipped_bits(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 10, 1000])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def flipped_bit_of_the_header(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    damaged[rng.randrange(8 + struct.unpack("<Q", content[:8])[0])] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncated(content: bytes, rng: random.Random) -> bytes:
    return content[
        : rng.choice([rng.randrange(len(content)), rng.randrange(600), len(content) - 8 * rng.randrange(1, 9)])
    ]


def with_more(content: bytes, rng: random.Random) -> bytes:
    place = rng.choice([len(content), rng.randrange(len(content))])
    return content[:place] + rng.randbytes(rng.choice([1, 8, 64, 5000])) + content[place:]


def with_a_piece_lost(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + content[place + rng.choice([1, 8, 512]) :]


def with_a_piece_of_zeros(content: bytes, rng: random.Random) -> bytes:
    """As a block that was never written."""
    size = rng.choice([8, 512, 4096])
    place = size * rng.randrange(len(content) // size)
    return content[:place] + bytes(size) + content[place + size :] if place + size < len(content) else content[:place]


def with_a_piece_doubled(content: bytes, rng: random.Random) -> bytes:
    place, size = rng.randrange(len(content)), rng.choice([1, 8, 512])
    return content[: place + size] + content[place:]


def with_two_numbers_exchanged(content: bytes, rng: random.Random) -> bytes:
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    i, j = (begin + 8 * rng.randrange((len(content) - begin) // 8) for _ in range(2))
    i, j = min(i, j), max(i, j)
    return (
        content
        if i == j
        else content[:i] + content[j : j + 8] + content[i + 8 : j] + content[i : i + 8] + content[j + 8 :]
    )


def with_another_length(content: bytes, rng: random.Random) -> bytes:
    length = rng.choice([0, 1, 7, len(content), 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, rng.getrandbits(64)])
    return struct.pack("<Q", length) + content[8:]


def noise(content: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([0, 1, 8, 100, len(content)]))


# Forgeries: of whoever knows the format, and gives the right hash. These may be loaded, as what they say.


def _forged(entries: Any, data: bytes, text: Callable[[bytes], bytes] = lambda header: header) -> bytes:
    if isinstance(entries, dict) and isinstance(entries.get("__metadata__"), dict):
        entries = {**entries, "__metadata__": {**entries["__metadata__"], "sha256": "0" * 64}}
    header = text(json.dumps(entries).encode())
    digest = hashlib.sha256(header + data).hexdigest().encode()
    header = header.replace(b"0" * 64, digest, 1)
    return struct.pack("<Q", len(header)) + header + data


def _opened(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    5e-324,
    1.8e308,
    2.0**32,
    2.0**53,
    1e15,
]
THINGS: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    2**63,
    2**64,
    10**400,
    0.5,
    1e400,
    "",
    "x" * 5000,
    "\x1b[2J",
    "\ud800",
    [],
    {},
]
THINGS += [
    [0],
    [[[]]],
    {"dtype": "F64"},
    "__import__('os').system('true')",
    "!!python/object:os.system",
    "cos\nsystem\n",
]


def other_numbers(content: bytes, rng: random.Random) -> bytes:
    """Numbers that no run would have: among them, counts that are none, states of random numbers that are none."""
    entries, data = _opened(content)
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 30])):
        if rng.random() < 0.5:  # by name, so that short tensors get their share
            place = rng.choice([entry for name, entry in entries.items() if name != "__metadata__"])["data_offsets"][0]
            if place + 8 > len(data):
                continue
        else:
            place = 8 * rng.randrange(len(data) // 8)
        number = rng.choice([*NUMBERS, rng.uniform(-9, 9), struct.unpack("<d", rng.randbytes(8))[0]])
        changed[place : place + 8] = struct.pack("<d", number)
    return _forged(entries, bytes(changed))


def another_thing_in_the_header(content: bytes, rng: random.Random) -> bytes:
    """A value somewhere in the header becomes another, perhaps of another kind."""
    entries, data = _opened(content)
    holder: Any = entries
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = rng.choice(keys)
        if isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.8:
            holder = holder[key]
            continue
        holder[key] = rng.choice(THINGS)
        return _forged(entries, data)


def other_names(content: bytes, rng: random.Random) -> bytes:
    """A tensor or a string renamed, left out or added."""
    entries, data = _opened(content)
    holder = rng.choice([entries, entries, entries["__metadata__"]])
    key = rng.choice(list(holder))
    what = rng.randrange(3)
    part = holder.pop(key) if what < 2 else holder[key]
    if what:
        holder[rng.choice([key + ".0", "model." + key, "x", "", "\u202e", "__proto__", "optimizer.steps"])] = part
    return _forged(entries, data)


def other_shapes(content: bytes, rng: random.Random) -> bytes:
    """A tensor longer or shorter, its data and all behind them moved to fit."""
    entries, data = _opened(content)
    name = rng.choice([name for name in entries if name != "__metadata__"])
    entry = entries[name]
    begin, end = entry["data_offsets"]
    size = rng.choice([0, 1, 2, (end - begin) // 8 + 1, 1000, 10_000])
    grown = (data[begin:end] * (size + 1))[: 8 * size].ljust(8 * size, b"\0")
    entry["shape"] = rng.choice([[size], [size], [] if size == 1 else [size]])
    entry["data_offsets"] = [begin, begin + 8 * size]
    for other in entries.values():
        if "data_offsets" in other and other is not entry and other["data_offsets"][0] >= end:
            other["data_offsets"] = [place + 8 * size - (end - begin) for place in other["data_offsets"]]
    return _forged(entries, data[:begin] + grown + data[end:])


def another_order(content: bytes, rng: random.Random) -> bytes:
    """The same tensors, told of in another order, with other white space: the same checkpoint."""
    entries, data = _opened(content)
    names = rng.sample(list(entries), len(entries))
    return _forged({name: entries[name] for name in names}, data, lambda header: header + b" " * rng.randrange(20))


def deep_or_long(content: bytes, rng: random.Random) -> bytes:
    """A header that is made to fill the stack or the memory."""
    depth = rng.choice([10, 1000, 100_000, 450_000])
    body = rng.choice([b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth, b"[" + b"[]," * depth + b"[]]"])
    body = rng.choice([body, b'{"__metadata__":' + body + b"}", b"9" * depth, b'"' + b"\\u0000" * (depth // 6) + b'"'])
    return struct.pack("<Q", len(body)) + body + content[-rng.choice([8, 800]) :]


def a_key_twice(content: bytes, rng: random.Random) -> bytes:
    entries, data = _opened(content)
    key = rng.choice(list(entries)).encode()
    text = json.dumps(rng.choice(THINGS)).encode()
    return _forged(entries, data, lambda header: header[:-1] + b',"' + key + b'":' + text + b"}")


def constants_that_are_no_json(content: bytes, rng: random.Random) -> bytes:
    entries, data = _opened(content)
    constant = rng.choice([b"NaN", b"Infinity", b"-Infinity", b"1e999", b"0x10", b"08", b"1" * 5000])
    return _forged(entries, data, lambda header: header.replace(b"[0, ", b"[" + constant + b", ", 1))


DAMAGE = [flipped_bits, flipped_bit_of_the_header, truncated, with_more, with_a_piece_lost, with_a_piece_of_zeros]
DAMAGE += [with_a_piece_doubled, with_two_numbers_exchanged, with_another_length, noise]
FORGERIES = [other_numbers, other_numbers, another_thing_in_the_header, other_names, other_shapes, another_order]
FORGERIES += [deep_or_long, a_key_twice, constants_that_are_no_json]
MUTATIONS = DAMAGE + FORGERIES


if __name__ == "__main__":
    print({"kill": kill, "mutate": mutate}[sys.argv[1]](int(sys.argv[2]), *map(int, sys.argv[3:])))
