"""Programs of geometers: polygons, curves, meshes, maps, colours, rays."""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from dataclasses import dataclass
from functools import cached_property, total_ordering

import wengert
from tests.programs.kit import (
    alias,
    array,
    choice,
    flag,
    indices,
    matrix,
    pair,
    program,
    real,
    reals,
    record,
    text,
    weights,
    whole,
)

Point = namedtuple("Point", ["x", "y"])
EARTH = 6.371
UNIT_SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
SCENE = [((0.0, 0.0, 3.0), 1.0), ((0.8, 0.2, 4.0), 0.7)]


@dataclass
class Triangle:
    a: object
    b: object
    c: object

    @cached_property
    def area(self):
        (ax, ay), (bx, by), (cx, cy) = self.a, self.b, self.c
        return abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay)) / 2

    @property
    def centroid(self):
        return [sum(v) / 3 for v in zip(self.a, self.b, self.c)]


class Matrix:
    """A matrix with the operators of one."""

    def __init__(self, rows):
        self.rows = [list(row) for row in rows]

    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return Matrix([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows])

    def __getitem__(self, place):
        i, j = place
        return self.rows[i][j]

    @classmethod
    def rotation(cls, angle):
        c, s = angle.cos(), angle.sin()
        return cls([[c, -s], [s, c]])

    @staticmethod
    def scaling(a, b):
        return Matrix([[a, 0.0], [0.0, b]])


@total_ordering
class Interval:
    def __init__(self, low, high):
        self.low, self.high = (low, high) if low <= high else (high, low)

    def __lt__(self, other):
        return self.low < other.low

    def __eq__(self, other):
        return isinstance(other, Interval) and self.low == other.low

    __hash__ = None

    def __contains__(self, x):
        return self.low <= x <= self.high

    def __len__(self):
        return 2


def shoelace(polygon):
    total = 0.0
    for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1]):
        total = total + x1 * y2 - x2 * y1
    return total / 2


def lerp(a, b, t):
    return [(1 - t) * p + t * q for p, q in zip(a, b)]


def de_casteljau(points, t):
    while len(points) > 1:
        points = [lerp(a, b, t) for a, b in zip(points, points[1:])]
    return points[0]


@program(polygon=matrix(6, 2))
def polygon_area(scale, shear):
    def area(polygon):
        moved = [(scale * x + shear * y, y) for x, y in polygon]
        return abs(shoelace(moved))

    return area


@program(polygon=matrix(5, 2))
def isoperimetric_ratio(scale, offset):
    def ratio(polygon):
        around = sum(math.hypot(a[0] - b[0], a[1] - b[1]) for a, b in zip(polygon, polygon[1:] + polygon[:1]))
        return scale * 4 * math.pi * abs(shoelace(polygon)) / around**2 + offset

    return ratio


@program(t=real(0.0, 1.0), end=pair(real(), real()))
def bezier_curve(x1, y1, x2, y2):
    def distance(t, end):
        points = [(0.0, 0.0), (x1, y1), (x2, y2), end]
        x, y = de_casteljau(points, t)
        return (x - 0.5) ** 2 + (y - 0.25) ** 2

    return distance


@program(vertices=matrix(3, 2))
def triangle_quality(weight, target):
    def quality(vertices):
        triangle = Triangle(*vertices)
        spread = sum(math.dist(v, triangle.centroid) ** 2 for v in vertices)
        return weight * (triangle.area - target) ** 2 + triangle.area / (spread + 0.1) * target

    return quality


@program(a=pair(real(), real()), b=alias("a", pair(real(), real())))
def segments_that_may_coincide(scale, bonus):
    def gap(a, b):
        if a is b:
            return bonus * 2
        if a == b:
            return bonus
        return scale * math.hypot(a[0] - b[0], a[1] - b[1])

    return gap


@program(angles=reals(3), point=reals(2))
def product_of_rotations(a, b, c):
    def image(angles, point):
        m = Matrix([[1.0, 0.0], [0.0, 1.0]])
        for angle, own in zip(angles, (a, b, c)):
            m = m @ Matrix.rotation(own + angle)
        m = Matrix.scaling(a, b) @ m
        return (m[0, 0] * point[0] + m[0, 1] * point[1]) ** 2 + m[1, 0] * point[0] + m[1, 1] * point[1]

    return image


@program(lat=pair(real(-1.0, 1.0), real(-1.0, 1.0)), lon=pair(real(-3.0, 3.0), real(-3.0, 3.0)))
def great_circle(radius, cost):
    def fare(lat, lon):
        d_lat, d_lon = lat[1] - lat[0], lon[1] - lon[0]
        h = math.sin(d_lat / 2) ** 2 + math.cos(lat[0]) * math.cos(lat[1]) * math.sin(d_lon / 2) ** 2
        return cost * 2 * EARTH * radius * math.asin(math.sqrt(min(1.0, h)))

    return fare


@program(x=real(-0.5, 1.5), y=real(-0.5, 1.5))
def inside_or_outside(reward, penalty):
    def score(x, y):
        inside = False
        for (x1, y1), (x2, y2) in zip(UNIT_SQUARE, UNIT_SQUARE[1:] + UNIT_SQUARE[:1]):
            if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
                inside = not inside
        return reward if inside else -penalty * (abs(x - 0.5) + abs(y - 0.5))

    return score


