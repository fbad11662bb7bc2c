"""The implied volatilities of a surface of options, and their Greeks: a thousand quotes in one call.

    pip install numpy scipy llvmlite matplotlib
    python examples/engineers/volatilities.py [PICTURE.svg]

The quotes are prices of Merton's model (1976), in which the stock jumps, so their volatilities smile. The volatility of
a quote is the root of an equation, and `root` has derivatives: what the quote changes is computed with it.
"""

import sys
import time

import numpy as np

import wengert
from wengert import exp, grad, log, normal_cdf, root, sqrt

SPOT, RATE = 100.0, 0.02
DIFFUSION, JUMPS, MEAN, SPREAD = 0.15, 0.8, -0.12, 0.15  # a year's volatility and jumps; of a jump's logarithm


def price(spot, strike, years, rate, sigma):
    """A European call: Black and Scholes (1973)."""
    spread = sigma * sqrt(years)
    d = (log(spot / strike) + (rate + sigma**2 / 2) * years) / spread
    return spot * normal_cdf(d) - strike * exp(-rate * years) * normal_cdf(d - spread)


def quote(strike, years):
    """The price by Merton's model: that of Black and Scholes for each number of jumps, times its probability."""
    gain = np.exp(MEAN + SPREAD**2 / 2)
    expected = JUMPS * gain * years
    weight, total = exp(-expected), 0.0
    for n in range(25):
        rate = RATE - JUMPS * (gain - 1.0) + n * np.log(gain) / years
        total = total + weight * price(SPOT, strike, years, rate, sqrt(DIFFUSION**2 + n * SPREAD**2 / years))
        weight = weight * expected / (n + 1)
    return total


def implied(paid, spot, strike, years):
    """The volatility for which Black and Scholes give the price that was paid."""

    def error(sigma):
        return price(spot, strike, years, RATE, sigma) - paid

    return root(error, 0.3, bracket=(0.01, 3.0))


@wengert.compile
def greeks(paid, strike, years):
    """The volatility, delta, gamma, vega, vanna and volga; the first by the price."""
    sigma = implied(paid, SPOT, strike, years)
    option = SPOT, strike, years, RATE, sigma
    delta, vega = grad(price, 0), grad(price, 4)
    of = [delta, grad(delta, 0), vega, grad(delta, 4), grad(vega, 4)]
    by_price = grad(implied)(paid, SPOT, strike, years)
    return [sigma, *[f(*option) for f in of], by_price]


def surface(strikes=40, dates=25):
    """Strikes, years and quotes, one after the other."""
    years, strike = np.meshgrid(np.linspace(0.1, 2.0, dates), np.linspace(80.0, 125.0, strikes), indexing="ij")
    years, strike = years.ravel(), strike.ravel()
    return strike, years, wengert.compile(quote).map(strike, years)


def draw(picture, strike, years, sigma):
    """Some smiles."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(4.8, 3.4), layout="tight", facecolor="white").subplots()
    dates = np.unique(years)
    for date, color in zip(dates[:: len(dates) // 4], ("#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#0072b2")):
        one = years == date
        axes.plot(strike[one], 100.0 * sigma[one], color=color, label=f"{date:.2g} years")
    axes.set(xlabel="strike", ylabel="implied volatility, %")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(picture)


def main(pictures):
    """Compute, print some rows and draw."""
    strike, years, paid = surface()
    greeks.map(paid, strike, years)  # the first call records and compiles
    began = time.perf_counter()
    found = greeks.map(paid, strike, years)
    seconds = time.perf_counter() - began
    print("strike  years    price     vol   delta   gamma    vega   vanna   volga by price")
    for k in range(0, len(paid), 250):
        row = "".join(f"{x:8.4f}" for x in found[k])
        print(f"{strike[k]:6.2f} {years[k]:6.2f} {paid[k]:8.4f}{row}")
    print(f"{len(paid)} quotes in {1e3 * seconds:.2f} ms")
    for picture in pictures:
        draw(picture, strike, years, found[:, 0])


if __name__ == "__main__":
    main(sys.argv[1:])
