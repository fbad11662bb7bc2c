"""Object code on disk, so that a program is compiled once on a machine.

A file's name is the digest of what its content follows from, and the content begins with its own digest: what was cut
short, or changed, is not used. It is written under another name and renamed, so that no reader finds half of it.
Without a folder that can be written, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["cache_folder", "digest", "load", "save"]

SETTING = "WENGERT_CACHE"


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
    """What was saved under a name; None if there is none, or it is damaged."""
    where = cache_folder()
    if where is None:
        return None
    try:
        content = (where / name).read_bytes()
    except OSError:
        return None
    check, data = content[:32], content[32:]
    return data if hashlib.sha256(data).digest() == check else None


def save(name: str, data: bytes) -> None:
    """Keep it under a name, if there is a place."""
    where = cache_folder()
    if where is None:
        return
    with suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=where, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).digest() + data)
            os.replace(path, where / name)
        except OSError:
            with suppress(OSError):
                os.unlink(path)
