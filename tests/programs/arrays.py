"""Programs of people who think in arrays: NumPy around Values, from masks to einsum."""

from __future__ import annotations

import math

import numpy as np

import wengert
from tests.programs.kit import array, flag, indices, program, real, reals, text, weights, whole
from wengert import Value

rng = np.random.default_rng(5)
DESIGN = rng.normal(size=(6, 3))
TARGET = rng.normal(size=6)
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def one_hot(k, n):
    out = np.zeros(n)
    out[k] = 1.0
    return out


@program(x=array(3))
def exponentials_of_object_arrays(a, b, c):
    def f(x):
        z = np.array([a, b, c]) * x
        return np.exp(z).sum() + np.tanh(z).mean() + np.sqrt(np.array([a, b, c])).sum()

    return f


@program(x=array(3), y=real())
def logistic_regression(b, W=weights(3)):
    w = np.array(W)

    def loss(x, y):
        p = sigmoid(np.dot(w, x) + b)
        t = 1.0 if y > 0 else 0.0
        return -(t * np.log(p) + (1 - t) * np.log(1 - p))

    return loss


@program(scale=real(0.5, 2.0))
def data_in_the_module(w0, w1, w2):
    def loss(scale):
        residual = DESIGN @ np.array([w0, w1, w2]) * scale - TARGET
        return (residual**2).mean()

    return loss


@program(x=array(4, 3))
def broadcasting(w, b):
    def f(x):
        centred = x - x.mean(axis=0)
        scaled = centred / (1.0 + centred.std(axis=0))
        return (w * scaled**2 + b * x[:, :1]).sum()

    return f


@program(x=array(6), k=indices(3, lo=0, hi=5))
def fancy_indexing(w, v):
    def f(x, k):
        return w * x[k].sum() + v * (x[k] * x[k[0]]).sum()

    return f


@program(k=indices(2, lo=0, hi=3))
def rows_of_a_table(W=weights(4, 3)):
    table = np.array(W)

    def f(k):
        rows = table[k]
        return (rows[0] * rows[1]).sum() + rows.sum()

    return f


@program(x=array(4), engine="its numbers take it along more than 32 paths")
def boolean_masks(w, v):
    def f(x):
        return w * x[x > 0].sum() + v * (x < -0.5).sum()

    return f


@program(x=array(5), engine="its numbers take it along more than 32 paths")
def where_of_numpy(w, v):
    def f(x):
        return (np.where(x > 0, x, 0.1 * x) * w).sum() + v * np.maximum(x, 0.0).sum() + v * np.abs(x).max()

    return f


@program(x=array(6))
def views_and_shapes(w):
    def f(x):
        a = x.reshape(2, 3)
        return w * (a.T @ a)[0, 2] + w * a[::-1, 1:].sum() + w * a.ravel()[-1] + a.shape[1]

    return f


@program(x=array(3), y=array(3))
def outer_and_einsum(w, v):
    def f(x, y):
        table = np.outer(x, y)
        return w * np.einsum("ij,ij->", table, table) + v * np.einsum("i,i", x, y) + w * np.trace(table)

    return f


@program(x=array(7))
def differences_and_sums(w, v):
    def f(x):
        return w * (np.diff(x) ** 2).sum() + v * np.cumsum(x)[-1] + w * np.prod(1 + 0.1 * x)

    return f


@program(x=array(4), y=array(4))
def stacked(w, v):
    def f(x, y):
        both = np.concatenate([x, y])
        table = np.stack([x, y], axis=1)
        return w * (both**2).sum() + v * (table[:, 0] * table[:, 1]).sum() + w * np.vstack((x, y)).mean()

    return f


@program(x=array(5))
def the_place_of_the_largest(w, v):
    def f(x):
        k = int(np.argmax(x))
        return w * x[k] + v * k

    return f


@program(x=array(4), engine="the numbers are sorted: a path for each order")
def ranks(w, v):
    def f(x):
        order = np.argsort(x)
        return w * x[order[0]] + v * (np.sort(x) * np.arange(4)).sum()

    return f


@program(x=array(4), low=real(-0.9, -0.1), engine="its numbers take it along more than 32 paths")
def clipped(w, v):
    def f(x, low):
        return w * np.clip(x, low, 0.5).sum() + v * np.minimum(x, low).sum()

    return f


@program(x=array(3, 3), engine="NumPy's linear algebra takes floats alone")
def linear_algebra_of_numpy(w, v):
    def f(x):
        a = x @ x.T + np.eye(3)
        return w * np.linalg.det(a) + v * np.linalg.solve(a, np.ones(3)).sum()

    return f


