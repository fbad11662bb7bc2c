"""A differential equation fitted to data by SciPy, with the exact Jacobian: hares and lynx, 1900 to 1920.

    pip install numpy scipy llvmlite matplotlib
    python examples/engineers/fit_ode.py [PICTURE.svg]

The model is that of Lotka (1925) and Volterra (1926), the data are thousands of pelts that the Hudson's Bay Company
took, as Carpenter (2018) has them. The Jacobian gives the standard errors too; 200 fits to data made from the model
confirm them.
"""

import sys

import numpy as np
from scipy.optimize import least_squares

import wengert

HARES = np.array([30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6,
                  14.6, 16.2, 24.7])  # fmt: skip
LYNX = np.array([4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1,
                 8.6])  # fmt: skip
NAMES = "hares born", "taken by lynx", "lynx that die", "fed by hares", "hares in 1900", "lynx in 1900"
START = [0.6, 0.03, 0.6, 0.03, 30.0, 4.0]  # the numbers go round in 10 years, and 0.6 is about 2 pi / 10
STEPS = 10  # in a year


def path(p):
    """The numbers of hares and lynx after each step of Runge and Kutta's method."""
    born, taken, died, fed, x, y = p

    def slope(x, y):
        return x * (born - taken * y), y * (fed * x - died)

    h = 1.0 / STEPS
    states = [(x, y)]
    for _ in range(STEPS * (len(HARES) - 1)):
        a, b = slope(x, y)
        c, d = slope(x + h / 2 * a, y + h / 2 * b)
        e, f = slope(x + h / 2 * c, y + h / 2 * d)
        i, j = slope(x + h * e, y + h * f)
        x, y = x + h / 6 * (a + 2 * c + 2 * e + i), y + h / 6 * (b + 2 * d + 2 * f + j)
        states.append((x, y))
    return states


def residuals(p, hares, lynx):
    """The logarithms of what the model says, less those of the data."""
    out = []
    for (x, y), a, b in zip(path(p)[::STEPS], hares, lynx):
        out += [wengert.log(x / a), wengert.log(y / b)]
    return out


value = wengert.compile(residuals)
slopes = wengert.compile(wengert.jacobian(residuals))


def fit(hares, lynx):
    """What SciPy finds, the standard errors, and the scatter of the data."""
    positive = 0.0, np.inf
    found = least_squares(value, START, slopes, positive, args=(hares, lynx))
    variance = 2.0 * found.cost / (len(found.fun) - len(found.x))
    covariance = variance * np.linalg.inv(found.jac.T @ found.jac)
    return found.x, np.sqrt(np.diag(covariance)), np.sqrt(variance)


def again(p, scatter, count, seed=0):
    """The estimates from data that the model with these parameters may have given."""
    random, path_of = np.random.default_rng(seed), np.array(path(p))[::STEPS]
    return np.array([fit(*(path_of * np.exp(random.normal(0.0, scatter, path_of.shape))).T)[0] for _ in range(count)])


def draw(picture, p, others):
    """The data, what the model says, and where it lies for nineteen in twenty of the other fits."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(4.8, 3.2), layout="tight", facecolor="white").subplots()
    low, high = np.quantile([path(other) for other in others], [0.025, 0.975], axis=0)
    years = np.linspace(1900, 1920, len(low))
    for k, (name, data, color) in enumerate([("hares", HARES, "#0072b2"), ("lynx", LYNX, "#d55e00")]):
        axes.fill_between(years, low[:, k], high[:, k], color=color, alpha=0.2, linewidth=0)
        axes.plot(years, np.array(path(p))[:, k], color=color, label=name)
        axes.plot(years[::STEPS], data, "o", color=color, markersize=4)
    axes.set(ylabel="thousands of pelts", xticks=range(1900, 1921, 5), ylim=(0, None))
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(picture)


def main(pictures, count=200):
    """Fit, print the estimates and draw."""
    p, errors, scatter = fit(HARES, LYNX)
    others = again(p, scatter, count)
    print(f"               estimate  standard error  of {count} fits")
    for name, *numbers in zip(NAMES, p, errors, others.std(0)):
        print("{:14}{:9.4f}{:16.4f}{:13.4f}".format(name, *numbers))
    for picture in pictures:
        draw(picture, p, others)


if __name__ == "__main__":
    main(sys.argv[1:])
