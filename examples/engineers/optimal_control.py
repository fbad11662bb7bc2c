"""A cart swings up its pole in two seconds, with the least force: SciPy's trust-constr, and IPOPT.

    pip install numpy scipy llvmlite matplotlib
    python examples/engineers/optimal_control.py [PICTURE.svg]

The problem is that of Kelly (2017), "An introduction to trajectory optimization", SIAM Review 59, by multiple shooting.
The solvers take the gradient of the cost, and the Jacobian of the constraints and the Hessian as sparse matrices. IPOPT
runs too if cyipopt is installed (pip install cyipopt-wheels, or conda install cyipopt).
"""

import sys

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize
from scipy.sparse import tril

import wengert

CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81  # kilograms, metres, metres a second squared
SECONDS, END = 2.0, [1.0, np.pi, 0.0, 0.0]  # a metre to the right; the pole, which hung, stands


def slope(state, force):
    """How the state of cart and pole changes: place, angle, and their velocities."""
    _, angle, speed, spin = state
    sine, cosine = wengert.sin(angle), wengert.cos(angle)
    mass = CART + POLE * sine * sine
    push = LENGTH * POLE * sine * spin * spin + force
    return [
        speed,
        spin,
        (push + POLE * GRAVITY * cosine * sine) / mass,
        -(push * cosine + (CART + POLE) * GRAVITY * sine) / (LENGTH * mass),
    ]


def moved(state, force, h):
    """The state h seconds later, by a step of Runge and Kutta's method."""

    def at(factor, k):
        return slope([x + factor * h * d for x, d in zip(state, k)], force)

    a = slope(state, force)
    b = at(0.5, a)
    c = at(0.5, b)
    d = at(1.0, c)
    parts = zip(state, a, b, c, d)
    return [x + h / 6 * (p + 2 * q + 2 * r + s) for x, p, q, r, s in parts]


# The variables z are a state and a force for each stage, and then the last state.
def cost(z):
    """The integral of the force squared."""
    forces = z[4::5]
    return SECONDS / len(forces) * sum(f * f for f in forces)


def constraints(z):
    """What is 0 if the states follow one another, from hanging still to END."""
    out = [*z[:4], *[x - end for x, end in zip(z[-4:], END)]]
    for k in range(0, len(z) - 4, 5):
        later = moved(z[k : k + 4], z[k + 4], SECONDS / (len(z) // 5))
        out += [z[k + 5 + n] - later[n] for n in range(4)]
    return out


def lagrangian(z, factor, multipliers):
    """The function of which solvers want the Hessian."""
    return factor * cost(z) + sum(m * c for m, c in zip(multipliers, constraints(z)))


value = wengert.compile(wengert.value_and_grad(cost))
defects = wengert.compile(constraints)
slopes = wengert.jacobian(constraints, sparse=True)
curvature = wengert.hessian(lagrangian, sparse=True)


def guess(count):
    """A straight line from the first state to the last, without force."""
    return np.linspace([0.0] * 5, [*END, 0.0], count + 1).ravel()[:-1]


def by_scipy(count):
    """The solution by trust-constr."""
    zeros = np.zeros(4 * count + 8)

    def of_cost(z):
        return curvature(z, 1.0, zeros)

    def of_rule(z, multipliers):
        return curvature(z, 0.0, multipliers)

    rule = NonlinearConstraint(defects, 0.0, 0.0, slopes, of_rule)
    settings = {"method": "trust-constr", "constraints": [rule]}
    settings["options"] = {"gtol": 1e-8, "xtol": 1e-10, "maxiter": 500}
    return minimize(value, guess(count), jac=True, hess=of_cost, **settings)


def by_ipopt(count):
    """The solution by IPOPT, which wants the places of the nonzeros once, and of the Hessian the lower half."""
    import cyipopt

    start, rows = guess(count), 4 * count + 8
    first, second = slopes(start).tocoo(), tril(curvature(start, 1.0, np.ones(rows))).tocoo()

    class Problem:
        objective = staticmethod(lambda z: value(z)[0])
        gradient = staticmethod(lambda z: value(z)[1])
        constraints = staticmethod(defects)
        jacobianstructure = staticmethod(lambda: (first.row, first.col))
        jacobian = staticmethod(lambda z: slopes(z).data)
        hessianstructure = staticmethod(lambda: (second.row, second.col))
        hessian = staticmethod(lambda z, m, factor: tril(curvature(z, factor, m)).data)

    free, none = np.full(len(start), 1e20), np.zeros(rows)
    solver = cyipopt.Problem(len(start), rows, Problem(), -free, free, none, none)
    solver.add_option("print_level", 0)
    solver.add_option("sb", "yes")
    return solver.solve(start)


def draw(picture, z):
    """The motion, at each second stage; and the places of the Hessian's nonzeros."""
    from matplotlib.figure import Figure

    from wengert.view.plots import plot_sparsity

    figure = Figure(figsize=(4.8, 6.0), layout="tight", facecolor="white")
    above, below = figure.subplots(2, height_ratios=[1.0, 1.8])
    path = np.append(z, 0.0).reshape(-1, 5)[::2]
    for k, (place, angle, *_) in enumerate(path):
        tip = place + LENGTH * np.sin(angle), -LENGTH * np.cos(angle)
        shade = {"color": "#0072b2", "alpha": 0.25 + 0.75 * k / len(path)}
        above.plot([place, tip[0]], [0.0, tip[1]], **shade, linewidth=1.5)
        above.plot(*tip, "o", **shade, markersize=5)
    above.plot(path[:, 0], 0.0 * path[:, 0], color="#333333", linewidth=4, solid_capstyle="butt")
    above.set(aspect="equal", xlabel="metres", yticks=[-0.5, 0.0, 0.5])
    above.spines[["top", "right"]].set_visible(False)
    plot_sparsity(curvature(z, 1.0, np.ones(len(defects(z)))), axes=below)
    figure.savefig(picture)


def main(pictures):
    """Solve, print what was found and draw."""
    found = by_scipy(30)
    rows, columns = slopes(found.x).shape
    print(f"{columns} variables, {rows} constraints, {slopes(found.x).nnz} of {rows * columns} derivatives are not 0")
    print(f"SciPy   cost {found.fun:.6f}, constraints {max(map(abs, defects(found.x))):.0e}, {found.nit} iterations")
    try:
        point, told = by_ipopt(30)
        print(f"IPOPT   cost {told['obj_val']:.6f}, apart from SciPy's point by {abs(point - found.x).max():.0e}")
    except ImportError:
        print("IPOPT   needs cyipopt")
    for picture in pictures:
        draw(picture, found.x)


if __name__ == "__main__":
    main(sys.argv[1:])
