"""Programs of people who work with signals: filters, transforms, codes, sound, detection."""

from __future__ import annotations

import cmath
import itertools
import math
from collections import Counter, defaultdict, deque
from functools import lru_cache, partial

import numpy as np

import wengert
from tests.programs.kit import array, choice, flag, indices, matrix, program, real, reals, text, weights, whole, wholes

RATE = 100.0
WINDOWS = {
    "rectangle": lambda k, n: 1.0,
    "hann": lambda k, n: 0.5 - 0.5 * math.cos(2 * math.pi * k / (n - 1)),
    "hamming": lambda k, n: 0.54 - 0.46 * math.cos(2 * math.pi * k / (n - 1)),
}


@lru_cache(maxsize=None)
def twiddles(n):
    return [(math.cos(2 * math.pi * k / n), math.sin(2 * math.pi * k / n)) for k in range(n)]


class Biquad:
    def __init__(self, b0, b1, a1, a2):
        self.b0, self.b1, self.a1, self.a2 = b0, b1, a1, a2
        self.z1 = self.z2 = 0.0

    def step(self, x):
        y = self.b0 * x + self.z1
        self.z1 = self.b1 * x - self.a1 * y + self.z2
        self.z2 = -self.a2 * y
        return y


def power(signal):
    return sum(s * s for s in signal) / len(signal)


@program(x=reals(12))
def finite_impulse_response(h=weights(4)):
    def output_power(x):
        n = len(h)
        y = [sum(h[j] * x[k - j] for j in range(n)) for k in range(n - 1, len(x))]
        return power(y)

    return output_power


@program(x=reals(16))
def biquad_cascade(b0, b1, a1, a2):
    def level(x):
        stages = [Biquad(b0, b1, 0.3 * a1, 0.2 * a2), Biquad(b1, b0, -0.2 * a1, 0.1 * a2)]
        y = []
        for sample in x:
            for stage in stages:
                sample = stage.step(sample)
            y.append(sample)
        return power(y)

    return level


@program(x=reals(8), k=whole(0, 7))
def one_bin_of_a_transform(gain, phase):
    def magnitude(x, k):
        table = twiddles(len(x))
        re = sum(s * table[k * n % len(x)][0] for n, s in enumerate(x))
        im = -sum(s * table[k * n % len(x)][1] for n, s in enumerate(x))
        return gain * (re * phase.cos() - im * phase.sin()) ** 2 + (re * phase.sin() + im * phase.cos()) ** 2

    return magnitude


@program(x=reals(16), window=text("rectangle", "hann", "hamming"), frequency=real(5.0, 45.0))
def goertzel(gain, threshold):
    def tone(x, window, frequency):
        coefficient = 2 * math.cos(2 * math.pi * frequency / RATE)
        s1 = s2 = 0.0
        for k, sample in enumerate(x):
            s0 = sample * WINDOWS[window](k, len(x)) + coefficient * s1 - s2
            s1, s2 = s0, s1
        energy = s1 * s1 + s2 * s2 - coefficient * s1 * s2
        return (gain * energy - threshold).sigmoid()

    return tone


@program(samples=reals(10), bits=whole(2, 6))
def quantisation_noise(scale, offset):
    def noise(samples, bits):
        levels = 2**bits
        total = 0.0
        for s in samples:
            q = round(s * levels) / levels
            total += (scale * s + 0.01 * offset - q) ** 2
        return total / len(samples)

    return noise


