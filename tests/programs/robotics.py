"""Programs of people who build robots: arms, vehicles, filters, planners, cameras."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

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

LINKS = [0.6, 0.4, 0.3]
LIMITS = {"speed": 1.2, "torque": 2.5, "battery": 12.0}
OBSTACLES = [(0.5, 0.5, 0.2), (-0.4, 0.3, 0.3), (0.1, -0.6, 0.15)]


class Mode(Enum):
    MANUAL = 1
    AUTO = 2
    RETURN = 3


class Pose(NamedTuple):
    x: object
    y: object
    heading: object


@dataclass
class PID:
    """A controller with a memory of its own, made anew in each call."""

    kp: object
    ki: object
    kd: object
    integral: object = 0.0
    last: object = 0.0
    history: list = field(default_factory=list)

    def __call__(self, error, dt):
        self.integral = self.integral + error * dt
        slope = (error - self.last) / dt
        self.last = error
        self.history.append(error)
        return self.kp * error + self.ki * self.integral + self.kd * slope


def clamp(x, low, high):
    return max(low, min(high, x))


def wrapped(angle):
    while angle > math.pi:
        angle -= 2 * math.pi
    while angle < -math.pi:
        angle += 2 * math.pi
    return angle


def rotation(angle):
    c, s = wengert.cos(angle), wengert.sin(angle)
    return [[c, -s], [s, c]]


def times(A, x):
    return [sum(a * b for a, b in zip(row, x)) for row in A]


@program(target=pair(real(), real()))
def planar_arm(q1, q2, q3):
    def miss(target):
        x = y = angle = 0.0
        for q, length in zip((q1, q2, q3), LINKS):
            angle = angle + q
            x = x + length * angle.cos()
            y = y + length * angle.sin()
        return (x - target[0]) ** 2 + (y - target[1]) ** 2

    return miss


@program(joints=reals(3, -1.5, 1.5), payload=real(0.0, 2.0))
def gravity_torques(m1, m2, m3):
    def effort(joints, payload):
        masses = [m1, m2, m3 + payload]
        angles = [sum(joints[: k + 1]) for k in range(3)]
        torques = []
        for k in range(3):
            reach, torque = 0.0, 0.0
            for j in range(k, 3):
                reach += LINKS[j] * math.cos(angles[j])
                torque = torque + 9.81 * masses[j] * reach
            torques.append(torque)
        return sum(t * t for t in torques)

    return effort


@program(setpoint=real(0.5, 2.0), start=real(-0.5, 0.5))
def pid_loop(kp, ki, kd):
    def tracking_error(setpoint, start):
        controller = PID(kp, ki, 0.1 * kd)
        x, cost = start, 0.0
        for _ in range(10):
            u = controller(setpoint - x, 0.1)
            x = x + 0.1 * (u - 0.5 * x)
            cost = cost + (setpoint - x) ** 2
        return cost + 0.01 * len(controller.history)

    return tracking_error


@program(z=reals(8), x0=real())
def kalman_filter(q, r):
    def negative_log_likelihood(z, x0):
        x, p, total = x0, 1.0, 0.0
        for measured in z:
            p = p + q
            s = p + r
            k = p / s
            innovation = measured - x
            total = total + 0.5 * (innovation**2 / s + s.log() + math.log(2 * math.pi))
            x = x + k * innovation
            p = (1 - k) * p
        return total

    return negative_log_likelihood


@program(commands=matrix(6, 2, -0.5, 1.0), start=record(x=real(), y=real(), heading=real(-3.0, 3.0)))
def unicycle_odometry(scale, slip):
    def final_distance(commands, start):
        pose = Pose(start["x"], start["y"], start["heading"])
        for v, w in commands:
            heading = pose.heading + 0.2 * slip * w
            pose = pose._replace(
                x=pose.x + 0.2 * scale * v * wengert.cos(heading),
                y=pose.y + 0.2 * scale * v * wengert.sin(heading),
                heading=heading,
            )
        return pose.x**2 + pose.y**2 + 0.1 * pose.heading

    return final_distance


@program(robot=pair(real(), real()), goal=pair(real(), real()))
def potential_field(attraction, repulsion):
    def cost(robot, goal):
        total = attraction * ((robot[0] - goal[0]) ** 2 + (robot[1] - goal[1]) ** 2)
        for ox, oy, radius in OBSTACLES:
            distance = math.hypot(robot[0] - ox, robot[1] - oy)
            if distance < radius + 0.4:
                total += repulsion * (1 / (distance + 0.05) - 1 / (radius + 0.45)) ** 2
        return total

    return cost


@program(angle=real(-9.0, 9.0), target=real(-3.0, 3.0))
def heading_controller(gain, rate):
    def command(angle, target):
        error = wrapped(target - angle)
        turn = gain * error
        if abs(error) < 0.1:
            turn = turn * rate
        return turn.tanh() * LIMITS["speed"]

    return command


@program(torque=real(-4.0, 4.0), speed=real(-2.0, 2.0))
def saturated_motor(k_t, resistance):
    def power(torque, speed):
        torque = clamp(torque, -LIMITS["torque"], LIMITS["torque"])
        current = torque / k_t
        voltage = clamp(current * resistance + k_t * speed, -LIMITS["battery"], LIMITS["battery"])
        return voltage * current + resistance * current**2

    return power


@program(points=matrix(5, 2), angle=real(-1.0, 1.0))
def scan_matching(dx, dy, turn):
    def misfit(points, angle):
        R = rotation(turn + angle)
        total = 0.0
        for point in points:
            x, y = times(R, point)
            x, y = x + dx, y + dy
            total += wengert.min([(x - ox) ** 2 + (y - oy) ** 2 for ox, oy, _ in OBSTACLES])
        return total / len(points)

    return misfit


@program(pixels=matrix(4, 2, -0.5, 0.5), depth=reals(4, 1.0, 4.0))
def camera_reprojection(focal, cx, cy, k1=real(-0.1, 0.1)):
    def error(pixels, depth):
        residuals = []
        for (u, v), z in zip(pixels, depth):
            x, y = (u - 0.1) / z, (v + 0.1) / z
            r2 = x * x + y * y
            distortion = 1 + k1 * r2 + 0.1 * k1 * r2**2
            residuals += [focal * x * distortion + cx - u, focal * y * distortion + cy - v]
        return sum(r * r if abs(r) < 1 else 2 * abs(r) - 1 for r in residuals)

    return error


@program(readings=reals(7, 0.0, 2.0), window=whole(2, 4))
def moving_average_filter(gain, bias):
    def smoothed(readings, window):
        recent = deque(maxlen=window)
        outputs = []
        for reading in readings:
            recent.append(gain * reading + bias)
            outputs.append(sum(recent) / len(recent))
        return outputs[-1] - outputs[0] + max(readings) * gain

    return smoothed


@program(mode=choice(*Mode), battery=real(0.0, 1.0), distance=real(0.0, 5.0))
def speed_by_mode(cruise, caution):
    def speed(mode, battery, distance):
        if mode is Mode.MANUAL:
            return cruise * 1.0
        if mode == Mode.RETURN or battery < 0.2:
            return cruise * caution * min(1.0, distance)
        return cruise * (1 - (-distance * caution).exp())

    return speed


@program(q=reals(4, -1.0, 1.0), v=reals(3))
def quaternion_rotation(weight, ax, ay):
    def aligned(q, v):
        norm = math.sqrt(sum(x * x for x in q)) or 1.0
        w, x, y, z = (c / norm for c in q)
        t = [2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])]
        turned = [
            v[0] + w * t[0] + (y * t[2] - z * t[1]),
            v[1] + w * t[1] + (z * t[0] - x * t[2]),
            v[2] + w * t[2] + (x * t[1] - y * t[0]),
        ]
        return weight * (turned[0] * ax + turned[1] * ay - turned[2]) ** 2

    return aligned


@program(x=array(4), u=reals(3))
def linear_quadratic_cost(q, r, A=weights(4, 4, low=-0.5, high=0.5), B=weights(4)):
    def cost(x, u):
        state, total = list(x), 0.0
        for control in u:
            total = total + q * wengert.dot(state, state) + r * control**2
            state = [s + b * control for s, b in zip(times(A, state), B)]
        return total + q * sum(s * s for s in state)

    return cost


@program(path=matrix(7, 2))
def smooth_path(smoothness, clearance):
    def cost(path):
        length = sum(math.dist(a, b) for a, b in zip(path, path[1:]))
        bend = sum(
            (a[0] - 2 * b[0] + c[0]) ** 2 + (a[1] - 2 * b[1] + c[1]) ** 2 for a, b, c in zip(path, path[1:], path[2:])
        )
        closest = min(math.dist(p, (ox, oy)) - r for p in path for ox, oy, r in OBSTACLES)
        penalty = clearance * (0.3 - closest) ** 2 if closest < 0.3 else 0.0
        return length + smoothness * bend + penalty

    return cost


@program(grid=wholes(12, 0, 1), reading=flag(), engine="its numbers take it along more than 32 paths")
def occupancy_log_odds(hit, miss):
    def belief(grid, reading):
        odds = 0.0
        for seen in grid:
            odds = odds + (hit.log() + 1.0 if seen == reading else -miss)
        return (1 / (1 + (-odds).exp())).log()

    return belief


@program(contact=reals(4, -0.1, 0.3), velocity=reals(4), engine="its numbers take it along more than 32 paths")
def leg_contact_forces(stiffness, damping, friction):
    def normal_work(contact, velocity):
        forces = []
        for depth, speed in zip(contact, velocity):
            forces.append(wengert.relu(stiffness * depth + 0.1 * damping * speed) if depth > 0 else 0.0)
        tangential = [friction * f for f in forces if f > 0]
        return sum(forces) + sum(t * t for t in tangential)

    return normal_work


@program(goal=pair(real(0.3, 1.0), real(0.0, 0.8)), elbow=text("up", "down"))
def inverse_kinematics(l1, l2):
    def joint_travel(goal, elbow):
        a, b = l1 + 0.6, l2 + 0.6
        d2 = goal[0] ** 2 + goal[1] ** 2
        cosine = (d2 - a * a - b * b) / (2 * a * b)
        if cosine > 1 or cosine < -1:
            return (cosine * cosine - 1) * 10 + a
        q2 = cosine.acos() if elbow == "down" else -cosine.acos()
        q1 = math.atan2(goal[1], goal[0]) - wengert.atan2(b * q2.sin(), a + b * q2.cos())
        return q1 * q1 + q2 * q2

    return joint_travel


@program(image=array(4, 4, lo=0.0, hi=1.0), row=whole(0, 3))
def line_follower(gain, offset):
    def steering(image, row):
        line = image[row]
        brightness = line.sum()
        centre = sum(k * b for k, b in enumerate(line)) / (brightness + 0.01)
        return (gain * (centre - 1.5) + offset).tanh()

    return steering


@program(steps=wholes(9, 0, 2), engine="its numbers take it along more than 32 paths")
def gait_table(stride, lift):
    table = {0: (1.0, 0.0), 1: (0.5, 1.0), 2: (-0.2, 0.3)}

    def effort(steps):
        x, total, last = 0.0, 0.0, None
        for step in steps:
            forward, up = table[step]
            x = x + stride * forward
            total = total + (lift * up) ** 2
            if last is not None and last == step:
                total = total + 0.1 * stride
            last = step
        return total + (x - 3) ** 2

    return effort
