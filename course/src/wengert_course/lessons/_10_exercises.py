# %% [markdown]
# # 10. Exercises
#
# These are the classic exercises for anyone who has built an engine. **Can you do each of them on less than a screen?**
# Four gaps are yours; what stands around them is there to be read and run.
#
# ## log, sigmoid, @
#
# Two more methods join your class, from lesson 7.

# %%
import math
import random

from wengert import course, draw, steps


@course.go_on(7)
class Value:
    def log(self):
        out = Value(math.log(self.data), (self,), "log")

        def _backward():
            self.grad += 1 / self.data * out.grad

        out._backward = _backward
        return out

    def sigmoid(self):
        s = 0.5 * (1 + math.tanh(0.5 * self.data))  # 1 / (1 + e^-x)
        out = Value(s, (self,), "sigmoid")

        def _backward():
            self.grad += s * (1 - s) * out.grad

        out._backward = _backward
        return out


# %% tags=["unchecked"]
course.check(Value, step=7)

# %% [markdown]
# `@` is the product of two matrices: each row of the left one meets each column of the right one. Of lists of rows, `zip(*B)`
# gives the columns.


# %%
# YOUR CODE HERE: matmul(A, B), of two lists of rows
### BEGIN SOLUTION
def matmul(A, B):
    def dot(row, column):
        return sum((a * b for a, b in zip(row, column)), Value(0.0))

    return [[dot(row, column) for column in zip(*B)] for row in A]


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=10)


# %%
class Matrix:
    def __init__(self, rows):
        self.rows = rows

    def __matmul__(self, other):
        return Matrix(matmul(self.rows, other.rows))


W = Matrix([[Value(1.0, label="w11"), Value(2.0, label="w12")]])
x = Matrix([[Value(3.0, label="x1")], [Value(-1.0, label="x2")]])
out = (W @ x).rows[0][0]
out.backward()
draw(out)

# %% [markdown]
# ## Softmax and cross-entropy
#
# A network is to choose between classes. It gives one number for each, a *logit*, and `softmax` makes probabilities of
# them: $p_i = e^{z_i} / \sum_j e^{z_j}$. How surprised is it by the right answer, $k$? By $-\log p_k$, the *cross-entropy*:
# 0 where it was sure, and the larger the less it expected it.


# %%
# YOUR CODE HERE: softmax(zs), of a list of Values
### BEGIN SOLUTION
def softmax(zs):
    exps = [z.exp() for z in zs]
    total = sum(exps)
    return [e / total for e in exps]


### END SOLUTION
# YOUR CODE HERE: cross_entropy(zs, k)
### BEGIN SOLUTION
def cross_entropy(zs, k):
    return -softmax(zs)[k].log()


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=10)

# %%
zs = [Value(1.0, label="z0"), Value(0.5, label="z1"), Value(-1.0, label="z2")]
surprise = cross_entropy(zs, 0)
surprise.label = "surprise"
surprise.backward()
steps(surprise)

# %%
[round(z.grad, 6) for z in zs], [round(p.data, 6) for p in softmax(zs)]

# %% [markdown]
# Look at the gradients beside the probabilities. They are the same, but for the right class, where it is $p - 1$: each logit is
# pushed by how much probability it has and should not have.
#
# ## A spiral, by hand
#
# Three arms, wound around each other, and the loop of lesson 9. From here on `Value` is Wengert's, which does the same and is
# faster, and so is the network. One thing is added to the update, *momentum*: a step keeps nine tenths of the
# one before it, as a ball that rolls.

# %% tags=["unchecked"]
from wengert import Value, data
from wengert.nn import MLP

X, y = data.spiral(20, noise=0.05, seed=1)
model = MLP(2, [16, 3], "tanh", rng=random.Random(1))
parameters = model.parameters()
velocity = [0.0] * len(parameters)
losses = []
for _ in range(100):
    surprises = [cross_entropy(model([4 * x1, 4 * x2]), k) for (x1, x2), k in zip(X, y)]
    loss = sum(surprises, Value(0.0)) / len(X)
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for i, p in enumerate(parameters):
        velocity[i] = 0.9 * velocity[i] - 0.2 * p.grad
        p.data += velocity[i]
    losses.append(loss.data)


def chosen(x):
    logits = [z.data for z in model([4 * x[0], 4 * x[1]])]
    return logits.index(max(logits))


sum(chosen(x) == k for x, k in zip(X, y)), "of", len(X)

# %% tags=["unchecked"]
import matplotlib.pyplot as plt

plt.figure(figsize=(6, 3))
plt.plot(losses)
plt.xlabel("round")
plt.ylabel("mean surprise")
plt.show()
# %% [markdown]
# ## The same with `fit`

# %% tags=["unchecked"]
import matplotlib.pyplot as plt

from wengert import fit
from wengert.losses import cross_entropy as loss_of_one
from wengert.optim import Adam
from wengert.view.plots import plot_decision_boundary

