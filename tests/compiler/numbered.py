"""Cases that a generator numbers, compared in processes of their own: a crash ends one of them, and is a difference.

A generator is a module with the number of its `CASES`, `case(number)`, whose text says which one it is, and
`differences(case, backend)`. It is a program, too, by `main`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

__all__ = ["in_processes", "main"]


def main(generator: Any, start: str, end: str, step: str, backend: str = "numpy") -> None:
    """Compare cases, and print what differs; each number goes to the standard error before its case."""
    for number in range(int(start), min(int(end), generator.CASES), int(step)):
        print(number, file=sys.stderr, flush=True)
        one = generator.case(number)
        found = generator.differences(one, backend)
        if found:
            print(f"{number} {one}: {found[0]}", flush=True)


def in_processes(generator: Any, start: int, end: int, step: int, backend: str = "numpy") -> list[str]:
    """Compare cases in another process, and list what differs; after a crash go on in a new one."""
    found, end = [], min(end, generator.CASES)
    while start < end:
        command = [sys.executable, "-W", "ignore", "-m", generator.__name__, *map(str, (start, end, step)), backend]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        found += ran.stdout.splitlines()
        if not ran.returncode:
            return found
        last = [line for line in ran.stderr.splitlines() if line.isdigit()]
        at = int(last[-1]) if last else start
        found.append(f"{at} {generator.case(at)}: the process ended with {ran.returncode}: {ran.stderr[-300:]}")
        start = at + step
    return found
