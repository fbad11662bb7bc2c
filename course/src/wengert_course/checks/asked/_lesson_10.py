"""What lesson 10 asks for: softmax, cross-entropy, a product of matrices, and a gradient over what was broadcast."""

import math


def matmul(own, draw):
    """matmul(A, B)

    the product of two matrices of Values, lists of rows
    """

    def product(a, b):
        return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]

    for rows, inner, columns in ((2, 2, 2), (1, 2, 1), (2, 3, 4), (3, 1, 2)):
        a = [draw.numbers(inner) for _ in range(rows)]
        b = [draw.numbers(columns) for _ in range(inner)]
        own.agrees("matmul(A, B)", product, [a, b])


def softmax(own, draw):
    """softmax(zs)

    a list of Values above 0 with the sum 1, of a list of Values
    """
    for n in (3, 2, 1, 5):
        own.agrees("softmax(zs)", probabilities, [draw.numbers(n)])


def cross_entropy(own, draw):
    """cross_entropy(zs, k)

    minus the logarithm of the softmax, at the class k
    """
    for n, k in ((3, 0), (3, 2), (2, 1), (5, draw.below(5))):
        right = lambda zs, k: -math.log(probabilities(zs)[k])  # noqa: E731  (one line of mathematics)
        own.agrees("cross_entropy(zs, k)", right, [draw.numbers(n)], [k])


def summed(own, draw):
    """summed(gradient, shape)

    a gradient, summed over what was broadcast to its shape
    """
    summed = own.summed  # it is not there yet, before NumPy is asked for
    import numpy

    for shape in ((3,), (2, 1), (1, 3), (2, 3), (1,), ()):
        gradient = numpy.array([draw.numbers(3) for _ in range(2)])
        wanted = gradient.sum(axis=tuple(range(2 - len(shape))))
        for axis, size in enumerate(shape):
            wanted = wanted.sum(axis=axis, keepdims=True) if size == 1 else wanted
        where = f"gradient = {gradient.tolist()} and shape = {shape}"
        own.same("summed(gradient, shape)", summed(gradient.copy(), shape), wanted.tolist(), where)


def probabilities(zs):
    exps = [math.exp(z) for z in zs]
    return [e / sum(exps) for e in exps]
