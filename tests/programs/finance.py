"""Programs of finance: prices, curves, portfolios, loans, trading rules."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections import deque, namedtuple
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    choice,
    flag,
    matrix,
    pair,
    program,
    real,
    reals,
    record,
    text,
    weights,
    whole,
    wholes,
)


@program(spot=real(80.0, 120.0), strike=real(80.0, 120.0), years=real(0.1, 2.0), rate=real(0.0, 0.08))
def black_scholes(volatility):
    def call(spot, strike, years, rate):
        root = volatility * math.sqrt(years)
        d1 = (math.log(spot / strike) + rate * years) / root + root / 2
        d2 = d1 - root
        return spot * d1.normal_cdf() - strike * math.exp(-rate * years) * d2.normal_cdf()

    return call


@program(spot=real(80.0, 120.0), strike=real(80.0, 120.0), kind=text("call", "put", "straddle"))
def option_by_name(volatility):
    def price(spot, strike, kind):
        d1 = math.log(spot / strike) / volatility + volatility / 2
        d2 = d1 - volatility
        call = spot * wengert.normal_cdf(d1) - strike * wengert.normal_cdf(d2)
        put = call - spot + strike
        prices = {"call": call, "put": put, "straddle": call + put}
        if kind not in prices:
            raise ValueError(f"unknown option {kind!r}")
        return prices[kind]

    return price


@program(spot=real(80.0, 120.0), strike=real(80.0, 120.0), steps=whole(2, 6))
def american_put_on_a_tree(volatility, rate):
    def price(spot, strike, steps):
        dt = 1.0 / steps
        up = (0.3 * volatility * math.sqrt(dt)).exp()
        down = 1 / up
        grow = (0.05 * rate * dt).exp()
        p = (grow - down) / (up - down)
        values = [wengert.max(strike - spot * up**j * down ** (steps - j), 0.0) for j in range(steps + 1)]
        for n in range(steps - 1, -1, -1):
            for j in range(n + 1):
                hold = (p * values[j + 1] + (1 - p) * values[j]) / grow
                exercise = strike - spot * up**j * down ** (n - j)
                values[j] = wengert.max(hold, exercise)
            values.pop()
        return values[0]

    return price


@program(coupon=real(0.0, 0.1), years=whole(1, 10), frequency=choice(1, 2, 4))
def bond_price(bond_yield):
    def price(coupon, years, frequency):
        y = 0.1 * bond_yield / frequency
        periods = years * frequency
        pv = sum(100 * coupon / frequency / (1 + y) ** k for k in range(1, periods + 1))
        return pv + 100 / (1 + y) ** periods

    return price


@program(flows=reals(4, 0.5, 10.0), times=reals(4, 0.5, 9.0))
def macaulay_duration(level, slope):
    def duration(flows, times):
        discounted = [c * (-(0.03 * level + 0.002 * slope * t) * t).exp() for t, c in sorted(zip(times, flows))]
        weighted = sum(t * pv for t, pv in zip(sorted(times), discounted))
        return weighted / sum(discounted)

    return duration


@program(price=real(85.0, 115.0), years=whole(2, 6))
def yield_by_newton(coupon):
    def yield_to_maturity(price, years):
        y = 0.05
        for _ in range(6):
            value = sum(5 * coupon / (1 + y) ** t for t in range(1, years + 1)) + 100 / (1 + y) ** years
            slope = sum(-t * 5 * coupon / (1 + y) ** (t + 1) for t in range(1, years + 1))
            slope = slope - years * 100 / (1 + y) ** (years + 1)
            y = y - (value - price) / slope
        return y

    return yield_to_maturity


@program(target=real(5.0, 15.0), strike=real(90.0, 110.0), engine="a bisection takes a path of its own to each answer")
def implied_volatility(scale):
    def bisected(target, strike):
        def call(sigma):
            d = (math.log(100.0 / strike) + sigma**2 / 2) / sigma
            cdf = 0.5 * (1 + math.erf(d / math.sqrt(2)))
            below = 0.5 * (1 + math.erf((d - sigma) / math.sqrt(2)))
            return 100.0 * cdf - strike * below

        low, high = 1e-3, 2.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            if call(middle) < target:
                low = middle
            else:
                high = middle
        return scale * (low + high) / 2 + scale**2 * target

    return bisected


@program(tenors=reals(6, 0.25, 10.0), quotes=reals(6, 0.01, 0.05))
def nelson_siegel(level, slope, curvature, decay):
    def misfit(tenors, quotes):
        loss = 0.0
        for t, quote in zip(tenors, quotes):
            x = t / (decay + 0.5)
            loading = (1 - (-x).exp()) / x
            fitted = 0.03 * level + 0.01 * slope * loading + 0.01 * curvature * (loading - (-x).exp())
            loss += (1e4 * (fitted - quote)) ** 2
        return (loss / len(tenors)).sqrt()

    return misfit


@program(when=reals(2, 0.0, 7.0), amounts=reals(2, -10.0, 10.0))
def discount_by_interpolation(rates=weights(4)):
    knots = [1.0, 2.0, 5.0, 10.0]

    def present_value(when, amounts):
        total = 0.0
        for t, amount in zip(when, amounts):
            i = bisect_left(knots, t)
            if i == 0:
                r = rates[0]
            else:
                share = (t - knots[i - 1]) / (knots[i] - knots[i - 1])
                r = (1 - share) * rates[i - 1] + share * rates[i]
            total += amount * (-0.05 * r * t).exp()
        return total

    return present_value


@program(principal=real(1e4, 5e5), months=whole(6, 24))
def mortgage_interest(annual_rate):
    def interest_paid(principal, months):
        r = annual_rate / 100 / 12
        payment = principal * r / (1 - (1 + r) ** -months)
        balance, interest = principal, 0.0
        for _ in range(months):
            due = balance * r
            interest = interest + due
            balance = balance - (payment - due)
        return interest

    return interest_paid


@program(flows=reals(5, 5.0, 40.0), outlay=real(50.0, 90.0))
def internal_rate_of_return(optimism):
    def irr(flows, outlay):
        rate = wengert.Value(0.1)
        for _ in range(50):
            npv = -outlay + sum(optimism * c / (1 + rate) ** t for t, c in enumerate(flows, 1))
            slope = sum(-t * optimism * c / (1 + rate) ** (t + 1) for t, c in enumerate(flows, 1))
            step = npv / slope
            rate = rate - step
            if abs(step.data) < 1e-10:
                break
        return rate

    return irr


@program(ledger=choice([(0, -100.0), (1, 30.0), (3, 90.0)], [(0, -50.0), (2, 80.0)]), hurdle=real(0.0, 0.1))
def net_present_value(risk):
    def npv(ledger, hurdle):
        return sum(amount / (1 + hurdle + 0.05 * risk) ** year for year, amount in ledger)

    return npv


@program(market=reals(10, -0.1, 0.1), asset=reals(10, -0.1, 0.1))
def sharpe_ratio(leverage, hedge):
    def ratio(market, asset):
        returns = [leverage * a - hedge * m for a, m in zip(asset, market)]
        mean = sum(returns) / len(returns)
        deviation = (sum((r - mean) ** 2 for r in returns) / (len(returns) - 1)).sqrt()
        return mean / deviation * math.sqrt(252)

    return ratio


@program(returns=reals(4, -0.2, 0.2))
def maximum_drawdown(exposure):
    def drawdown(returns):
        equity = list(accumulate((1 + exposure * r for r in returns), lambda a, b: a * b))
        peak, worst = equity[0], 0.0 * equity[0]
        for value in equity:
            if value > peak:
                peak = value
            fall = (peak - value) / peak
            if fall > worst:
                worst = fall
        return worst

    return drawdown


@program(edge=real(0.5, 0.7), odds=real(0.8, 2.0))
def kelly_growth(fraction):
    def growth(edge, odds):
        f = 0.4 * fraction.tanh()
        return edge * (1 + odds * f).log() + (1 - edge) * (1 - f).log()

    return growth


@program(factors=matrix(3, 3, -0.3, 0.3), expected=reals(3, 0.0, 0.1), aversion=real(1.0, 5.0))
def mean_variance_utility(logits=weights(3)):
    def utility(factors, expected, aversion):
        shares = wengert.softmax(logits)
        covariance = [[sum(f[i] * f[j] for f in factors) for j in range(3)] for i in range(3)]
        variance = sum(shares[i] * shares[j] * covariance[i][j] for i in range(3) for j in range(3))
        return sum(s * e for s, e in zip(shares, expected)) - aversion / 2 * variance

    return utility


@program(scenarios=matrix(4, 2, -0.2, 0.2))
def expected_shortfall(tilt):
    def cvar(scenarios, level=0.5):
        share = tilt.sigmoid()
        losses = sorted((-(share * a + (1 - share) * b) for a, b in scenarios), key=lambda v: v.data, reverse=True)
        tail = losses[: max(1, round(len(losses) * (1 - level)))]
        return wengert.mean(tail)

    return cvar


@program(returns=array(10, lo=-0.05, hi=0.05))
def ewma_volatility(log_halflife):
    def annualised(returns):
        decay = (-1 / log_halflife.exp()).exp()
        variance = float(np.var(returns))
        for r in returns:
            variance = decay * variance + (1 - decay) * r**2
        return (252 * variance).sqrt()

    return annualised


@program(normals=matrix(4, 5, -2.0, 2.0), strike=real(80.0, 110.0), average=text("arithmetic", "geometric"))
def asian_option(volatility, drift):
    def price(normals, strike, average):
        payoff = 0.0
        dt = 0.2
        for path in normals:
            log_price, seen = math.log(100.0), []
            for z in path:
                log_price = log_price + (0.05 * drift - volatility**2 / 50) * dt + volatility * 0.2 * z
                seen.append(log_price)
            if average == "arithmetic":
                level = sum(p.exp() for p in seen) / len(seen)
            else:
                level = (sum(seen) / len(seen)).exp()
            payoff += (level - strike).relu()
        return payoff / len(normals)

    return price


@program(normals=matrix(2, 4, -2.0, 2.0), barrier=real(102.0, 125.0))
def knock_out_barrier(volatility):
    def price(normals, barrier):
        total = 0.0 * volatility
        for path in normals:
            s = wengert.Value(100.0)
            alive = True
            for z in path:
                s = s * (0.1 * volatility * z).exp()
                if s >= barrier:
                    alive = False
                    break
            if alive:
                total = total + (s - 95.0).relu()
        return total / len(normals)

    return price


@program(assets=real(60.0, 160.0), debt=real(50.0, 100.0), years=whole(1, 5))
def merton_default(volatility, drift):
    def probability_of_default(assets, debt, years):
        if assets <= 0 or debt <= 0:
            raise ValueError("assets and debt are positive")
        root = volatility * 0.3 * years**0.5
        distance = (math.log(assets / debt) + (0.05 * drift - (0.3 * volatility) ** 2 / 2) * years) / root
        return (-distance).normal_cdf()

    return probability_of_default


@program(spread=real(0.005, 0.05), quarters=whole(4, 12))
def credit_default_swap(hazard, recovery):
    def mark_to_market(spread, quarters):
        lam, r = 0.05 * hazard, 0.5 * recovery.sigmoid()
        survival, premium, protection = 1.0, 0.0, 0.0
        for q in range(1, quarters + 1):
            discount = math.exp(-0.02 * q / 4)
            after = (-lam * q / 4).exp()
            premium += spread * 0.25 * discount * after
            protection += (1 - r) * discount * (survival - after)
            survival = after
        return 1e4 * (protection - premium)

    return mark_to_market


@program(income=real(5e3, 2e5), married=flag())
def progressive_tax(relief):
    brackets = [(11_000, 0.10), (44_725, 0.12), (95_375, 0.22), (182_100, 0.24), (math.inf, 0.32)]

    def tax(income, married):
        factor = 2 if married else 1
        taxable = max(income - 12_000 * factor, 0)
        owed, floor = 0.0, 0
        for ceiling, rate in brackets:
            if taxable <= floor:
                break
            slice_ = min(taxable, ceiling * factor) - floor
            owed += slice_ * rate
            floor = ceiling * factor
        return owed * (1 - 0.1 * relief) + relief

    return tax


@program(start=choice(date(2024, 1, 31), date(2023, 6, 15)), months=whole(1, 6), basis=text("act/365", "30/360"))
def accrued_interest(rate):
    def accrued(start, months, basis):
        end = start + timedelta(days=30 * months)
        if basis == "act/365":
            fraction = (end - start).days / 365
        else:
            passed = (end.year - start.year) * 12 + end.month - start.month
            fraction = (passed * 30 + min(end.day, 30) - min(start.day, 30)) / 360
        return 1000 * ((0.05 * rate * fraction).exp() - 1)

    return accrued


@program(amount=real(1.0, 100.0), route=choice(["USD", "EUR", "JPY"], ["EUR", "USD"], ["JPY", "EUR", "USD"]))
def currency_route(fee):
    quotes = {("USD", "EUR"): 0.92, ("EUR", "JPY"): 158.0, ("JPY", "USD"): 1 / 145}

    def converted(amount, route):
        for a, b in zip(route, route[1:]):
            quote = quotes[a, b] if (a, b) in quotes else 1 / quotes[b, a]
            amount = amount * quote * (1 - 0.01 * fee)
        return amount

    return converted


@program(prices=wholes(3, 100, 999), quantity=whole(1, 9), engine="it makes Decimals of its integers")
def invoice_in_decimals(discount):
    def total(prices, quantity):
        net = sum((Decimal(p) / 100 for p in prices), Decimal(0)) * quantity
        vat = (net * Decimal("0.19")).quantize(Decimal("0.01"))
        return float(net + vat) * (1 - 0.1 * discount)

    return total


@program(wanted=real(1.0, 30.0), sizes=reals(4, 1.0, 10.0))
def fill_through_an_order_book(tick, impact):
    def average_price(wanted, sizes):
        left, cost = wanted, 0.0
        for depth, size in enumerate(sizes):
            taken = min(left, size)
            cost += taken * (100 + tick * depth)
            left -= taken
            if left <= 1e-12:
                break
        else:
            cost += left * (100 + tick * len(sizes) + impact * left)
        return cost / wanted

    return average_price


@program(spread=reals(15, -3.0, 3.0), entry=real(0.8, 1.5), engine="each series is traded on days of its own")
def pairs_trading(decay, cost):
    def profit(spread, entry):
        position = 0
        pnl = 0.0 * cost
        mean = spread[0]
        for before, now in zip(spread, spread[1:]):
            pnl = pnl + position * (now - before)
            mean = decay.sigmoid() * mean + (1 - decay.sigmoid()) * now
            z = now - mean
            target = position
            if z > entry:
                target = -1
            elif z < -entry:
                target = 1
            elif position and abs(z) < 0.2:
                target = 0
            if target != position:
                pnl -= 0.05 * cost * abs(target - position)
                position = target
        return pnl

    return profit


@program(
    prices=reals(14, 90.0, 110.0), fast=whole(1, 3), slow=whole(4, 6), engine="each series is traded on days of its own"
)
def moving_average_crossover(size, slippage):
    def backtest(prices, fast, slow):
        cash, held = size * 100, 0
        for t in range(slow, len(prices)):
            quick = sum(prices[t - fast : t]) / fast
            steady = sum(prices[t - slow : t]) / slow
            if quick > steady and not held:
                cash, held = cash - prices[t] * (1 + 0.001 * slippage), 1
            elif quick < steady and held:
                cash, held = cash + prices[t] * (1 - 0.001 * slippage), 0
        return cash + held * prices[-1]

    return backtest


@program(moves=reals(4, -0.05, 0.04))
def stop_loss(distance, size):
    def exit_value(moves):
        price = peak = 100.0
        day = 0
        while day < len(moves) and price > peak * (1 - 0.05 * distance.data):
            price *= 1 + moves[day]
            peak = max(peak, price)
            day += 1
        return size * price * (-0.001 * distance * day).exp()

    return exit_value


Lot = namedtuple("Lot", "quantity price")


@program(buys=reals(4, 1.0, 9.0), prices=reals(4, 10.0, 50.0), sold=real(2.0, 12.0))
def first_in_first_out(tax_rate):
    def gain_after_tax(buys, prices, sold):
        lots = deque(Lot(q, p) for q, p in zip(buys, prices))
        gain, left = 0.0, sold
        while left > 0 and lots:
            lot = lots.popleft()
            used = min(left, lot.quantity)
            gain += used * (60.0 - lot.price)
            if used < lot.quantity:
                lots.appendleft(lot._replace(quantity=lot.quantity - used))
            left -= used
        return gain * (1 - 0.3 * tax_rate)

    return gain_after_tax


@program(dividend=real(1.0, 5.0), fast_years=whole(1, 6))
def two_stage_dividends(growth, required):
    def value(dividend, fast_years):
        r = 0.08 + 0.02 * required
        g = 0.1 * growth
        pv = 0.0
        for year in range(1, fast_years + 1):
            dividend = dividend * (1 + g)
            pv += dividend / (1 + r) ** year
        terminal = dividend * 1.02 / (r - 0.02)
        return pv + terminal / (1 + r) ** fast_years

    return value


@program(shares=reals(3, 0.0, 20.0), outcome=whole(0, 2), bought=real(0.1, 5.0))
def prediction_market(liquidity):
    def cost_of_a_trade(shares, outcome, bought):
        b = 5 + 5 * liquidity
        before = b * wengert.logsumexp([q / b for q in shares])
        after = list(shares)
        after[outcome] += bought
        return b * wengert.logsumexp([q / b for q in after]) - before

    return cost_of_a_trade


@program(bids=reals(3, 1.0, 10.0), reserve=real(0.0, 8.0))
def second_price_auction(shade):
    def revenue(bids, reserve):
        offers = sorted((b * shade.sigmoid() * 2 for b in bids), reverse=True)
        if offers[0] < reserve:
            return 0.0 * shade
        return wengert.max(offers[1], reserve)

    return revenue


LEGS = {
    "butterfly": [("call", 90, 1), ("call", 100, -2), ("call", 110, 1)],
    "collar": [("put", 95, 1), ("call", 108, -1)],
}


@program(spot=real(85.0, 115.0), strategy=text(*LEGS))
def option_strategy(volatility, smile):
    def payoff(spot, strategy):
        total = 0.0
        for kind, strike, quantity in LEGS[strategy]:
            width = 4 * volatility + smile * abs(strike - spot) / 20
            sign = +1 if kind == "call" else -1
            total += quantity * width * (sign * (spot - strike) / width).softplus()
        return total

    return payoff


@program(seed=whole(0, 4), strike=real(90.0, 110.0))
def monte_carlo_call(volatility):
    def price(seed, strike):
        generator = random.Random(seed)
        payoffs = []
        for _ in range(8):
            z = generator.gauss(0.0, 1.0)
            terminal = 100 * (0.2 * volatility * z - 0.02 * volatility**2).exp()
            payoffs.append(wengert.maximum(terminal - strike, 0.0))
        return wengert.mean(payoffs)

    return price


@program(deposit=real(100.0, 1000.0), inflation=pair(real(0.0, 0.05), real(0.0, 0.05)), years=whole(1, 8))
def real_savings(rate, raise_):
    def purchasing_power(deposit, inflation, years):
        early, late = inflation
        balance, level = 0.0, 1.0
        for year in range(years):
            balance = (balance + deposit) * (1 + 0.05 * rate)
            deposit = deposit * (1 + 0.02 * raise_)
            level *= 1 + (early if year < 3 else late)
        return balance / level

    return purchasing_power


@program(loan=record(amount=real(1e3, 1e4), rate=real(0.02, 0.1), months=whole(6, 12)), extra=real(0.0, 200.0))
def early_repayment(willingness):
    def months_saved(loan, extra):
        r = loan["rate"] / 12
        payment = loan["amount"] * r / (1 - (1 + r) ** -loan["months"])
        balance = loan["amount"]
        paid = 0.0 * willingness
        for month in range(loan["months"]):
            if balance <= 0.01:
                break
            installment = payment + willingness * extra
            balance = balance * (1 + r) - min(payment + willingness.data * extra, balance * (1 + r))
            paid = paid + installment * 0.999**month
        return paid

    return months_saved


@program(revenue=reals(4, 50.0, 150.0), tax=real(0.1, 0.3))
def discounted_cash_flow(margin, wacc, growth):
    def enterprise_value(revenue, tax):
        discount = 0.08 + 0.04 * wacc.sigmoid()
        flows = [r * 0.3 * margin.sigmoid() * (1 - tax) for r in revenue]
        pv = sum(f / (1 + discount) ** (i + 0.5) for i, f in enumerate(flows))
        g = 0.03 * growth.tanh()
        terminal = flows[-1] * (1 + g) / (discount - g)
        return pv + terminal / (1 + discount) ** len(flows)

    return enterprise_value


@program(index=reals(6, 95.0, 105.0), band=real(0.5, 4.0))
def rebalanced_portfolio(target, cost):
    def wealth(index, band):
        stock = 50.0 + 0 * target
        cash = 50.0
        for before, after in zip(index, index[1:]):
            stock = stock * (after / before)
            total = stock + cash
            drift = stock - target.sigmoid() * total
            if abs(drift) > band:
                stock = stock - drift
                cash = cash + drift - 0.01 * cost * drift.abs()
        return stock + cash

    return wealth


@program(claims=reals(8, 0.0, 30.0), deductible=real(1.0, 5.0), limit=real(10.0, 20.0))
def reinsurance_layer(inflation, load):
    def premium(claims, deductible, limit):
        covered = 0.0
        for claim in claims:
            inflated = claim * (1 + 0.1 * inflation)
            covered += wengert.clip(inflated - deductible, 0.0, limit)
        mean = covered / len(claims)
        return mean * (1 + 0.2 * load)

    return premium


@program(events=reals(4, 0.0, 10.0), until=real(8.0, 12.0))
def hawkes_process(base, jump, decay):
    def log_likelihood(events, until):
        events = sorted(events)
        excitation = 0.0
        total = -base * until
        for i, t in enumerate(events):
            if i:
                excitation = (excitation + jump * 0.5) * (-decay * (t - events[i - 1])).exp()
            total += (base + excitation).log()
            total -= 0.5 * jump / decay * (1 - (-decay * (until - t)).exp())
        return total

    return log_likelihood


@program(rank=whole(1, 20), knots=choice((1, 5, 10), (2, 8)))
def tiered_commission(rates=weights(4)):
    def commission(rank, knots):
        tier = bisect_right(knots, rank)
        return rank * rates[tier] + sum(rates[:tier], wengert.Value(0.0))

    return commission
