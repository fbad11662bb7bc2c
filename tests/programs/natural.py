"""Programs of chemists and biologists: reactions, populations, sequences, trees, doses, neurons."""

from __future__ import annotations

import collections
import enum
import math
import re
from dataclasses import asdict, dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    choice,
    flag,
    indices,
    program,
    real,
    reals,
    record,
    text,
    weights,
    whole,
    wholes,
)

R = 8.314e-3
ATOMIC = MappingProxyType({"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999})
CODONS = {"AUG": "start", "UAA": "stop", "UGA": "stop", "GCU": "ala", "UUU": "phe"}
TREE = {"root": ("left", "human"), "left": ("mouse", "rat"), "human": None, "mouse": None, "rat": None}


class Order(enum.IntEnum):
    ZERO = 0
    FIRST = 1
    SECOND = 2


@dataclass
class Compartments:
    susceptible: object
    infected: object
    recovered: object

    def step(self, beta, gamma, dt):
        total = self.susceptible + self.infected + self.recovered
        new = beta * self.susceptible * self.infected / total * dt
        healed = gamma * self.infected * dt
        return Compartments(self.susceptible - new, self.infected + new - healed, self.recovered + healed)


@dataclass(frozen=True)
class Reaction:
    rate: object
    uses: tuple
    makes: tuple


def arrhenius(factor, energy, temperature):
    return factor * wengert.exp(-energy / (R * temperature))


def formula_mass(formula):
    return sum(ATOMIC[name] * int(count or 1) for name, count in re.findall(r"([A-Z])(\d*)", formula))


@program(temperature=real(280.0, 330.0), amounts=reals(2, 0.1, 1.0), order=choice(*Order))
def rate_of_reaction(factor, energy):
    def rate(temperature, amounts, order):
        k = arrhenius(factor, energy, temperature)
        if order is Order.ZERO:
            return k * 1.0
        if order == Order.FIRST:
            return k * amounts[0]
        return k * amounts[0] * amounts[1]

    return rate


@program(start=record(S=real(0.8, 0.99), I=real(0.01, 0.1)), days=whole(3, 8))
def epidemic(beta, gamma):
    def peak(start, days):
        state = Compartments(start["S"], start["I"], 0.0)
        infected = []
        for _ in range(days):
            state = state.step(beta, gamma, 0.5)
            infected.append(state.infected)
        return max(infected) + 0.1 * asdict(state)["recovered"]

    return peak


@program(substrate=reals(6, 0.1, 5.0), inhibitor=real(0.0, 2.0), kind=text("none", "competitive", "uncompetitive"))
def michaelis_menten(vmax, km, ki):
    def squares(substrate, inhibitor, kind):
        total = 0
        for s in substrate:
            factor = 1 + inhibitor / ki
            if kind == "competitive":
                v = vmax * s / (km * factor + s)
            elif kind == "uncompetitive":
                v = vmax * s / (km + factor * s)
            else:
                v = vmax * s / (km + s)
            total += (v - 0.8 * s / (1 + s)) ** 2
        return total

    return squares


@program(ph=real(2.0, 12.0))
def titration(pk1, pk2):
    def charge(ph):
        acid = 1 / (1 + 10 ** (ph - 3 - pk1))
        base = 1 / (1 + 10 ** (ph - 8 - pk2))
        return base - 1 + acid * 0.5

    return charge


@program(prey=real(0.5, 2.0), predators=real(0.2, 1.0))
def lotka_volterra(a, b, c, d):
    def after(prey, predators):
        x, y = prey, predators
        for _ in range(8):
            x, y = x + 0.05 * x * (a - b * y), y + 0.05 * y * (c * x - d)
            if y < 0.1:
                break
        return x * x + y

    return after


@program(v=real(-1.0, 1.0), currents=reals(10, 0.0, 1.0))
def fitzhugh_nagumo(a, b, tau):
    def spikes(v, currents):
        w, total = 0.0, 0.0
        for current in currents:
            v = v + 0.1 * (v - v**3 / 3 - w + current)
            w = w + 0.1 * (v + a - b * w) / (1 + tau)
            total = total + wengert.sigmoid(5 * v)
        return total

    return spikes


@program(molecule=choice("H2O", "CH4", "CO2", "C2H6O", "NH3"), amount=real(0.1, 2.0))
def molar_mass(impurity, scale):
    def mass(molecule, amount):
        return scale * amount * formula_mass(molecule) * (1 + 0.01 * impurity)

    return mass


@program(sequence=choice("AUGGCUUUUUAA", "GCUGCUAUG", "UUUUGA"), bias=real())
def codon_usage(w_start, w_stop, w_ala, w_phe):
    weight = dict(start=w_start, stop=w_stop, ala=w_ala, phe=w_phe)

    def adaptation(sequence, bias):
        total, n = 0.0, 0
        for k in range(0, len(sequence), 3):
            kind = CODONS.get(sequence[k : k + 3])
            if kind is None:
                continue
            total = total + (weight[kind] + 0.1).log()
            n += 1
            if kind == "stop":
                break
        return (total / n).exp() + bias

    return adaptation


@program(a=wholes(4, 0, 1), b=wholes(4, 0, 1), engine="its numbers take it along more than 32 paths")
def alignment_score(match, gap):
    def best(a, b):
        n, m = len(a), len(b)
        score = [[-gap * (i + j) for j in range(m + 1)] for i in range(n + 1)]
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                hit = match if a[i - 1] == b[j - 1] else -match
                options = [score[i - 1][j - 1] + hit, score[i - 1][j] - gap, score[i][j - 1] - gap]
                score[i][j] = wengert.logsumexp(options)
        return score[n][m]

    return best


@program(site=wholes(3, 0, 3), engine="its numbers take it along more than 32 paths")
def likelihood_on_a_tree(rate, t_left, t_right):
    def likelihood(site):
        leaves = dict(zip(("human", "mouse", "rat"), site))

        def change(t):
            same = 0.25 + 0.75 * (-4 / 3 * rate * t).exp()
            return same, (1 - same) / 3

        def partial(node):
            if TREE[node] is None:
                return [1.0 if base == leaves[node] else 0.0 for base in range(4)]
            found = [1.0] * 4
            for child, t in zip(TREE[node], (t_left, t_right)):
                same, other = change(t)
                below = partial(child)
                found = [f * sum((same if x == y else other) * below[y] for y in range(4)) for x, f in enumerate(found)]
            return found

        return -(sum(partial("root")) / 4).log()

    return likelihood


@program(dose=real(1.0, 10.0), times=reals(5, 0.1, 8.0))
def pharmacokinetics(ka, ke, volume):
    def exposure(dose, times):
        ka_ = ke + 0.3 + ka  # absorbed faster than it is lost
        level = [dose * ka_ / (volume * (ka_ - ke)) * ((-ke * t).exp() - (-ka_ * t).exp()) for t in times]
        return sum(level) / len(level)

    return exposure


@program(species=reals(3, 0.1, 1.0), steps=whole(2, 5))
def mass_action_network(k1, k2, k3):
    network = [
        Reaction(k1, (0,), (1,)),
        Reaction(k2, (0, 1), (2,)),
        Reaction(k3, (2,), (0, 1)),
    ]

    def product(species, steps):
        x = list(species)
        for _ in range(steps):
            flow = [0.0, 0.0, 0.0]
            for reaction in network:
                rate = reaction.rate
                for s in reaction.uses:
                    rate = rate * x[s]
                for s in reaction.uses:
                    flow[s] -= rate
                for s in reaction.makes:
                    flow[s] += rate
            x = [c + 0.1 * f for c, f in zip(x, flow)]
        return x[2] + 0.5 * x[0] ** 2

    return product


@program(genotypes=indices(6, lo=0, hi=2), age=real(0.0, 1.0))
def polygenic_risk(intercept, slope, effects=weights(6, 3)):
    def risk(genotypes, age):
        score = intercept - 1 + slope * age
        for k, g in enumerate(genotypes):
            score = score + 0.3 * effects[k][g]
        return score.sigmoid()

    return risk


@program(p=real(0.1, 0.9), generations=whole(1, 5), dominant=flag())
def selection_in_a_population(s, mutation):
    def frequency(p, generations, dominant):
        for _ in range(generations):
            q = 1 - p
            heterozygote = 1.0 if dominant else 1 - s / 4
            mean = p * p + 2 * p * q * heterozygote + q * q * (1 - s / 2)
            p = (p * p + p * q * heterozygote) / mean
            p = p * (1 - 0.01 * mutation) + (1 - p) * 0.01 * mutation
        return p

    return frequency


@program(distances=reals(5, 0.9, 2.5))
def lennard_jones(epsilon, sigma):
    def energy(distances):
        total = 0.0
        for r in distances:
            if r > 2.4:
                continue
            s6 = ((0.5 + sigma / 2) / r) ** 6
            total = total + 4 * epsilon * (s6 * s6 - s6)
        return total

    return energy


@program(torsions=array(4, lo=-3.1, hi=3.1), barrier=whole(1, 3))
def torsion_energy(v1, v2, v3):
    def energy(torsions, barrier):
        coefficients = np.array([v1, v2, v3])
        waves = np.array([[1 + math.cos((n + 1) * t) for n in range(3)] for t in torsions])
        return (waves @ coefficients).sum() / 2 * barrier

    return energy


@program(counts=wholes(5, 0, 6))
def poisson_counts(rate, dispersion):
    def surprise(counts):
        total = 0.0
        for k, count in enumerate(counts):
            mean = rate * (1 + 0.1 * k)
            total = total + mean - count * mean.log() + math.lgamma(count + 1)
        return total * dispersion

    return surprise


@program(hill=whole(1, 4), ligand=real(0.1, 3.0))
def hill_with_fractions(k, basal):
    share = Fraction(1, 3)

    def bound(hill, ligand):
        x = ligand**hill
        return basal * float(share) + (1 - float(share)) * x / (k**hill + x)

    return bound


@program(seed=real(0.1, 0.9), n=whole(2, 6))
def logistic_map(r, scale):
    def orbit(seed, n):
        trace = collections.deque([seed], maxlen=3)
        for _ in range(n):
            x = trace[-1]
            trace.append((2.0 + r) * x * (1 - x))
        return scale * sum(trace) / len(trace)

    return orbit


@program(light=real(0.0, 2.0), temperature=real(5.0, 35.0))
def photosynthesis(quantum, capacity):
    def rate(light, temperature):
        if temperature <= 10:
            response = 0.2
        elif temperature < 25:
            response = (temperature - 10) / 15
        else:
            response = max(0.0, 1 - (temperature - 25) / 15)
        limit = capacity * response + 0.01
        return quantum * light * limit / (quantum * light + limit)

    return rate
