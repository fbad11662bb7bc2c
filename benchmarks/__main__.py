"""The command: ``python -m benchmarks [--quick] [--workload NAME ...] [--peer NAME ...]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.race import grow, lift, race, start
from benchmarks.roster import LIFTS, PEERS, WORKLOADS

CHAINS = ("wengert", "interpreted", "plain", "micrograd", "micrograd-rust", "torch-scalars")


def say(text: str) -> None:
    """Progress, on one line of standard error where that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Run what the arguments ask for; 1 if a peer's results differ from the others'."""
    keys = [peer.key for peer in PEERS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Every workload on Wengert and on every peer that is installed (pip install -e '.[peers]'): "
        "medians, spread, ratios. Results are compared before anything is timed.",
    )
    parser.add_argument("--quick", action="store_true", help="a minute: fewer rounds, the small workloads")
    parser.add_argument(
        "--workload", action="append", choices=[*WORKLOADS, "chain", "lift"], help="only this one; repeatable"
    )
    parser.add_argument("--peer", action="append", choices=keys, help="only this one; repeatable")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="where table and plots go")
    parser.add_argument("--page", type=Path, action="append", default=[], help="a page between whose marks they go too")
    parser.add_argument("--targets", type=Path, help="a page between whose marks the targets go, and which are met")
    options = parser.parse_args(argv)
    peers = [peer for peer in PEERS if not options.peer or peer.key in options.peer]
    small = ["expression", "tiny", "moons", "import", "chain", "lift"]
    workloads = options.workload or (small if options.quick else [*WORKLOADS, "chain", "lift"])
    rounds, seconds, limit = (3, 0.1, 10.0) if options.quick else (9, 0.5, 120.0)

    results = {}
    for name in [name for name in workloads if name in WORKLOADS]:
        if name == "import":
            results[name] = start(peers, rounds, say)
        else:
            results[name] = race(name, peers, rounds, seconds, limit, say)
    sizes = [10**k for k in range(2, 6 if options.quick else 8)]
    growth = {peer.key: grow(peer, sizes, limit, say) for peer in peers if "chain" in workloads and peer.key in CHAINS}
    lifts: list[dict[str, Any]] = []
    for peer in peers if "lift" in workloads else ():
        if peer.key == "compiled":
            lifts = lift(peer, list(LIFTS)[: 3 if options.quick else None], limit, say)
    complete = not (options.quick or options.workload or options.peer)
    text = report.write(options.out, results, growth, complete, lifts)
    if growth:
        report.plot(options.out, growth)
    for page in options.page:
        report.into_page(page, text)
    targets = report.targets(results, growth, lifts)
    if options.targets:
        report.into_page(options.targets, targets, "targets")
    say("")
    print(f"{text}\n{targets}")
    return int(any("wrong" in row.failed for rows in results.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
