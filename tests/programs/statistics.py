"""Programs of statisticians: likelihoods, regressions, state-space models, robust estimates."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import defaultdict

import numpy as np

import wengert
from tests.programs.kit import array, choice, flag, matrix, program, real, reals, text, whole, wholes


@program(xs=reals(8, -2.0, 2.0), ys=reals(8, -3.0, 3.0))
def linear_regression(slope, intercept):
    def mean_squared_error(xs, ys):
        residuals = [slope * x + intercept - y for x, y in zip(xs, ys)]
        return sum(r**2 for r in residuals) / len(residuals)

    return mean_squared_error


@program(data=reals(9, -2.0, 2.0))
def normal_likelihood(mu, log_sigma):
    def log_likelihood(data):
        n = len(data)
        center = sum(data) / n
        spread = sum((x - center) ** 2 for x in data)
        sigma2 = wengert.exp(2 * log_sigma)
        return -n / 2 * math.log(2 * math.pi) - n * log_sigma - (spread + n * (center - mu) ** 2) / (2 * sigma2)

    return log_likelihood


@program(rows=matrix(4, 2, -2.0, 2.0), outcomes=wholes(4, 0, 1))
def logistic_regression(bias, w_first, w_second):
    def negative_log_likelihood(rows, outcomes):
        total = 0.0
        for (x1, x2), y in zip(rows, outcomes):
            score = bias + w_first * x1 + w_second * x2
            total = total - (score.logsigmoid() if y == 1 else (-score).logsigmoid())
        return total

    return negative_log_likelihood


@program(counts=wholes(7, 0, 6), exposure=reals(7, 0.5, 3.0))
def poisson_regression(base, trend):
    def deviance(counts, exposure):
        loss = 0.0
        for t, (k, e) in enumerate(zip(counts, exposure)):
            log_rate = base + trend * t / len(counts) + math.log(e)
            loss += log_rate.exp() - k * log_rate + math.lgamma(k + 1)
        return loss

    return deviance


@program(data=reals(6, -4.0, 4.0))
def student_t(location, log_scale, log_dof):
    def log_density(data):
        dof = log_dof.exp() + 1
        scale = log_scale.exp()
        half = (dof + 1) / 2
        norm = half.lgamma() - (dof / 2).lgamma() - 0.5 * (dof * math.pi).log() - scale.log()
        return sum(norm - half * (((x - location) / scale) ** 2 / dof).log1p() for x in data)

    return log_density


@program(data=reals(6, -3.0, 3.0))
def mixture_of_normals(first, second, log_width, lean):
    def log_likelihood(data):
        log_weights = wengert.log_softmax([lean, -lean])
        total = 0.0
        for x in data:
            parts = []
            for log_weight, mean in zip(log_weights, (first, second)):
                z = (x - mean) / log_width.exp()
                parts.append(log_weight - z * z / 2 - log_width)
            total += wengert.logsumexp(parts)
        return total

    return log_likelihood


@program(xs=reals(4, -2.0, 2.0), ys=reals(4, -3.0, 3.0), delta=real(0.3, 1.5))
def huber_regression(slope, intercept):
    def loss(xs, ys, delta):
        total = 0.0
        for x, y in zip(xs, ys):
            r = slope * x + intercept - y
            if abs(r.data) <= delta:
                total += 0.5 * r * r
            else:
                total += delta * (r.abs() - 0.5 * delta)
        return total / len(xs)

    return loss


@program(xs=reals(6, 0.0, 2.0), ys=reals(6, -2.0, 2.0), quantile=real(0.1, 0.9))
def quantile_regression(slope, intercept):
    def pinball(xs, ys, quantile):
        errors = [y - (slope * x + intercept) for x, y in zip(xs, ys)]
        return sum(wengert.max(quantile * e, (quantile - 1) * e) for e in errors)

    return pinball


@program(rows=matrix(5, 3, -1.0, 1.0), ys=reals(5), alpha=real(0.0, 1.0), strength=real(0.0, 0.5))
def elastic_net(w0, w1, w2):
    coefficients = [w0, w1, w2]

    def objective(rows, ys, alpha, strength):
        fit = 0.0
        for row, y in zip(rows, ys):
            fit += (sum(w * x for w, x in zip(coefficients, row)) - y) ** 2
        lasso = sum(abs(w) for w in coefficients)
        ridge = sum(w**2 for w in coefficients)
        return fit / (2 * len(ys)) + strength * (alpha * lasso + (1 - alpha) / 2 * ridge)

    return objective


@program(points=reals(7, -2.0, 2.0))
def leave_one_out_density(log_bandwidth):
    def score(points):
        h = log_bandwidth.exp() * 0.3 + 0.1
        total = 0.0
        for i, x in enumerate(points):
            density = 0.0
            for j, other in enumerate(points):
                if i == j:
                    continue
                density = density + wengert.normal_pdf((x - other) / h) / h
            total += (density / (len(points) - 1) + 1e-12).log()
        return total

    return score


@program(series=reals(12, -2.0, 2.0))
def arma_likelihood(phi, theta, log_noise):
    def loss(series):
        ar, ma = phi.tanh(), theta.tanh()
        shock = 0.0
        total = 0.0
        for before, now in zip(series, series[1:]):
            shock = now - ar * before - ma * shock
            total = total + 0.5 * shock**2 / (2 * log_noise).exp() + log_noise
        return total

    return loss


@program(returns=reals(10, -0.5, 0.5))
def garch(omega, alpha, beta):
    def negative_log_likelihood(returns):
        base, react, persist = omega.exp() * 0.01, alpha.sigmoid() * 0.4, beta.sigmoid() * 0.5
        mean = sum(returns) / len(returns)
        variance = sum((r - mean) ** 2 for r in returns) / len(returns)
        loss = 0.0
        for r in returns:
            e = r - mean
            loss += 0.5 * (wengert.log(base + 0 * react + variance) + e * e / (base + variance))
            variance = base + react * e * e + persist * variance
        return loss

    return negative_log_likelihood


def _log_beta(a, b):
    return wengert.lgamma(a) + wengert.lgamma(b) - wengert.lgamma(a + b)


@program(trials=whole(5, 6), successes=wholes(2, 0, 2))
def beta_binomial(log_a, log_b):
    def log_likelihood(trials, successes):
        a, b = log_a.exp(), log_b.exp()
        total = 0
        for k in successes:
            total += math.log(math.comb(trials, k)) + _log_beta(k + a, trials - k + b) - _log_beta(a, b)
        return total

    return log_likelihood


@program(times=reals(4, 0.1, 4.0), observed=wholes(4, 0, 1))
def weibull_survival(log_shape, log_scale):
    def log_likelihood(times, observed):
        shape, scale = log_shape.exp(), log_scale.exp()
        total = 0.0
        for t, event in zip(times, observed):
            hazard = (t / scale) ** shape
            if event:
                total += log_shape - log_scale + (shape - 1) * (math.log(t) - log_scale)
            total -= hazard
        return total

    return log_likelihood


@program(times=reals(4, 0.1, 4.0), ages=reals(4, -1.0, 1.0), treated=wholes(4, 0, 1))
def cox_partial_likelihood(age_effect, treatment_effect):
    def log_partial(times, ages, treated):
        order = sorted(range(len(times)), key=lambda i: times[i], reverse=True)
        risk_set = []
        total = 0.0
        for i in order:
            score = age_effect * ages[i] + treatment_effect * treated[i]
            risk_set.append(score)
            total += score - wengert.logsumexp(risk_set)
        return total

    return log_partial


@program(observations=wholes(9, 0, 2))
def hidden_markov_forward(stay, switch, heads, tails):
    def log_likelihood(observations):
        transition = [wengert.softmax([stay, -stay]), wengert.softmax([-switch, switch])]
        emission = [wengert.softmax([heads, 0.0 * heads, -heads]), wengert.softmax([-tails, tails * 0.5, tails])]
        alpha = [0.5 * emission[s][observations[0]] for s in range(2)]
        log_scale = 0.0
        for symbol in observations[1:]:
            alpha = [sum(alpha[i] * transition[i][j] for i in range(2)) * emission[j][symbol] for j in range(2)]
            norm = alpha[0] + alpha[1]
            log_scale += norm.log()
            alpha = [a / norm for a in alpha]
        return log_scale

    return log_likelihood


@program(measurements=reals(8, -2.0, 2.0), missing=whole(0, 7))
def local_level_filter(log_process, log_noise):
    def innovations(measurements, missing):
        q, r = log_process.exp(), log_noise.exp()
        level, variance = 0.0, 1.0
        loss = 0.0 * q
        for t, y in enumerate(measurements):
            variance = variance + q
            if t == missing:
                continue
            s = variance + r
            gain = variance / s
            loss += 0.5 * (s.log() + (y - level) ** 2 / s)
            level, variance = level + gain * (y - level), (1 - gain) * variance
        return loss

    return innovations


@program(data=reals(6, 0.2, 5.0), power=choice(0.0, 0.5, 1.0, -1.0))
def box_cox(mu, log_sigma):
    def transform(x, power):
        return math.log(x) if power == 0 else (x**power - 1) / power

    def log_likelihood(data, power):
        jacobian = (power - 1) * sum(math.log(x) for x in data)
        z = [(transform(x, power) - mu) / log_sigma.exp() for x in data]
        return jacobian - sum(u * u / 2 + log_sigma for u in z)

    return log_likelihood


@program(xs=reals(4, -1.0, 1.0), ys=reals(4, -2.0, 2.0))
def least_trimmed_squares(slope, intercept):
    def loss(xs, ys):
        keep = (len(xs) + 2) // 2
        squares = [(y - slope * x - intercept) ** 2 for x, y in zip(xs, ys)]
        squares.sort(key=lambda s: s.data)
        return sum(squares[:keep]) / keep

    return loss


@program(data=reals(4, -2.0, 2.0), extra=flag())
def median_absolute_deviation(center, scale):
    def spread(data, extra):
        points = data if extra else data[:-1]
        deviations = sorted((abs(x - center) * scale for x in points), key=lambda v: v.data)
        middle = len(deviations) // 2
        if len(deviations) % 2:
            return deviations[middle]
        return (deviations[middle - 1] + deviations[middle]) / 2

    return spread


@program(values=reals(9, -2.0, 2.0), groups=choice(list("aabbccabc"), list("abcabcabc"), list("aaaabbbcc")))
def analysis_of_variance(shift, stretch):
    def f_ratio(values, groups):
        by_group = defaultdict(list)
        for value, group in zip(values, groups):
            by_group[group].append(shift + stretch * value if group == "a" else value)
        grand = sum(v for vs in by_group.values() for v in vs) / len(values)
        means = {g: sum(vs) / len(vs) for g, vs in by_group.items()}
        between = sum(len(vs) * (means[g] - grand) ** 2 for g, vs in by_group.items()) / (len(means) - 1)
        within = sum((v - means[g]) ** 2 for g, vs in by_group.items() for v in vs) / (len(values) - len(means))
        return between / within

    return f_ratio


@program(grades=wholes(3, 0, 2), effort=reals(3, -1.0, 1.0))
def ordered_probit(effect, first_cut, gap):
    def log_likelihood(grades, effort):
        cuts = [first_cut, first_cut + gap.softplus()]
        total = 0.0
        for grade, x in zip(grades, effort):
            upper = wengert.normal_cdf(cuts[grade] - effect * x) if grade < len(cuts) else 1.0
            lower = wengert.normal_cdf(cuts[grade - 1] - effect * x) if grade > 0 else 0.0
            total += wengert.log(upper - lower + 1e-9)
        return total

    return log_likelihood


@program(ys=reals(4, -1.0, 3.0), xs=reals(4, -1.0, 1.0))
def tobit(slope, intercept, log_sigma):
    def loss(ys, xs):
        sigma = log_sigma.exp()
        total = 0.0
        for y, x in zip(ys, xs):
            mean = slope * x + intercept
            if y <= 0.0:  # censored at zero
                total -= (((-mean / sigma) * 0.5).normal_cdf() + 1e-9).log()
            else:
                total += ((y - mean) / sigma) ** 2 / 2 + log_sigma
        return total

    return loss


@program(xs=reals(4, -2.0, 2.0), ys=reals(4, -1.0, 1.0))
def gaussian_process(log_length, log_height):
    def negative_log_marginal(xs, ys):
        length, height = log_length.exp(), log_height.exp()
        n = len(xs)
        k = [[height * (-((xs[i] - xs[j]) ** 2) / (2 * length**2)).exp() for j in range(n)] for i in range(n)]
        for i in range(n):
            k[i][i] = k[i][i] + 0.1
        low = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                s = k[i][j] - sum(low[i][m] * low[j][m] for m in range(j))
                low[i][j] = s.sqrt() if i == j else s / low[j][j]
        z = []
        for i in range(n):
            z.append((ys[i] - sum(low[i][m] * z[m] for m in range(i))) / low[i][i])
        return sum(u * u for u in z) / 2 + sum(low[i][i].log() for i in range(n))

    return negative_log_marginal


def _log_bessel_i0(kappa, terms=12):
    term = total = 1.0
    for k in range(1, terms):
        term = term * (kappa / 2) ** 2 / k**2
        total = total + term
    return wengert.log(total)


@program(angles=reals(6, -3.1, 3.1))
def von_mises(direction, log_kappa):
    def log_likelihood(angles):
        kappa = log_kappa.exp()
        resultant = sum(wengert.cos(a - direction) for a in angles)
        return kappa * resultant - len(angles) * (math.log(2 * math.pi) + _log_bessel_i0(kappa))

    return log_likelihood


@program(samples=reals(6, -2.0, 2.0))
def importance_sampling(target_mean, target_scale):
    def effective_sample_size(samples):
        log_weights = []
        for s in samples:
            log_target = -(((s - target_mean) / (target_scale.abs() + 0.5)) ** 2) / 2
            log_proposal = -(s**2) / 2
            log_weights.append(log_target - log_proposal)
        highest = max(w.data for w in log_weights)
        weights = [(w - highest).exp() for w in log_weights]
        return sum(weights) ** 2 / sum(w * w for w in weights)

    return effective_sample_size


@program(data=reals(6, -2.0, 2.0), seed=whole(0, 3))
def bootstrap_of_a_mean(location, scale):
    def mean_of_resamples(data, seed):
        rng = random.Random(seed)
        total = 0.0
        for _ in range(5):
            sample = [rng.choice(data) for _ in data]
            mean = sum(sample) / len(sample)
            total += ((mean - location) / scale).tanh()
        return total / 5

    return mean_of_resamples


@program(stream=reals(10, -3.0, 3.0))
def running_variance(gain, offset):
    def welford(stream):
        count, mean, m2 = 0, 0.0, 0.0
        for raw in stream:
            x = (gain * raw + offset).tanh()
            count += 1
            delta = x - mean
            mean += delta / count
            m2 += delta * (x - mean)
        return m2 / (count - 1)

    return welford


@program(counts=wholes(2, 0, 4))
def zero_inflated_poisson(log_rate, zero_logit):
    def log_likelihood(counts):
        rate = log_rate.exp()
        p = zero_logit.sigmoid()
        total = 0.0
        for k in counts:
            if k == 0:
                total += (p + (1 - p) * (-rate).exp()).log()
            else:
                total += (1 - p).log() - rate + k * log_rate - math.log(math.factorial(k))
        return total

    return log_likelihood


@program(points=array(5, 2, lo=-2.0, hi=2.0), center=array(2, lo=-1.0, hi=1.0))
def mahalanobis(a, b, c):
    def mean_distance(points, center):
        lower = np.array([[a.exp(), 0.0], [b, c.exp()]], dtype=object)
        precision = lower @ lower.T
        offsets = points - center
        distances = [d @ precision @ d for d in offsets]
        return sum(wengert.sqrt(q + 1e-3) for q in distances) / len(distances)

    return mean_distance


@program(data=reals(12, 0.0, 4.0), engine="each sample falls into bins of its own")
def chi_square_of_bins(rate):
    edges = [0.0, 0.5, 1.0, 2.0, 3.0]

    def statistic(data):
        counts = [0] * len(edges)
        for x in data:
            counts[bisect_right(edges, x) - 1] += 1
        r = rate.softplus() + 0.2
        survival = [(-r * e).exp() for e in edges] + [0.0]
        total = 0.0
        for observed, above, below in zip(counts, survival, survival[1:]):
            expected = len(data) * (above - below)
            total = total + (observed - expected) ** 2 / (expected + 0.01)
        return total

    return statistic


@program(counts=wholes(5, 0, 9), pseudo=real(0.1, 2.0))
def dirichlet_multinomial(log_concentration):
    def log_evidence(counts, pseudo):
        concentration = log_concentration.exp() + pseudo
        n, k = sum(counts), len(counts)
        total = (k * concentration).lgamma() - (n + k * concentration).lgamma()
        for c in counts:
            if c:
                total += (c + concentration).lgamma() - concentration.lgamma()
        return total

    return log_evidence


@program(series=reals(10, -2.0, 2.0), strength=real(0.1, 1.0))
def trend_filter(level, slope, bend):
    def objective(series, strength):
        trend = [level + slope * t / 10 + bend * max(0, t - 5) / 5 for t in range(len(series))]
        fit = sum((y - m) ** 2 for y, m in zip(series, trend))
        second = [trend[i - 1] - 2 * trend[i] + trend[i + 1] for i in range(1, len(trend) - 1)]
        return fit + strength * sum(wengert.absolute(d) for d in second)

    return objective


@program(xs=reals(7, -2.0, 2.0), ys=reals(7, -2.0, 2.0))
def correlation_after_warp(power, tilt):
    def pearson(xs, ys):
        us = [(power * x).tanh() + tilt * x * x for x in xs]
        mean_u, mean_y = sum(us) / len(us), sum(ys) / len(ys)
        covariance = sum((u - mean_u) * (y - mean_y) for u, y in zip(us, ys))
        var_u = sum((u - mean_u) ** 2 for u in us)
        var_y = sum((y - mean_y) ** 2 for y in ys)
        return covariance / (var_u.sqrt() * math.sqrt(var_y))

    return pearson


@program(data=reals(8, -2.5, 2.5), steps=whole(1, 3))
def expectation_maximization(left, right):
    def fitted_gap(data, steps):
        a, b = left, right
        for _ in range(steps):
            shares = [wengert.sigmoid((x - b) ** 2 / -2 + (x - a) ** 2 / 2) for x in data]
            weight_b = sum(shares)
            weight_a = len(data) - weight_b
            b = sum(s * x for s, x in zip(shares, data)) / (weight_b + 1e-6)
            a = sum((1 - s) * x for s, x in zip(shares, data)) / (weight_a + 1e-6)
        return (b - a) ** 2

    return fitted_gap


@program(scores=matrix(4, 3, -2.0, 2.0), schools=whole(1, 4))
def partial_pooling(grand_mean, log_tau, log_sigma):
    def negative_log_posterior(scores, schools):
        tau2, sigma2 = (2 * log_tau).exp(), (2 * log_sigma).exp()
        loss = grand_mean**2 / 20 + log_tau**2
        for school in scores[:schools]:
            n = len(school)
            mean = sum(school) / n
            shrink = tau2 / (tau2 + sigma2 / n)
            effect = shrink * mean + (1 - shrink) * grand_mean
            loss += sum((x - effect) ** 2 for x in school) / (2 * sigma2) + n * log_sigma
        return loss

    return negative_log_posterior


@program(a=reals(5, -2.0, 2.0), b=reals(5, -2.0, 2.0), test=text("welch", "pooled", "paired"))
def two_sample_test(effect, scale):
    def statistic(a, b, test):
        a = [effect + scale * x for x in a]
        mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
        var_a = sum((x - mean_a) ** 2 for x in a) / (len(a) - 1)
        var_b = sum((x - mean_b) ** 2 for x in b) / (len(b) - 1)
        if test == "welch":
            error = (var_a / len(a) + var_b / len(b)).sqrt()
        elif test == "pooled":
            error = ((var_a + var_b) / 2 * (1 / len(a) + 1 / len(b))).sqrt()
        else:
            gaps = [x - y for x, y in zip(a, b)]
            mean = sum(gaps) / len(gaps)
            error = (sum((g - mean) ** 2 for g in gaps) / (len(gaps) - 1) / len(gaps)).sqrt()
        return (mean_a - mean_b) / error

    return statistic


@program(values=reals(4, -2.0, 2.0), engine="its numbers are the keys of a dict")
def rank_weighted_mean(scale, tilt):
    def by_rank(values):
        ranks = {v: r for r, v in enumerate(sorted(values), start=1)}
        total = sum(scale * v * (tilt * ranks[v] / len(values)).exp() for v in values)
        return total / sum((tilt * r / len(values)).exp() for r in ranks.values())

    return by_rank


@program(xs=reals(6, -1.5, 1.5), ys=reals(6, -2.0, 2.0), iterations=whole(1, 3))
def iteratively_reweighted(slope, intercept, log_width):
    def robust_scale(xs, ys, iterations):
        a, b, width = slope, intercept, log_width.exp()
        for _ in range(iterations):
            weights = [1 / (1 + ((y - a * x - b) / width) ** 2) for x, y in zip(xs, ys)]
            total = sum(weights)
            mx = sum(w * x for w, x in zip(weights, xs)) / total
            my = sum(w * y for w, y in zip(weights, ys)) / total
            sxy = sum(w * (x - mx) * (y - my) for w, x, y in zip(weights, xs, ys))
            sxx = sum(w * (x - mx) ** 2 for w, x in zip(weights, xs))
            a = sxy / (sxx + 0.01)
            b = my - a * mx
        return a * a + b

    return robust_scale


@program(observed=reals(5, -2.0, 2.0), proposals=reals(4, -0.8, 0.8), uniforms=reals(4, 0.0, 1.0))
def metropolis_chain(start, log_width):
    def average_of_the_chain(observed, proposals, uniforms):
        def log_target(m):
            return -sum((x - m) ** 2 for x in observed) / 2

        state = start
        total = start * 0
        for move, u in zip(proposals, uniforms):
            candidate = state + move * log_width.exp()
            if math.log(u + 1e-300) < (log_target(candidate) - log_target(state)).data:
                state = candidate
            total += state
        return total / len(proposals)

    return average_of_the_chain
