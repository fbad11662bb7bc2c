"""The shape of a hanging chain, found by `scipy.optimize.minimize` with exact derivatives.

    pip install numpy scipy
    python examples/minimise.py [--links 20]

A chain of elastic links hangs between two hooks and takes the shape of least energy: the springs' and the weights'.
The energy is a plain function of scalars, the places of the joints. Wengert gives its gradient, and the products of its
Hessian with vectors that Newton's method asks for. Printed is how often each method calls the energy; with no
derivatives at all SciPy takes differences, a call for each coordinate.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize

import wengert

STIFFNESS, WEIGHT = 100.0, 1.0  # of all links together; of all joints together
HOOKS = (0.0, 0.0), (1.0, 0.0)
LENGTH = 1.5  # of the chain, when nothing pulls it


def energy(coordinates: Any) -> Any:
    """What the springs and the weights hold, of joints at x1, y1, x2, y2, ..."""
    joints = [HOOKS[0], *zip(coordinates[::2], coordinates[1::2], strict=True), HOOKS[1]]
    links = len(joints) - 1
    springs = [(wengert.hypot(c - a, d - b) - LENGTH / links) ** 2 for (a, b), (c, d) in pairwise(joints)]
    heights = [y for _, y in joints[1:-1]]
    return 0.5 * STIFFNESS * links * wengert.sum(springs) + WEIGHT / links * wengert.sum(heights)


def hang(links: int, method: str, exact: bool = True) -> Any:
    """Let the chain hang, from a shallow arc; SciPy's result."""
    along = np.linspace(0.0, 1.0, links + 1)[1:-1]
    start = np.column_stack([along, -along * (1.0 - along)]).ravel()
    options: dict[str, Any] = {"method": method, "options": {"maxiter": 2000}}
    if not exact:
        return minimize(energy, start, **options)
    if method == "Newton-CG":
        options |= {"hessp": wengert.hvp(energy), "options": {"xtol": 1e-9}}
    return minimize(wengert.value_and_grad(energy), start, jac=True, **options)


def drawn(coordinates: Any, rows: int = 12, columns: int = 48) -> str:
    """The joints as a picture of letters."""
    depth = -min(coordinates[1::2])
    picture = [[" "] * columns for _ in range(rows)]
    for x, y in [*HOOKS, *zip(coordinates[::2], coordinates[1::2], strict=True)]:
        picture[round(-y / depth * (rows - 1))][round(x * (columns - 1))] = "o"
    return "\n".join("".join(row).rstrip() for row in picture)


def main(argv: list[str] | None = None) -> None:
    """Hang a chain by several methods, and draw it."""
    parser = argparse.ArgumentParser(description="The shape of a hanging chain, by exact derivatives.")
    parser.add_argument("--links", type=int, default=20, help="how many links it has (default: 20)")
    links = parser.parse_args(argv).links
    if links < 2:
        parser.error(f"--links is {links}; expected 2 or more")
    print("method      derivatives    energy       calls of the energy  products with its Hessian")
    for method, exact in (("L-BFGS-B", False), ("L-BFGS-B", True), ("BFGS", True), ("Newton-CG", True)):
        found = hang(links, method, exact)
        kind, products = "exact" if exact else "differences", found.get("nhev", 0)
        print(f"{method:11} {kind:14} {found.fun:.8f}  {found.nfev:8d}  {products:16d}")
    print(drawn(found.x))


if __name__ == "__main__":
    main()
