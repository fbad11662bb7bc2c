"""What the compiler does, for its developers: the logger "wengert".

It says at DEBUG what each call that no specialization serves goes through, and at INFO what is recorded, compiled,
dropped, forgotten, and left to the function, with the signature and the reason. ``WENGERT_LOG=debug`` (or `info`) shows
it on standard error. Where nobody listens nothing is formatted.
"""

from __future__ import annotations

import logging
import os

from wengert.errors import ArgumentError

__all__ = ["log"]

log: logging.Logger = logging.getLogger("wengert")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO}


def show(level: str) -> None:
    """Show what the compiler does on standard error, from a level on: "debug" or "info".

    Raises:
        ArgumentError: there is no such level.
    """
    if level.lower() not in LEVELS:
        raise ArgumentError(f"WENGERT_LOG is {level!r}; expected {' or '.join(LEVELS)}")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("wengert: %(message)s"))
    log.addHandler(handler)
    log.setLevel(LEVELS[level.lower()])


if os.environ.get("WENGERT_LOG"):
    show(os.environ["WENGERT_LOG"])
