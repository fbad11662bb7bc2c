"""A robot of seven joints draws a circle: its Jacobian a thousand times a second, and in C.

    pip install numpy llvmlite matplotlib
    python examples/engineers/robot.py [PICTURE.svg]

In each millisecond a step of damped least squares (Nakamura and Hanafusa 1986) moves the joints towards the place where
the flange should be. Printed is how long the pose and its Jacobian take, in a loop that sleeps until its next
millisecond, as a controller does. Then both are compiled by the system's C compiler, and compared.
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import wengert

JOINTS = [  # of Franka's arm, as in Craig (1989): a, d, and alpha in right angles
    (0.0, 0.333, 0),
    (0.0, 0.0, -1),
    (0.0, 0.316, 1),
    (0.0825, 0.0, 1),
    (-0.0825, 0.384, -1),
    (0.0, 0.0, 1),
    (0.088, 0.107, 1),
]
HOME = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])


def pose(q):
    """Where the flange is, and the direction in which it points."""
    x, y, z = np.eye(3).tolist()
    place = [0.0, 0.0, 0.0]
    for (a, d, turn), angle in zip(JOINTS, q):
        if turn:
            y, z = [turn * v for v in z], [-turn * v for v in y]
        c, s = wengert.cos(angle), wengert.sin(angle)
        place = [p + a * u for p, u in zip(place, x)]
        turned = [(c * u + s * v, c * v - s * u) for u, v in zip(x, y)]
        x, y = zip(*turned)
        place = [p + d * w for p, w in zip(place, z)]
    return np.array([*place, *z])


@wengert.compile(checks="first")
def kinematics(q):
    """The pose, and its Jacobian."""
    return pose(q), wengert.jacobian(pose)(q)


def circle(seconds):
    """Ten centimetres around a place in front of the robot, pointing down, once in two seconds."""
    angle = np.pi * seconds
    return np.array([0.307 + 0.1 * np.sin(angle), 0.1 - 0.1 * np.cos(angle), 0.59, 0.0, 0.0, -1.0])


def follow(ticks, pause=True):
    """Follow the circle; return errors in metres, and the seconds of each call."""
    q, damping = HOME.copy(), 1e-6 * np.eye(6)
    kinematics.prepare(q)
    errors, times, due = [], [], time.perf_counter()
    for tick in range(ticks):
        began = time.perf_counter()
        at, jacobian = kinematics(q)
        times.append(time.perf_counter() - began)
        error = circle(1e-3 * tick) - at
        damped = jacobian @ jacobian.T + damping
        q += jacobian.T @ np.linalg.solve(damped, error)
        errors.append(np.linalg.norm(error[:3]))
        due += 1e-3
        if pause:
            time.sleep(max(due - time.perf_counter(), 0.0))
    return np.array(errors), np.array(times)


def in_c(folder):
    """The same as a function of C."""
    source, library = Path(folder, "kinematics.c"), Path(folder, "kinematics.so")
    source.write_text(kinematics.source("c"))
    command = ["cc", "-O2", "-shared", "-fPIC", source, "-lm", "-o", library]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).kinematics
    function.argtypes = [np.ctypeslib.ndpointer(float, flags="C")] * 2

    def call(q):
        out = np.empty(6 + 6 * 7)
        assert function(q, out) == 0
        return out[:6], out[6:].reshape(6, 7)

    return call


def draw(picture, times):
    """The share of calls that take longer than a time."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(4.8, 3.2), layout="tight", facecolor="white").subplots()
    share = 1.0 - np.arange(len(times)) / len(times)
    axes.loglog(1e6 * np.sort(times), share, color="#0072b2", drawstyle="steps-post")
    axes.axvline(1e3, color="#d55e00")
    axes.text(900.0, 0.5, "a millisecond", ha="right", color="#d55e00")
    axes.set(xlabel="microseconds", ylabel="share of calls that take longer", xlim=(5.0, 2e3))
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(picture)


def main(pictures, ticks=5000):
    """Follow, print how long it took and draw."""
    errors, times = follow(ticks)
    median, tail, longest = 1e6 * np.quantile(times, [0.5, 0.999, 1.0])
    print(f"pose and Jacobian: median {median:.0f}, 99.9 % {tail:.0f}, longest {longest:.0f} microseconds")
    print(f"the flange is at most {1e3 * errors[10:].max():.2f} mm from where it should be")
    with tempfile.TemporaryDirectory() as folder:
        q = np.linspace(-1.0, 1.0, 7)
        apart = max(abs(a - b).max() for a, b in zip(in_c(folder)(q), kinematics(q)))
    print(f"C and Python differ by {apart:.0e}")
    for picture in pictures:
        draw(picture, times)


if __name__ == "__main__":
    main(sys.argv[1:])