@program(x=reals(9), order=whole(1, 3), engine="its windows are sorted in more than 32 ways")
def median_filter(gain, bias):
    def roughness(x, order):
        y = []
        for k in range(len(x)):
            window = sorted(x[max(0, k - order) : k + order + 1])
            y.append(window[len(window) // 2])
        return sum((gain * (b - a) + bias) ** 2 for a, b in itertools.pairwise(y))

    return roughness


@program(x=array(16), engine="NumPy's transform takes floats alone")
def spectrum_by_numpy(low, high):
    def weighted_energy(x):
        spectrum = np.abs(np.fft.rfft(x)) ** 2
        return sum((low if k < 4 else high) * s for k, s in enumerate(spectrum))

    return weighted_energy


@program(x=array(12), kernel=choice("same", "valid"), engine="the largest is found by comparing")
def convolution_by_numpy(a, b, c):
    def energy(x, kernel):
        y = np.convolve(x, np.array([1.0, 2.0, 1.0]) / 4, mode=kernel)
        return a * (y**2).mean() + b * y.max() + c * y[0]

    return energy


@program(x=reals(10), attack=real(0.1, 0.9), engine="its numbers take it along more than 32 paths")
def envelope_follower(release, makeup):
    def compressed(x, attack):
        envelope, out = 0.0, 0.0
        for s in x:
            level = abs(s)
            coefficient = attack if level > envelope else 0.1 * release
            envelope = envelope + coefficient * (level - envelope)
            gain = 1.0 if envelope < 0.5 else 0.5 / envelope
            out = out + (makeup * gain * s) ** 2
        return out

    return compressed


@program(bits=wholes(8, 0, 1), snr=real(0.5, 3.0), engine="its numbers take it along more than 32 paths")
def soft_bits(noise, bias):
    def cross_entropy(bits, snr):
        total = 0.0
        for k, bit in enumerate(bits):
            symbol = 1.0 if bit else -1.0
            received = snr * symbol + 0.3 * math.sin(7 * k)
            llr = 2 * received / (noise * noise) + bias
            total = total + (1 + (-symbol * llr).exp()).log()
        return total / len(bits)

    return cross_entropy


@program(a=reals(8), b=reals(8), lag=whole(0, 4))
def cross_correlation(gain, decay):
    def peak(a, b, lag):
        values = []
        for shift in range(lag + 1):
            values.append(gain * sum(x * y for x, y in zip(a[shift:], b)) * (-decay * shift).exp())
        return wengert.logsumexp(values)

    return peak


@program(x=reals(8, -2.0, 2.0), engine="its numbers take it along more than 32 paths")
def pitch_by_zero_crossings(scale, floor):
    def pitch(x):
        crossings = sum(1 for p, q in zip(x, x[1:]) if p * q < 0)
        loud = [abs(s) for s in x if abs(s) > 0.2]
        return scale * crossings / len(x) + floor * sum(loud)

    return pitch


@program(symbols=indices(10, lo=0, hi=3), engine="its numbers take it along more than 32 paths")
def source_entropy(w0, w1, w2, w3):
    prices = [w0, w1, w2, w3]

    def cost(symbols):
        counts = Counter(int(s) for s in symbols)
        total = 0.0
        for symbol, count in sorted(counts.items()):
            p = count / len(symbols)
            total = total - prices[symbol] * p * math.log2(p)
        return total

    return cost


@program(x=reals(8), step=real(0.01, 0.3))
def adaptive_filter(d0, d1):
    def misadjustment(x, step):
        w = [0.0, 0.0]
        errors = []
        for k in range(2, len(x)):
            desired = d0 * x[k - 1] + d1 * x[k - 2]
            y = w[0] * x[k - 1] + w[1] * x[k - 2]
            e = desired - y
            w = [wi + step * e * xi for wi, xi in zip(w, (x[k - 1], x[k - 2]))]
            errors.append(e * e)
        return sum(errors)

    return misadjustment


@program(x=reals(16))
def haar_wavelets(keep, shrink):
    def compressed(x):
        details, level = [], list(x)
        while len(level) > 1:
            pairs = list(zip(level[::2], level[1::2]))
            details += [(a - b) / math.sqrt(2) for a, b in pairs]
            level = [(a + b) / math.sqrt(2) for a, b in pairs]
        soft = [wengert.relu(abs(d) - 0.3 * shrink) for d in details]
        return keep * level[0] ** 2 + sum(soft)

    return compressed


@program(poles=reals(2, 0.1, 0.8), frequency=real(0.1, 3.0), engine="complex numbers")
def transfer_function_at(gain, zero):
    def magnitude(poles, frequency):
        z = cmath.exp(1j * frequency)
        bottom = 1.0
        for p in poles:
            bottom *= abs(z - p) ** 2
        re, im = z.real - zero, z.imag
        return gain * (re * re + im * im) / bottom

    return magnitude


@program(frames=matrix(4, 5, 0.0, 1.0))
def mel_bank(width, centre, bank=weights(3, low=0.5, high=4.0)):
    def log_energies(frames):
        total = 0.0
        for frame in frames:
            for c in bank:
                e = sum(f * (-(((k - c) / (0.5 + width)) ** 2)).exp() for k, f in enumerate(frame))
                total = total + (e + 0.1).log()
        return total / len(frames) * centre

    return log_energies


@program(x=reals(6), taps=whole(1, 5), circular=flag())
def delay_line(feedback, mix):
    def echo(x, taps, circular):
        line = deque([0.0] * taps, maxlen=taps)
        out = []
        for s in x:
            wet = line[0]
            line.append(s + 0.5 * feedback * wet)
            out.append((1 - mix) * s + mix * wet)
        if circular:
            out = [a + 0.1 * line[k % len(line)] for k, a in enumerate(out)]
        return sum(o * o for o in out)

    return echo


@program(levels=reals(7, -1.0, 1.0))
def companding(mu, gain):
    compress = partial(lambda base, s: math.copysign(1.0, s) * (1 + 20 * base * abs(s)).log(), mu)

    def loudness(levels):
        return gain * sum(compress(s) ** 2 for s in levels) / (1 + 20 * mu).log() ** 2

    return loudness


@program(path=wholes(6, 0, 1), observed=reals(6), engine="its numbers take it along more than 32 paths")
def viterbi_score(stay, spread):
    def score(path, observed):
        transition = defaultdict(lambda: 0.1)
        transition[(0, 0)] = transition[(1, 1)] = 0.9
        total = 0.0
        for k, (state, y) in enumerate(zip(path, observed)):
            mean = -0.5 if state == 0 else 0.5
            total = total - 0.5 * ((y - mean) / spread) ** 2 - spread.log()
            if k:
                total = total + stay * math.log(transition[(path[k - 1], state)])
        return total

    return score