@program(direction=reals(3, 0.0, 0.4))
def ray_tracer(ambient, diffuse):
    def brightness(direction):
        dx, dy, dz = direction[0] - 0.2, direction[1] - 0.2, 1.0 + direction[2]
        n = math.sqrt(dx * dx + dy * dy + dz * dz)
        dx, dy, dz = dx / n, dy / n, dz / n
        nearest, colour = math.inf, ambient
        for (cx, cy, cz), radius in SCENE:
            b = dx * cx + dy * cy + dz * cz
            d = b * b - (cx * cx + cy * cy + cz * cz) + radius * radius
            if d <= 0:
                continue
            t = b - math.sqrt(d)
            if 0 < t < nearest:
                nearest = t
                normal_z = (t * dz - cz) / radius
                colour = ambient + diffuse * max(0.0, -normal_z)
        return colour

    return brightness


@program(rgb=reals(3, 0.0, 1.0), model=text("luma", "hsv", "gamma"))
def colour_models(r, g, b):
    def grey(rgb, model):
        red, green, blue = rgb
        if model == "luma":
            return r * red + g * green + b * blue
        if model == "hsv":
            return r * max(rgb) + g * (max(rgb) - min(rgb)) / (max(rgb) + 0.01)
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return r * linear[0] + g * linear[1] + b * linear[2]

    return grey


@program(points=array(6, 2), centre=array(2))
def moments_of_inertia(m, k):
    def inertia(points, centre):
        d = points - centre
        r2 = (d * d).sum(axis=1)
        xy = (d[:, 0] * d[:, 1]).sum()
        return m * r2.mean() + k * xy

    return inertia


@program(faces=choice(((0, 1, 2), (0, 2, 3)), ((1, 2, 3), (0, 1, 3))), vertices=matrix(4, 3))
def mesh_area(scale, edge):
    def area(faces, vertices):
        total = 0.0
        for i, j, k in faces:
            u = [b - a for a, b in zip(vertices[i], vertices[j])]
            v = [b - a for a, b in zip(vertices[i], vertices[k])]
            n = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
            total = total + scale * math.sqrt(sum(c * c for c in n)) / 2
        edges = {tuple(sorted(e)) for f in faces for e in itertools.combinations(f, 2)}
        return total + edge * len(edges)

    return area


@program(corners=indices(3, lo=0, hi=4))
def triangle_of_a_table(x=weights(5), y=weights(5)):
    def area(corners):
        a, b, c = corners
        return 0.5 * ((x[b] - x[a]) * (y[c] - y[a]) - (x[c] - x[a]) * (y[b] - y[a])) + 0.1 * x[a]

    return area


@program(i=whole(-3, 3), j=whole(-3, 3), t=real(0.0, 1.0))
def nodes_counted_from_the_end(nodes=weights(4, 2)):
    def between(i, j, t):
        (x1, y1), (x2, y2) = nodes[i], nodes[j]
        return ((1 - t) * x1 + t * x2) ** 2 + (1 - t) * y1 + t * y2

    return between


@program(bounds=pair(real(), real()), x=real())
def intervals_with_an_order(inside, outside):
    def cost(bounds, x):
        interval = Interval(*bounds)
        other = Interval(-0.2, 0.2)
        first = min(interval, other)
        if x in interval:
            return inside * (interval.high - interval.low) + first.low * inside
        return outside * min(abs(x - interval.low), abs(x - interval.high)) / len(interval)

    return cost


@program(control=reals(5), u=real(0.0, 3.999))
def uniform_spline(tension, lift):
    def height(control, u):
        k = int(u)
        t = u - k
        p = [control[max(0, min(4, k + d))] for d in (-1, 0, 1, 2)]
        m1, m2 = tension * (p[2] - p[0]) / 2, tension * (p[3] - p[1]) / 2
        h = (2 * t**3 - 3 * t**2 + 1, t**3 - 2 * t**2 + t, -2 * t**3 + 3 * t**2, t**3 - t**2)
        return h[0] * p[1] + h[1] * m1 + h[2] * p[2] + h[3] * m2 + lift

    return height


@program(z=pair(real(-0.5, 0.5), real(-0.5, 0.5)), depth=whole(3, 6))
def julia_set(cx, cy):
    def growth(z, depth):
        x, y = z
        for _ in range(depth):
            x, y = x * x - y * y + 0.2 * cx, 2 * x * y + 0.2 * cy
        return (x * x + y * y + 1).log()

    return growth


@program(circles=matrix(4, 3, 0.1, 1.0))
def circle_packing(pressure, radius):
    def overlap(circles):
        total = 0.0
        for (x1, y1, r1), (x2, y2, r2) in itertools.combinations(circles, 2):
            d = ((x1 - x2) ** 2 + (y1 - y2) ** 2 + 1e-6) ** 0.5
            total += wengert.softplus(8 * (radius * (r1 + r2) - d)) / 8
        return pressure * total

    return overlap


@program(p=record(at=pair(real(), real()), size=real(0.1, 1.0)), turn=flag())
def signed_distance_of_a_box(width, height):
    def distance(p, turn):
        x, y = map(abs, p["at"])
        w, h = (height, width) if turn else (width, height)
        dx, dy = x - p["size"] * w, y - p["size"] * h
        outside = (wengert.relu(dx) ** 2 + wengert.relu(dy) ** 2 + 1e-9).sqrt()
        return outside + wengert.minimum(wengert.maximum(dx, dy), 0.0)

    return distance


@program(point=reals(2), sides=whole(3, 6))
def regular_polygon_support(radius, turn):
    def support(point, sides):
        corners = [
            Point(radius * (turn + 2 * math.pi * k / sides).cos(), radius * (turn + 2 * math.pi * k / sides).sin())
            for k in range(sides)
        ]
        return wengert.max([c.x * point[0] + c.y * point[1] for c in corners])

    return support