@program(x=array(3), n=whole(0, 2))
def one_hot_targets(W=weights(3, 3)):
    def cross_entropy(x, n):
        logits = [wengert.dot(row, x) for row in W]
        p = wengert.softmax(logits)
        return -sum(t * q.log() for t, q in zip(one_hot(n, 3), p))

    return cross_entropy


@program(x=array(4), engine="float() takes the number out")
def a_graph_of_edges(k, rest):
    def energy(x):
        stretch = x[EDGES[:, 0]] - x[EDGES[:, 1]]
        return k * (stretch**2).sum() + rest * sum(abs(float(s)) > 0.5 for s in stretch)

    return energy


@program(x=array(2, 3), turn=flag())
def transposed_or_not(w):
    def f(x, turn):
        a = x.T if turn else x
        return w * a[0].sum() + w * len(a)

    return f


@program(x=array(lo=0.1, hi=2.0), y=array(), modes="call values")
def arrays_without_axes(w):
    def f(x, y):
        return w * np.log(x) + w * float(y) + (x * y).item()

    return f


@program(x=array(5), how=text("sum", "mean", "max"))
def reductions_by_name(w):
    def f(x, how):
        return w * getattr(np, how)(x) + w * getattr(x, how)()

    return f


@program(image=array(5, 5), stride=whole(1, 2))
def convolution_in_the_plane(b, K=weights(2, 2)):
    kernel = np.array(K)

    def f(image, stride):
        total = b * 0.0
        for i in range(0, 4, stride):
            for j in range(0, 4, stride):
                total = total + wengert.relu((image[i : i + 2, j : j + 2] * kernel).sum() + b)
        return total

    return f


@program(q=array(3, 2), k=array(3, 2))
def attention_with_arrays(scale, mix):
    def f(q, k):
        scores = scale * (q @ k.T) / math.sqrt(2)
        total = 0.0
        for row in scores:
            p = wengert.softmax(list(row))
            total = total + sum(a * mix * b for a, b in zip(p, k[:, 0]))
        return total

    return f


@program(x=array(4))
def an_own_array_filled_step_by_step(w, b):
    def f(x):
        h = np.empty(4, dtype=object)
        h[0] = b
        for t in range(1, 4):
            h[t] = np.tanh(w * h[t - 1] + x[t])
        h[1:] *= 2
        return (h**2).sum()

    return f


@program(x=array(3), n=whole(1, 3))
def vectorized(w, v):
    step = np.vectorize(lambda z, k: w * z + v * k, otypes=[object])

    def f(x, n):
        return step(x, n).sum()

    return f


@program(x=array(4, lo=0.2, hi=2.0), engine="NumPy sorts the numbers")
def statistics_of_numpy(w, v):
    def f(x):
        return w * np.var(x) + v * np.median(x) + w * np.percentile(x, 25) + v * np.log(x).mean()

    return f


@program(x=array(3), y=array(3), engine="arrays are compared number by number")
def equality_of_arrays(w, v):
    def f(x, y):
        if np.array_equal(x, y) or np.allclose(x, y):
            return w
        return v * (x == y).sum() + w * np.any(x > y) + v * np.all(x > -2)

    return f


@program(x=reals(4), dtype=text("float64", "float32"), engine="asarray of a type takes the numbers out")
def lists_made_into_arrays(w):
    def f(x, dtype):
        a = np.asarray(x, dtype=dtype)
        return w * a.astype(float).sum() + w * a.size

    return f


@program(x=array(6), n=whole(2, 3), static="n")
def split_into_parts(w):
    def f(x, n):
        return sum(w * part.sum() ** 2 for part in np.array_split(x, n)) + w * n

    return f


@program(depth=whole(1, 4), x=real(), static="depth")
def a_static_depth(w, b):
    def f(depth, x):
        h = x
        for _ in range(depth):
            h = wengert.tanh(w * h + b)
        return h * depth

    return f


@program(x=real(), shape=whole(1, 3), static="shape")
def made_of_values_inside(w):
    def f(x, shape):
        grid = np.full((shape, 2), w * x)
        ones = np.array([[Value(1.0)] * 2] * shape)
        return (grid * ones).sum() + np.ones(shape).sum()

    return f


@program(x=array(3), out=real(0.0, 1.0))
def functions_of_the_library(a, b):
    def f(x, out):
        u, v, t = (wengert.gelu(a * s) for s in x)
        soft = wengert.logsumexp([u, v, t]) + wengert.prod([a, b, u + 2])
        clipped = wengert.clip(b * x[0], -0.3, 0.3) + wengert.where(x[1] > 0, a, b)
        special = wengert.erf(a * out) + wengert.lgamma(1 + b) + wengert.digamma(1 + a) + wengert.normal_cdf(u)
        return soft + clipped + special + wengert.pick([a, b, u], 1) + wengert.hypot(a, x[2])

    return f
