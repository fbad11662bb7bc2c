# %% [markdown]
# # 11. Tensors
#
# Your engine is right. **How far does it carry?** A network of today has not forty-one parameters. Three things stand in the
# way: how deep a graph may be, how many digits are right, and how long it takes. We take them one after the other.

# %%
import random

from wengert import course, draw, steps

Own = course.mine(7).Value

# %% [markdown]
# ## A million nodes
#
# Your class of lesson 7, called `Own` here. `put` calls itself once for every node on the way, and Python ends that at a
# thousand or so:

# %%
x = Own(0.001)
y = x
for _ in range(5_000):
    y = y + x
try:
    y.backward()
except RecursionError as error:
    print("RecursionError:", error)

# %% [markdown]
# Wengert's walk is a loop. It is the same code, with another name for the class. Here are a million nodes; ten million need
# about a gigabyte.

# %%
import sys
import time

import wengert
from wengert import Value

# %% tags=["unchecked"]
# A browser's Python ends where a longer chain is given back.
n = 2_000 if sys.platform == "emscripten" else 1_000_000
x = Value(1e-7)
y = x
began = time.perf_counter()
for _ in range(n // 2):
    y = y * 1.0000001 + x
built = time.perf_counter()
y.backward()
done = time.perf_counter()
print(f"{n:,} nodes, built in {built - began:.1f} s, backward in {done - built:.1f} s")
print(f"dy/dx = {x.grad:.6g}")
del y

# %% [markdown]
# ## Digits
#
# The slope of $\tanh$ is $1 - t^2$, and that is how you wrote it. Where $t$ is nearly 1, the difference of two numbers that
# agree in most of their digits has only the others left:

# %%
for at in (1.0, 5.0, 10.0, 20.0):
    own, theirs = Own(at), Value(at)
    own.tanh().backward()
    theirs.tanh().backward()
    print(f"at {at:4}: own {own.grad:.15e}   wengert {theirs.grad:.15e}")

# %% [markdown]
# At 10, half of the digits of yours are wrong; at 20, all of them. The formula that loses nothing is $4 e^{-2x} / (1 +
# e^{-2x})^2$. Every operation of Wengert's is measured against sixty digits: none is off by more than four units in the last
# place of a float.
#
# ## Your turn: loops, and what becomes of them
#
# Write `loss(w, b, xs, ys)`, the mean of the squared errors of $w_0 x_0 + w_1 x_1 + \dots + b$ over some examples: `xs` is a
# list of rows, `ys` the targets. Write it as you would for one number at a time, with loops. Begin each sum at a number or at
# `b`, so that the function runs on whatever engine `w` and `b` are of.


# %%
# YOUR CODE HERE: loss(w, b, xs, ys)
### BEGIN SOLUTION
def loss(w, b, xs, ys):
    total = 0.0
    for x, y in zip(xs, ys):
        predicted = b
        for wi, xi in zip(w, x):
            predicted = predicted + wi * xi
        total = total + (predicted - y) ** 2
    return total / len(ys)


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=11)

# %% [markdown]
# Your loops ask for a plus, a product and a power, and not whose they are. So here they run on your own engine, for one
# example:

# %%
w, b = [Own(0.5, label="w0"), Own(-1.0, label="w1")], Own(0.25, label="b")
own = loss(w, b, [[1.0, 2.0]], [3.0])
own.label = "loss"
own.backward()
draw(own)

# %%
steps(own)

# %% [markdown]
# And here on Wengert's. The numbers are the same:

# %%
mine = own.data, [p.grad for p in [*w, b]]
w, b = [Value(0.5), Value(-1.0)], Value(0.25)
small = loss(w, b, [[1.0, 2.0]], [3.0])
small.backward()
mine, (small.data, [p.grad for p in [*w, b]])

# %% [markdown]
# ## The loops become matrices
#
# `wengert.compile` runs a function once, looks at the graph that it leaves, and finds the arrays in it: the same operation many
# times over, on numbers that lie side by side. Here is a layer and its loss for one example, in plain loops:

# %% tags=["unchecked"]
rng = random.Random(1)
W = [[Value(rng.uniform(-1, 1)) for _ in range(8)] for _ in range(16)]
V = [Value(rng.uniform(-1, 1)) for _ in range(16)]


@wengert.compile
def error(x, y):
    hidden = []
    for row in W:
        act = 0.0
        for wi, xi in zip(row, x):
            act = act + wi * xi
        hidden.append(act.tanh())
    predicted = 0.0
    for vi, hi in zip(V, hidden):
        predicted = predicted + vi * hi
    return (predicted - y) ** 2


X = [[rng.uniform(-1, 1) for _ in range(8)] for _ in range(2_000)]
Y = [rng.uniform(-1, 1) for _ in X]
compiled = error.mean(X, Y)
print(error.source())

# %% [markdown]
# Two loops have become `@`, the product of matrices, and what runs backward was made from it by the same rule as yours. It is
# compared with the scalar engine while it is used. The numbers are the same, and the time is not:

# %% tags=["unchecked"]
function = error.__wrapped__


def eager(X, Y):
    return sum((function(x, y) for x, y in zip(X, Y)), Value(0.0)) / len(X)


for p in [*V, *sum(W, [])]:
    p.grad = 0.0
began = time.perf_counter()
scalars = eager(X, Y)
scalars.backward()
by_scalars, gradient = time.perf_counter() - began, V[0].grad
V[0].grad = 0.0
began = time.perf_counter()
compiled = error.mean(X, Y)
compiled.backward()
by_arrays = time.perf_counter() - began
print(f"{scalars.data:.12f} {compiled.data:.12f}   {gradient:.12f} {V[0].grad:.12f}")
print(f"scalars {1000 * by_scalars:.0f} ms, arrays {1000 * by_arrays:.1f} ms")
print(f"{by_scalars / by_arrays:.0f} times as fast")

# %% [markdown]
# ## The mistake that everybody makes
#
# To be quick, somebody takes the numbers out of the Values "just for this line". The value is right. The gradient is gone, and
# nothing says so:


# %%
def cut(w, b, xs, ys):
    total = 0.0
    for x, y in zip(xs, ys):
        predicted = b.data + sum(wi.data * xi for wi, xi in zip(w, x))
        total += (predicted - y) ** 2
    return Value(total / len(ys))


for p in w:
    p.grad = 0.0
broken = cut(w, b, [[1.0, 2.0]], [3.0])
broken.backward()
broken.data, small.data, [p.grad for p in w]

# %% [markdown]
# ## Exercises
#
# 1. Walk without recursion: a stack of your own in `backward()`. Does your engine manage five thousand sums then?
# 2. Ask `error.report()`. How many scalar operations became how many of arrays?
# 3. Put an `if` on a Value's number into `error`. What does the report say?
#
# ## A way on
#
# The engine that you have made is Wengert in small: the same graph, the same order, the same sum over ways. You may use either
# from here on. In lesson 12, letters.
