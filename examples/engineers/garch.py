"""The volatility of returns by maximum likelihood, and its standard errors: GARCH(1,1), Bollerslev 1986.

    pip install numpy scipy llvmlite matplotlib
    python examples/engineers/garch.py [PICTURE.svg]

The standard errors are those of the Hessian, and those of Bollerslev and Wooldridge (1992), which hold for returns that
are not normal: here they have the tails of Student's t with six degrees of freedom.
"""

import sys

import numpy as np
from scipy.optimize import minimize

import wengert

NAMES, TRUE = ("mean", "omega", "alpha", "beta"), [0.03, 0.02, 0.08, 0.9]


def draw_returns(count=2000, seed=1):
    """Returns in per cent, of which the answer is known."""
    random = np.random.default_rng(seed)
    mean, omega, alpha, beta = TRUE
    variance, returns = omega / (1.0 - alpha - beta), []
    for shock in random.standard_t(6, count) * np.sqrt(4 / 6):
        returns.append(mean + np.sqrt(variance) * shock)
        variance = omega + alpha * variance * shock**2 + beta * variance
    return np.array(returns)


def variances(p, returns):
    """The variance of each return, given those before it; at first their mean."""
    mean, omega, alpha, beta = p
    squares = [(r - mean) ** 2 for r in returns]
    last = variance = sum(squares) / len(squares)
    out = []
    for square in squares:
        variance = omega + alpha * last + beta * variance
        out.append(variance)
        last = square
    return out


def terms(p, returns):
    """The negative log likelihood, return by return."""
    pairs = zip(returns, variances(p, returns))
    return [0.5 * (wengert.log(2 * np.pi * v) + (r - p[0]) ** 2 / v) for r, v in pairs]


def likelihood(p, returns):
    """Their sum."""
    return sum(terms(p, returns))


value = wengert.compile(wengert.value_and_grad(likelihood))
curvature = wengert.compile(wengert.hessian(likelihood))
scores = wengert.compile(wengert.jacobian(terms))


def fit(returns):
    """The estimates; the standard errors by the Hessian, and the robust ones."""
    bounds = [(None, None), (1e-6, None), (0.0, 1.0), (0.0, 1.0)]
    start = np.array([np.mean(returns), 0.05 * np.var(returns), 0.05, 0.9])
    p = minimize(value, start, (returns,), "L-BFGS-B", jac=True, bounds=bounds).x
    for _ in range(3):  # steps of Newton's method, to the last digit
        p = p - np.linalg.solve(curvature(p, returns), value(p, returns)[1])
    inverse = np.linalg.inv(curvature(p, returns))
    each = np.array(scores(p, returns))
    robust = inverse @ each.T @ each @ inverse
    return p, np.sqrt(np.diag(inverse)), np.sqrt(np.diag(robust))


def draw(picture, p, returns):
    """The returns, and twice their standard deviations by the estimate."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(4.8, 3.2), layout="tight", facecolor="white").subplots()
    band = 2.0 * np.sqrt(variances(p, returns))
    axes.plot(returns, color="#0072b2", linewidth=0.5)
    for side in (band, -band):
        axes.plot(p[0] + side, color="#d55e00", linewidth=1)
    axes.set(xlabel="day", ylabel="return, %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(picture)


def main(pictures):
    """Fit, print the estimates and draw."""
    returns = draw_returns()
    print("        estimate  by the Hessian  robust  true")
    for name, *numbers, true in zip(NAMES, *fit(returns), TRUE):
        print(f"{name:6} {{:9.4f}} ± {{:.4f}} {{:12.4f}} {true:7.2f}".format(*numbers))
    for picture in pictures:
        draw(picture, fit(returns)[0], returns)


if __name__ == "__main__":
    main(sys.argv[1:])
