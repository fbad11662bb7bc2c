"""Programs of physicists: mechanics, waves, fields, heat, optics, quanta."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

import wengert
from tests.programs.kit import array, choice, flag, matrix, pair, program, real, reals, record, text, weights, whole

G = 9.81
CONSTANTS = {"g": 9.81, "k": 8.9875, "c": 2.998, "hbar": 1.0546, "sigma": 5.67e-2}
SETTINGS = {"steps": 12, "dt": 0.05, "method": "leapfrog"}
Body = namedtuple("Body", "mass x v")


@dataclass
class Oscillator:
    """A mass on a spring with friction."""

    mass: float
    stiffness: object
    damping: object

    def acceleration(self, x, v):
        return -(self.stiffness * x + self.damping * v) / self.mass


@dataclass(frozen=True)
class Vector:
    """A vector of the plane."""

    x: object
    y: object

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, scale):
        return Vector(scale * self.x, scale * self.y)

    __rmul__ = __mul__

    def norm2(self):
        return self.x * self.x + self.y * self.y


def kinetic(mass, v):
    return 0.5 * mass * v * v


def verlet(x, v, acceleration, dt, steps):
    a = acceleration(x)
    for _ in range(steps):
        x = x + v * dt + 0.5 * a * dt * dt
        new = acceleration(x)
        v = v + 0.5 * (a + new) * dt
        a = new
    return x, v


def runge_kutta(f, y, t, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, [a + h / 2 * b for a, b in zip(y, k1)])
    k3 = f(t + h / 2, [a + h / 2 * b for a, b in zip(y, k2)])
    k4 = f(t + h, [a + h * b for a, b in zip(y, k3)])
    return [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4)]


@program(x=real(0.1, 2.0), n=whole(0, 4), forces=reals(8))
def damped_pendulum(stiffness, damping):
    def energy(x, n, forces):
        v, total = 0.0, 0.0
        for k, force in enumerate(forces):
            if k < n:
                continue
            a = force - stiffness * x - damping * v
            v = v + 0.1 * a
            x = x + 0.1 * v
            total = total + 0.5 * v * v + 0.5 * stiffness * x * x
        return total + math.sqrt(G) * damping

    return energy


@program(angle=real(0.1, 1.2), speed=real(5.0, 20.0))
def projectile_with_drag(drag, mass):
    def height_reached(angle, speed):
        vx, vy = speed * math.cos(angle), speed * math.sin(angle)
        y = 0.0
        for _ in range(15):
            v = (vx * vx + vy * vy) ** 0.5
            vx = vx - 0.02 * drag / mass * v * vx
            vy = vy - 0.02 * (CONSTANTS["g"] + drag / mass * v * vy)
            y = y + 0.02 * vy
        return y

    return height_reached


@program(m=real(0.5, 2.0), x0=real(0.2, 1.0), v0=real(-1.0, 1.0))
def spring_as_a_dataclass(stiffness, damping):
    def amplitude(m, x0, v0):
        system = Oscillator(m, stiffness, damping)
        x, v = x0, v0
        for _ in range(SETTINGS["steps"]):
            v = v + SETTINGS["dt"] * system.acceleration(x, v)
            x = x + SETTINGS["dt"] * v
        return kinetic(system.mass, v) + 0.5 * system.stiffness * x**2

    return amplitude


@program(masses=reals(4, 0.5, 2.0), places=matrix(4, 2))
def gravity_of_four_bodies(strength, softening):
    def potential(masses, places):
        total = 0.0
        for i in range(len(masses)):
            for j in range(i):
                d2 = sum((a - b) ** 2 for a, b in zip(places[i], places[j]))
                total -= strength * masses[i] * masses[j] / (d2 + softening).sqrt()
        return total

    return potential


@program(start=pair(real(0.5, 1.5), real(-0.2, 0.2)), speed=pair(real(-0.2, 0.2), real(0.7, 1.2)))
def orbit_by_vectors(mass):
    def energy_drift(start, speed):
        r, v = Vector(*start), Vector(*speed)
        before = 0.5 * v.norm2() - mass / r.norm2() ** 0.5
        for _ in range(10):
            pull = -mass * r.norm2() ** -1.5
            v = v + 0.05 * (pull * r)
            r = r + 0.05 * v
        after = 0.5 * v.norm2() - mass / r.norm2() ** 0.5
        return (after - before) ** 2 + r.x

    return energy_drift


@program(t=real(0.0, 3.0), x=reals(2, 0.2, 1.0))
def driven_oscillator_by_runge_kutta(omega, gamma, drive):
    def displacement(t, x):
        def slope(time, state):
            q, p = state
            return [p, -omega * omega * q - gamma * p + drive * math.cos(1.3 * time)]

        state = list(x)
        for step in range(6):
            state = runge_kutta(slope, state, t + 0.1 * step, 0.1)
        return state[0] ** 2 + state[1] ** 2

    return displacement


@program(x0=real(-1.0, 1.0), quartic=flag())
def anharmonic_well(a, b):
    def final_energy(x0, quartic):
        def force(x):
            return a * x - b * x**3 if quartic else -a * x

        x, v = verlet(x0, 0.1, force, 0.05, 10)
        return 0.5 * v**2 + (b * x**4 / 4 - a * x**2 / 2 if quartic else a * x**2 / 2)

    return final_energy


@program(u=reals(12))
def heat_on_a_rod(diffusivity, leak):
    def remaining(u):
        for _ in range(5):
            inner = [
                u[k] + 0.2 * diffusivity * (u[k - 1] - 2 * u[k] + u[k + 1]) - 0.1 * leak * u[k]
                for k in range(1, len(u) - 1)
            ]
            u = [u[0], *inner, u[-1]]
        return sum(x * x for x in u) / len(u)

    return remaining


@program(u=array(10), source=array(10, lo=0.0, hi=1.0))
def heat_with_arrays(alpha, power):
    def mean_temperature(u, source):
        for _ in range(4):
            lap = np.roll(u, 1) + np.roll(u, -1) - 2 * u
            u = u + 0.1 * alpha * lap + 0.05 * power * source
        return sum(u) / len(u)

    return mean_temperature


@program(grid=matrix(5, 5))
def laplace_by_relaxation(boundary, weight):
    def residual(grid):
        u = [[v for v in row] for row in grid]
        for i in range(5):
            u[i][0] = boundary
        for _ in range(3):
            for i in range(1, 4):
                for j in range(1, 4):
                    around = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]
                    u[i][j] = (1 - weight) * u[i][j] + weight * around / 4
        return sum((u[i][j] - u[i][j - 1]) ** 2 for i in range(5) for j in range(1, 5))

    return residual


@program(psi=reals(9, 0.1, 1.0))
def variational_energy(stiffness, depth):
    def rayleigh_quotient(psi):
        h = 0.5
        norm = sum(p * p for p in psi)
        kinetic_part = sum((q - p) ** 2 for p, q in zip(psi, psi[1:])) / (2 * h * h)
        potential = sum((0.5 * stiffness * ((k - 4) * h) ** 2 - depth) * p * p for k, p in enumerate(psi))
        return (kinetic_part + potential) / norm

    return rayleigh_quotient


@program(spins=choice(*[tuple(1 if (n >> k) & 1 else -1 for k in range(6)) for n in (3, 21, 44, 63)]), hot=flag())
def ising_energy(coupling, field):
    def energy(spins, hot):
        bonds = sum(a * b for a, b in zip(spins, spins[1:] + spins[:1]))
        e = -coupling * bonds - field * sum(spins)
        return (-e).exp() if hot else e

    return energy


@program(temperature=real(0.5, 3.0), levels=reals(6, 0.0, 2.0))
def partition_function(gap, degeneracy):
    def free_energy(temperature, levels):
        beta = 1.0 / temperature
        terms = [degeneracy ** (k % 2) * (-beta * (e + gap * k)).exp() for k, e in enumerate(levels)]
        return -temperature * sum(terms).log()

    return free_energy


@program(wavelength=real(0.4, 0.7), angle=real(0.0, 0.5), polarisation=text("s", "p"))
def fresnel_reflection(index, thickness):
    def reflectance(wavelength, angle, polarisation):
        n = 1.0 + index
        cos_in = math.cos(angle)
        cos_out = (1 - (math.sin(angle) / n) ** 2).sqrt()
        if polarisation == "s":
            r = (cos_in - n * cos_out) / (cos_in + n * cos_out)
        else:
            r = (n * cos_in - cos_out) / (n * cos_in + cos_out)
        phase = 4 * math.pi * n * thickness * cos_out / wavelength
        return 2 * r * r * (1 - phase.cos()) / (1 + r**4 - 2 * r * r * phase.cos())

    return reflectance


@program(ray=pair(real(-0.3, 0.3), real(-0.1, 0.1)), distances=reals(3, 0.5, 2.0))
def rays_through_lenses(f1, f2, f3):
    lenses = [f1, f2, f3]

    def spot(ray, distances):
        def through(state, step):
            height, slope = state
            distance, focal = step
            height = height + distance * slope
            return height, slope - height / (1.0 + focal)

        height, slope = reduce(through, zip(distances, lenses), ray)
        return height**2 + 0.1 * slope**2

    return spot


@program(state=record(p=real(0.5, 2.0), v=real(0.5, 2.0), t=real(1.0, 3.0)), gas=text("ideal", "van der waals"))
def equation_of_state(a, b):
    def mismatch(state, gas):
        p, v, t = state["p"], state["v"], state["t"]
        if gas == "ideal":
            return (p * v - t * a) ** 2
        return ((p + a / v**2) * (v + 0.1 * b) - t) ** 2

    return mismatch


@program(bodies=matrix(3, 3, 0.1, 1.0))
def bodies_as_named_tuples(k, rest):
    def total_energy(bodies):
        chain = [Body(*row) for row in bodies]
        moving = sum(kinetic(body.mass, body.v) for body in chain)
        pulled = 0.0
        for left, right in zip(chain, chain[1:]):
            pulled = pulled + 0.5 * k * (right.x - left.x - rest) ** 2
        return moving + pulled

    return total_energy


@program(v=real(0.0, 0.9), dt=real(0.1, 2.0))
def relativistic_clock(c, tau):
    def proper_time(v, dt):
        beta = v / (1.0 + c)
        gamma = 1 / (1 - beta**2).sqrt()
        return dt / gamma * (-dt / (gamma * tau)).exp()

    return proper_time


@program(speed=real(0.0, 30.0), surface=text("dry", "wet", "ice"))
def braking_distance(grip, reaction):
    friction = {"dry": 0.8, "wet": 0.5, "ice": 0.1}

    def distance(speed, surface):
        if speed < 0.5:
            return 0.0 * grip
        mu = friction[surface] * grip
        rolled = reaction * speed + speed**2 / (2 * mu * G)
        return rolled if speed < 20 else rolled * 1.1

    return distance


@program(
    charges=reals(5),
    places=reals(5, -2.0, 2.0),
    at=real(-0.5, 0.5),
    engine="its numbers take it along more than 32 paths",
)
def coulomb_in_one_dimension(k, screening):
    def field(charges, places, at):
        total = k * 0.0
        for q, x in zip(charges, places):
            r = at - x
            if abs(r) < 0.05:
                continue
            side = 1.0 if r > 0 else -1.0
            total += side * k * q * (-screening * abs(r)).exp() / (r * r)
        return total

    return field


@program(u=reals(10), v=reals(10))
def wave_on_a_string(tension, density):
    def energy(u, v):
        c2 = tension / (1.0 + density)
        u, v = list(u), list(v)
        for _ in range(4):
            for k in range(1, 9):
                v[k] = v[k] + 0.1 * c2 * (u[k - 1] - 2 * u[k] + u[k + 1])
            for k in range(1, 9):
                u[k] += 0.1 * v[k]
        return 0.5 * sum(x**2 for x in v) + 0.5 * c2 * sum((a - b) ** 2 for a, b in zip(u[1:], u))

    return energy


@program(u=array(6, 6))
def wave_equation_in_the_plane(c, damping):
    def after(u):
        before = u
        for _ in range(3):
            lap = np.zeros((6, 6), dtype=object)
            lap[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
            u, before = (2 - 0.1 * damping) * u - (1 - 0.1 * damping) * before + 0.05 * c * lap, u
        return (u**2).sum()

    return after


@program(state=reals(4, -0.5, 0.5))
def double_pendulum_energy(m1, m2, l1):
    def hamiltonian(state):
        a1, a2, w1, w2 = state
        t = 0.5 * (m1 + m2) * l1**2 * w1**2 + 0.5 * m2 * w2**2 + m2 * l1 * w1 * w2 * math.cos(a1 - a2)
        return t - (m1 + m2) * G * l1 * math.cos(a1) - m2 * G * math.cos(a2)

    return hamiltonian


@program(n=whole(0, 3), l_=whole(0, 2), r=real(0.3, 3.0))
def radial_wave_function(charge, scale):
    def density(n, l_, r):
        rho = charge * r / (1 + scale)
        laguerre = {0: 1.0, 1: 2 - rho, 2: 6 - 6 * rho + rho * rho}.get(n, 1.0 - rho / 2)
        return (rho**l_ * (-rho / 2).exp() * laguerre) ** 2

    return density


@program(u=reals(8, 0.1, 1.0))
def burgers_upwind(viscosity, speed):
    def dissipation(u):
        for _ in range(4):
            new = []
            for k, here in enumerate(u):
                left, right = u[k - 1], u[(k + 1) % len(u)]
                flux = here - left if speed * here > 0 else right - here
                new.append(here - 0.1 * speed * here * flux + 0.05 * viscosity * (left - 2 * here + right))
            u = new
        return sum(x**2 for x in u)

    return dissipation


@program(bits=whole(0, 15), time=real(0.1, 1.0))
def rabi_pulses(rabi, detuning):
    def excited(bits, time):
        c, s = wengert.Value(1.0), wengert.Value(0.0)
        for k in range(4):
            omega = (rabi**2 + detuning**2).sqrt() if bits >> k & 1 else detuning
            angle = omega * time / 2
            c, s = c * angle.cos() - s * angle.sin(), c * angle.sin() + s * angle.cos()
        return s**2

    return excited


@program(layers=matrix(3, 2, 0.2, 1.5), inside=real(15.0, 25.0), outside=real(-10.0, 10.0))
def heat_loss_through_a_wall(area, draught):
    def loss(layers, inside, outside):
        resistance = sum(thickness / conductivity for thickness, conductivity in layers)
        flow = area * (inside - outside) / resistance
        return max(flow, 0.0 * flow) + draught * (inside - outside)

    return loss


@program(x=real(-1.0, 1.0), order=whole(0, 5))
def hermite_oscillator(width, tilt):
    def psi(x, order):
        def hermite(n, y):
            if n == 0:
                return 1.0
            if n == 1:
                return 2 * y
            return 2 * y * hermite(n - 1, y) - 2 * (n - 1) * hermite(n - 2, y)

        y = x / width
        return hermite(order, y) * (-y * y / 2).exp() / math.sqrt(2**order * math.factorial(order)) + tilt

    return psi


@program(data=matrix(6, 2, 0.1, 2.0))
def fit_of_a_decay(amplitude, rate, background=real(0.0, 0.3)):
    def chi2(data):
        total = 0
        for t, y in data:
            model = amplitude * wengert.exp(-rate * t) + background
            error = 0.05 + 0.05 * abs(y)
            total += ((y - model) / error) ** 2
        return total / (len(data) - 3)

    return chi2


@program(path=matrix(6, 2))
def action_of_a_path(mass, strength):
    def action(path):
        dt = 0.2
        kinetic_part = sum(
            0.5 * mass * sum((b - a) ** 2 for a, b in zip(p, q)) / dt for p, q in zip(path[:-1], path[1:])
        )
        return kinetic_part - sum(strength * math.hypot(*p) * dt for p in path)

    return action


@program(position=reals(3, 0.5, 2.0), momentum=reals(3))
def cyclotron_boris_push(b, e, W=weights(3)):
    def energy(position, momentum):
        x, p = list(position), list(momentum)
        for _ in range(3):
            t = [0.05 * b * w for w in W]
            minus = [pi + 0.05 * e for pi in p]
            prime = [m + c for m, c in zip(minus, cross(minus, t))]
            scale = 2 / (1 + sum(ti * ti for ti in t))
            plus = [m + scale * c for m, c in zip(minus, cross(prime, t))]
            p = [pi + 0.05 * e for pi in plus]
            x = [xi + 0.1 * pi for xi, pi in zip(x, p)]
        return sum(pi * pi for pi in p) / 2 + x[0]

    return energy


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


@program(oscillator=choice(Oscillator(1.0, 2.0, 0.1), Oscillator(2.0, 1.0, 0.3)), x=real())
def an_oscillator_as_argument(stiffness):
    def force(oscillator, x):
        mine = replace(oscillator, stiffness=stiffness)
        return mine.acceleration(x, 0.5) + 0.1 * oscillator.acceleration(x, 0.0) * stiffness

    return force