X, y = data.spiral(100, seed=1)
model = MLP(2, [16, 16, 3], "tanh", rng=random.Random(1))
adam = Adam(model, lr=0.03)
history = fit(model, loss_of_one, X, y, adam, epochs=60, batch_size=30, seed=1, progress=False)
figure, axes = plt.subplots(figsize=(6, 4))
plot_decision_boundary(model, X, y, axes)
history.accuracy[-1]

# %% [markdown]
# ## Every operation, by nudging
#
# An engine is as right as its slopes. Wengert's operations stand in one table, and so one loop tries all of one or two
# numbers: each at a point where it has a slope, `backward()` beside lesson 0.

# %% tags=["unchecked"]
import wengert
from wengert.ops import TABLE


def nudged(f, xs, i, h=1e-6):
    up, down = list(xs), list(xs)
    up[i], down[i] = xs[i] + h, xs[i] - h
    return (f(*up) - f(*down)) / (2 * h)


worst = {}
for op in TABLE:
    f = getattr(wengert, op.name, None)
    if f is None or op.shapes or op.arity not in (1, 2) or op.name in ("stop_gradient", "polygamma"):
        continue
    xs = [1.3, 0.4] if op.name == "acosh" else [0.4, 1.3]
    xs = xs[: op.arity]
    leaves = [Value(x) for x in xs]
    f(*leaves).backward()
    off = [leaf.grad - nudged(f, xs, i) for i, leaf in enumerate(leaves)]
    worst[op.name] = max(map(abs, off))

len(worst), max(worst.items(), key=lambda item: item[1])

# %% [markdown]
# ## The same in PyTorch
#
# PyTorch writes it with other words: `requires_grad` for "this one gets a gradient", `grad_fn` for `_op`, and `.item()` for
# the number.

# %% tags=["unchecked"]
from importlib.util import find_spec


def neuron(x1, x2, w1, w2, b):
    return (x1 * w1 + x2 * w2 + b).tanh()


numbers = [2.0, 0.0, -3.0, 1.0, 6.8813735870195432]
leaves = [Value(number) for number in numbers]
o = neuron(*leaves)
o.backward()
print("here   ", round(o.data, 6), o._op, [round(leaf.grad, 6) for leaf in leaves])
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(x, dtype=torch.double, requires_grad=True) for x in numbers]
    out = neuron(*tensors)
    out.backward()
    gradients = [round(t.grad.item(), 6) for t in tensors]
    print("PyTorch", round(out.item(), 6), out.grad_fn.name(), gradients)
else:
    print("pip install torch, to see the same numbers once more")

# %% [markdown]
# ## A small Value of arrays
#
# Scalars are slower than arrays of numbers, since most of the time goes into the graph and not into the arithmetic. The same
# class over arrays of NumPy has one node for a thousand numbers. There is one new question: an array of
# shape `(3,)` that is added to one of shape `(2, 3)` is *broadcast*, used once for each row. What is used several times gets
# the **sum** of its gradients: lesson 6 again.
#
# `summed(gradient, shape)` gives a gradient back in the shape of the operand.

# %%
import numpy as np


# YOUR CODE HERE: summed(gradient, shape)
### BEGIN SOLUTION
def summed(gradient, shape):
    gradient = np.asarray(gradient)
    while gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=10)


# %%
class Array:
    def __init__(self, data, _prev=(), _op=""):
        self.data, self._prev, self._op = np.asarray(data, dtype=float), _prev, _op
        self.grad = np.zeros_like(self.data)
        self._backward = lambda: None

    def __add__(self, other):
        out = Array(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += summed(out.grad, self.data.shape)
            other.grad += summed(out.grad, other.data.shape)

        out._backward = _backward
        return out

    def __mul__(self, other):
        out = Array(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += summed(other.data * out.grad, self.data.shape)
            other.grad += summed(self.data * out.grad, other.data.shape)

        out._backward = _backward
        return out


rows = Array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
weights = Array([10.0, 20.0, 30.0])
product = rows * weights
product.grad = np.ones((2, 3))
product._backward()
weights.grad  # the sum of each column

# %% [markdown]
# ## The mistake that everybody makes
#
# A softmax that follows the formula to the letter. It is right until a logit is large, which a network that learns well
# will see to:

# %% tags=["unchecked"]
for size in (10.0, 100.0, 1000.0):
    zs = [Value(size), Value(0.0)]
    try:
        print(size, [p.data for p in softmax(zs)], cross_entropy(zs, 1).data)
    except (OverflowError, ValueError, wengert.errors.WengertError) as error:
        print(size, type(error).__name__, error)

# %% [markdown]
# Subtract the largest logit from all of them first. The probabilities stay the same, since top and bottom are divided by the
# same number, and no exponent is above 0. `wengert.log_softmax` goes one step further, and never makes a probability that has
# become 0.
#
# ## Exercises
#
# 1. Mend `softmax` so, and have `cross_entropy` keep its digits where $p_k$ is tiny.
# 2. Give `Array` a `sum()` and a `backward()`, and train a network of one layer with it.
# 3. Write a `dropout`: with a probability of one half, a number becomes 0. Which slope has it?
#
# ## A way on
#
# Two engines, yours and Wengert's, have run the same code. In lesson 11 you put them side by side.
