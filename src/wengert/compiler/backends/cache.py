"""Object code on disk, so that a program is compiled once on a machine.

A file's name is the digest of what its content follows from, and the content begins with the digest of name and
content: what was cut short, changed, or put in another's place is not used. It is written under another name and
renamed, so that no reader finds half of it.

What is read there is run, so the folder and the file must be the user's, and nobody else may write to them. The file is
asked once more when it is open, so that nobody can exchange it in between. If they are not to be trusted the user is
told once, and code is made as if there were none.

No process waits for another: a file that somebody removes meanwhile is one that was never there.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from wengert.errors import warn, warn_once

__all__ = ["cache_folder", "clear", "digest", "load", "save", "status"]

SETTING = "WENGERT_CACHE"
LIMIT = 512 << 20  # bytes: beyond them the least recently used files go,
ROOM = 8  # and a part more, one of so many, which the next writes fill
MEASURED = 64  # a process measures the folder at its first write, and after each so many
OURS = re.compile(r"[0-9a-f]{64}\.code|\.[0-9a-f]{32}\.code")  # (the second while it is written): no other goes
# Links are not followed, and nothing waits as a pipe does for who writes to it; a system without such a thing has 0.
READING = os.O_RDONLY | sum([getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")])
WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
OTHERS = stat.S_IWGRP | stat.S_IWOTH

_writes = count()
_told: set[str] = set()


def cache_folder() -> Path | None:
    """Where it is kept: in the folder that WENGERT_CACHE names, else in one of the user's cache; None for nowhere."""
    set_to = os.environ.get(SETTING)
    if set_to is not None:
        return None if set_to in ("", "0", "off") else Path(set_to)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base, "wengert")
    try:
        return Path(Path.home(), ".cache", "wengert")
    except RuntimeError:  # nobody's home
        return None


def digest(*parts: bytes) -> str:
    """A name for what follows from these alone."""
    made = hashlib.sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.hexdigest()


def load(name: str) -> bytes | None:
    """What was saved under a name; None if there is none, or it is damaged, or somebody else may have written it."""
    where = _usable()
    if where is None:
        return None
    path = where / f"{name}.code"
    try:
        if not _is_trusted(path, os.lstat(path)):  # before it is opened, which may do something to a device
            return None
        with os.fdopen(os.open(path, READING), "rb") as file:
            if not _is_trusted(path, os.fstat(file.fileno())):
                return None
            content = file.read()
        with suppress(OSError):  # of a disk that is only read
            os.utime(path)
    except OSError:
        return None
    check, data = content[:64], content[64:]
    return data if digest(name.encode(), data).encode() == check else None


def save(name: str, data: bytes, limit: int = LIMIT) -> None:
    """Keep it under a name, if there is a place.

    Args:
        name: see `digest`.
        data: what to keep.
        limit: how many bytes the folder is to hold.
    """
    where = _usable()
    if where is None:
        return
    path = where / f".{secrets.token_hex(16)}.code"
    with suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(path, WRITING, 0o600), "wb") as file:
                file.write(digest(name.encode(), data).encode() + data)
            os.replace(path, where / f"{name}.code")
        except OSError:
            _remove(path)
            raise
        if next(_writes) % MEASURED == 0:
            _make_room(where, limit)


def status() -> str:
    """Where code is kept, and how much of it; or why none is."""
    folder = cache_folder()
    if folder is None:
        return f"off: {f'{SETTING} says so' if SETTING in os.environ else 'there is no home folder'}"
    if why := _fault(folder):
        return f"off: {why}"
    return f"{folder}: {_amount([found.st_size for _, found in _files(folder)])}, at most {LIMIT >> 20} MB"


def clear() -> str:
    """Remove what is kept; returns how much that was."""
    folder = cache_folder()
    if folder is None or _fault(folder):
        return f"nothing to remove: the cache is {status()}"
    files = list(_files(folder))
    sizes = [found.st_size for path, found in files if _remove(path)]
    left = f"; {len(files) - len(sizes)} cannot be removed" if len(sizes) < len(files) else ""
    return f"removed {_amount(sizes)}, from {folder}{left}"


def _amount(sizes: Sequence[int]) -> str:
    return f"{sum(sizes) / (1 << 20):.1f} MB in {len(sizes):,} file{'s' * (len(sizes) != 1)}"


def _make_room(folder: Path, limit: int) -> None:
    """Remove the least recently used files of a folder that holds more than its limit."""
    found = sorted(_files(folder), key=lambda pair: (pair[1].st_mtime_ns, pair[0]))
    size = sum([each.st_size for _, each in found])
    if size <= limit:
        return
    for path, each in found:
        if size <= limit - limit // ROOM:
            break
        _remove(path)
        size -= each.st_size


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files that were written here, and what the system says of each."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # it is gone meanwhile
                if OURS.fullmatch(entry.name):
                    yield entry.path, entry.stat(follow_symlinks=False)


def _remove(path: str | Path) -> bool:
    """Remove a file; False if it is not there, or cannot be removed."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _fault(folder: Path) -> str:
    """Why nothing is kept in a folder, and what to do; empty if it may be, or if it is not there yet."""
    try:
        found = os.lstat(folder)
    except OSError:
        return ""
    instead = f"name a folder of your own in {SETTING}, or set it to off"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is {'a link' if stat.S_ISLNK(found.st_mode) else 'no folder'}: {instead}"
    if whose := _not_ours(found):
        return f"{folder} {whose}: {instead if found.st_uid != os.geteuid() else f'chmod go-w {folder}'}"
    return ""


def _usable() -> Path | None:
    """The folder, if it may be used; else the user is told once why not."""
    where = cache_folder()
    if where is not None and (why := _fault(where)):
        warn_once(_told, f"machine code is not kept on disk: {why}")
        return None
    return where


def _is_trusted(path: Path, found: os.stat_result) -> bool:
    """Whether a file may be read and run; else the user is told, once for a folder."""
    why = _not_ours(found) if stat.S_ISREG(found.st_mode) else "is no regular file"
    if why and str(path.parent) not in _told:
        _told.add(str(path.parent))
        warn(f"machine code on disk is not used: {path} {why}; `wengert cache clear` removes it")
    return not why


def _not_ours(found: os.stat_result) -> str:
    """By whom else something may have been written; empty if by nobody, or where the system does not say."""
    if not hasattr(os, "geteuid"):  # Windows, where the user's folders are the user's
        return ""
    if found.st_uid != os.geteuid():
        return "belongs to somebody else"
    return "can be written by others" if found.st_mode & OTHERS else ""
