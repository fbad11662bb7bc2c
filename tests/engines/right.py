"""An engine without a slip: small, iterative, and right in any order of calls."""

import math


class Value:
    def __init__(self, data, operands=(), partials=()):
        self.data = data
        self.grad = 0.0
        self.operands = operands
        self.partials = partials

    def __add__(self, other):
        other = wrapped(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = wrapped(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, n):
        if self.data < 0 and n != int(n):
            raise ValueError(f"({self.data}) ** {n} is no real number")
        return Value(self.data**n, (self,), (n * self.data ** (n - 1),))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __truediv__(self, other):
        return self * other**-1

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return self**-1 * other

    def relu(self):
        return Value(max(self.data, 0.0), (self,), (float(self.data > 0),))

    def tanh(self):
        t = math.tanh(self.data)
        return Value(t, (self,), (1 - t * t,))

    def exp(self):
        e = math.exp(self.data)
        return Value(e, (self,), (e,))

    def log(self):
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def sigmoid(self):
        s = 0.5 * (1 + math.tanh(0.5 * self.data))
        return Value(s, (self,), (s * (1 - s),))

    def backward(self):
        order, visited, stack = [], set(), [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node not in visited:
                visited.add(node)
                stack.append((node, True))
                stack.extend((operand, False) for operand in node.operands)
        for node in order:
            if node.operands:
                node.grad = 0.0
        self.grad = 1.0
        for node in reversed(order):
            for operand, partial in zip(node.operands, node.partials):
                operand.grad += partial * node.grad


def wrapped(x):
    return x if isinstance(x, Value) else Value(x)
