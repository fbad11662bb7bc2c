"""Stores object code on disk, so that a machine compiles a program once.

A file is named by the digest of everything that its content depends on, and the content begins with the digest of name
and content: files that were truncated, changed or renamed are not used. A file is written under a temporary name and
renamed, so that no reader sees half of it.

Cached code is executed, so folder and files must belong to the user, and nobody else may have write access. A file is
checked again after it is opened, so that nobody can replace it in between. If the check fails, the user is warned once,
and the program is compiled.

There are no locks: a file that another process removes counts as missing.
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
LIMIT = 512 << 20  # bytes: beyond it the least recently used files are removed,
ROOM = 8  # until 1/8 of the limit is free
MEASURED = 64  # the folder is measured at one of 64 writes: a process begins to count anywhere
OURS = re.compile(r"[0-9a-f]{64}\.code|\.[0-9a-f]{32}\.code")  # finished and temporary files: only these are removed
# Do not follow links, nor block on pipes; systems without such flags lack the attributes.
READING = os.O_RDONLY | sum([getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")])
WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
OTHERS = stat.S_IWGRP | stat.S_IWOTH

_writes = count(os.urandom(1)[0])
_warned: set[str] = set()


def cache_folder() -> Path | None:
    """Return the folder that WENGERT_CACHE names, else one in the user's cache; None if the cache is off."""
    set_to = os.environ.get(SETTING)
    if set_to is not None:
        return None if set_to in ("", "0", "off") else Path(set_to)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base, "wengert")
    home = os.path.expanduser("~")
    return None if home == "~" else Path(home, ".cache", "wengert")


def digest(*parts: bytes) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()


def load(name: str) -> bytes | None:
    """Return what was saved under a name; None if there is nothing, it is damaged, or others could have written it."""
    where = _usable()
    if where is None:
        return None
    path = where / f"{name}.code"
    try:
        if not _is_trusted(path, os.lstat(path)):  # before opening it, which may have effects on a device
            return None
        with os.fdopen(os.open(path, READING), "rb") as file:
            if not _is_trusted(path, os.fstat(file.fileno())):
                return None
            content = file.read()
        with suppress(OSError):  # the disk may be read-only
            os.utime(path)
    except OSError:
        return None
    check, data = content[:64], content[64:]
    return data if digest(name.encode(), data).encode() == check else None


def save(name: str, data: bytes) -> None:
    """Save data under a name, a digest of all that it depends on, if the cache is on."""
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
            _make_room(where)


def status() -> str:
    """Say where the cache is and how much it holds, or why it is off."""
    folder = cache_folder()
    if folder is None:
        return f"off: {f'{SETTING} says so' if SETTING in os.environ else 'there is no home folder'}"
    if why := _fault(folder):
        return f"off: {why}"
    return f"{folder}: {_amount([stat_result.st_size for _, stat_result in _files(folder)])}, at most {LIMIT >> 20} MB"


def clear() -> str:
    """Remove all cached files, and say how many."""
    folder = cache_folder()
    if folder is None or _fault(folder):
        return f"nothing to remove: the cache is {status()}"
    files = list(_files(folder))
    sizes = [stat_result.st_size for path, stat_result in files if _remove(path)]
    left = f"; {len(files) - len(sizes)} cannot be removed" if len(sizes) < len(files) else ""
    return f"removed {_amount(sizes)}, from {folder}{left}"


def _amount(sizes: Sequence[int]) -> str:
    return f"{sum(sizes) / (1 << 20):.1f} MB in {len(sizes):,} file{'s' * (len(sizes) != 1)}"


def _make_room(folder: Path) -> None:
    files = sorted(_files(folder), key=lambda pair: (pair[1].st_mtime_ns, pair[0]))
    size = sum([each.st_size for _, each in files])
    if size <= LIMIT:
        return
    for path, each in files:
        if size <= LIMIT - LIMIT // ROOM:
            break
        _remove(path)
        size -= each.st_size


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process removed it
                if OURS.fullmatch(entry.name):
                    yield entry.path, entry.stat(follow_symlinks=False)


def _remove(path: str | Path) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _fault(folder: Path) -> str:
    """Return why a folder cannot be used, and what to do; empty if it can be, or does not exist yet."""
    try:
        stat_result = os.lstat(folder)
    except OSError:
        return ""
    instead = f"name a folder of your own in {SETTING}, or set it to off"
    if not stat.S_ISDIR(stat_result.st_mode):
        return f"{folder} is {'a link' if stat.S_ISLNK(stat_result.st_mode) else 'no folder'}: {instead}"
    if whose := _not_ours(stat_result):
        return f"{folder} {whose}: {instead if stat_result.st_uid != os.geteuid() else f'chmod go-w {folder}'}"
    return ""


def _usable() -> Path | None:
    where = cache_folder()
    if where is not None and (why := _fault(where)):
        warn_once(_warned, f"machine code is not kept on disk: {why}")
        return None
    return where


def _is_trusted(path: Path, stat_result: os.stat_result) -> bool:
    """Return True if a file may be executed; else warn, once for each folder."""
    why = _not_ours(stat_result) if stat.S_ISREG(stat_result.st_mode) else "is no regular file"
    if why and str(path.parent) not in _warned:
        _warned.add(str(path.parent))
        warn(f"machine code on disk is not used: {path} {why}; `wengert cache clear` removes it")
    return not why


def _not_ours(stat_result: os.stat_result) -> str:
    """Return who else may have written something; empty if nobody, or if the system does not say."""
    if not hasattr(os, "geteuid"):  # Windows, where nobody else has access to the user's folders
        return ""
    if stat_result.st_uid != os.geteuid():
        return "belongs to somebody else"
    return "can be written by others" if stat_result.st_mode & OTHERS else ""
