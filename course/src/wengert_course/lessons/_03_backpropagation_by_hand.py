# %% [markdown]
# # 3. Backpropagation by hand
#
# Lesson 0 ended with a complaint: to find the slope with respect to each of a million inputs, the program has to run a
# million times. **Is there a way to get all of them from one run?** There is. It takes one walk through the graph, from the
# result back to the leaves. In this lesson you are the one who walks.
#
# Your class from lesson 2 gets one more field, `grad`: room for the slope of the result with respect to this Value. That
# slope is called its **gradient** (books say *partial derivative*). It begins at 0.

# %%
import math

from wengert import course, draw, steps


@course.go_on(2)
class Value:
    def __init__(self, data, _children=(), _op="", label=""):
        self.data = data
        self.grad = 0.0
        self._prev = tuple(_children)
        self._op = _op
        self.label = label


a = Value(2.0, label="a")
b = Value(-3.0, label="b")
c = Value(10.0, label="c")
f = Value(-2.0, label="f")
e = a * b
e.label = "e"
d = e + c
d.label = "d"
L = d * f
L.label = "L"
draw(L)

# %% [markdown]
# Play it. Forward, each node computes its number. On the way back nothing happens yet: that is your job.

# %%
steps(L)

# %% [markdown]
# Begin at the end.
#
# - **$L$ itself.** Move $L$ by $h$ and $L$ moves by $h$. The slope is 1.
# - **A product, $L = d f$.** Move $d$ by $h$, and $L$ moves by $h f$. The slope with respect to one factor is the
#   *other* factor.
# - **A sum, $d = e + c$.** Move $e$ by $h$, and $d$ moves by $h$. The slope is 1, for both sides.
# - **The chain.** But we want the slope of $L$ with respect to $e$, not to $d$. If $d$ moves once as fast as $e$, and $L$
#   moves $-2$ times as fast as $d$, then $L$ moves $1 \cdot (-2)$ times as fast as $e$. Slopes along a way are multiplied:
#
# $$\frac{dL}{de} = \frac{dL}{dd} \cdot \frac{dd}{de}$$
#
# That is the **chain rule**, and in words: *the gradient of an operand is the gradient of the result, times the local
# slope.* You need nothing else.
#
# ## Your turn
#
# Write the seven gradients, from `L` down to `a` and `b`. You may write numbers, or let Python multiply: `d.grad = f.data *
# L.grad`.

# %%
# YOUR CODE HERE: L.grad, then those of d and f, of e and c, of a and b
### BEGIN SOLUTION
L.grad = 1.0
d.grad = f.data * L.grad
f.grad = d.data * L.grad
e.grad = 1.0 * d.grad
c.grad = 1.0 * d.grad
a.grad = b.data * e.grad
b.grad = a.data * e.grad
### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=3)

# %% [markdown]
# What is still to do is the neuron at the end of this lesson. Here is the graph with your numbers in it:

# %%
draw(L)

# %% [markdown]
# Do not believe it: nudge, as in lesson 0. Four runs, for what you have found in one walk.


# %%
def loss(a, b, c, f):
    return (a * b + c) * f


at = [2.0, -3.0, 10.0, -2.0]
for i, name in enumerate("abcf"):
    moved = list(at)
    moved[i] += 1e-6
    print(f"dL/d{name} = {(loss(*moved) - loss(*at)) / 1e-6:.4f}")

# %% [markdown]
# A gradient says which way to turn each leaf so that $L$ **grows**. Turn each a little that way and compute again: $L$
# was $-8$.

# %%
for leaf in (a, b, c, f):
    leaf.data += 0.01 * leaf.grad
((a * b + c) * f).data

# %% [markdown]
# ## A neuron
#
# A neuron multiplies each input by a weight, adds a bias, and squeezes the sum into $(-1, 1)$ by $\tanh$:
#
# $$n = x_1 w_1 + x_2 w_2 + b, \qquad o = \tanh(n)$$
#
# Of $\tanh$ you need its slope, $1 - \tanh(n)^2$, which is $1 - o^2$. The bias, here `bias`, was chosen so that it comes
# out well.

# %%
x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
bias = Value(6.8813735870195432, label="b")
x1w1 = x1 * w1
x1w1.label = "x1*w1"
x2w2 = x2 * w2
x2w2.label = "x2*w2"
both = x1w1 + x2w2
n = both + bias
n.label = "n"
o = Value(math.tanh(n.data), (n,), "tanh", label="o")
1 - o.data**2

# %%
# YOUR CODE HERE: o.grad, then n, bias, both, x1w1, x2w2, x1, w1, x2, w2
### BEGIN SOLUTION
o.grad = 1.0
n.grad = (1 - o.data**2) * o.grad
bias.grad = both.grad = n.grad
x1w1.grad = x2w2.grad = both.grad
x1.grad, w1.grad = w1.data * x1w1.grad, x1.data * x1w1.grad
x2.grad, w2.grad = w2.data * x2w2.grad, x2.data * x2w2.grad
### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=3)

# %%
draw(o)

# %% [markdown]
# Look at $w_2$. Its gradient is 0, because its input $x_2$ is 0: whatever the weight, it changes nothing. Now you know
# something about networks that many who train them do not.
#
# ## The mistake that everybody makes
#
# The local slope is taken for the whole one. "$e$ is $a$ times $b$, so the slope with respect to $a$ is $b$":

# %%
local = -3.0  # b: how fast e moves with a
through = 1.0 * -2.0  # how fast L moves with e
print("forgotten chain:", local, "   with it:", local * through)

# %% [markdown]
# $-3$ is how fast $e$ moves. $L$ moves $-2$ times as fast as $e$, so the slope is $6$: not only too small, but of the wrong
# sign. Whoever follows it turns $a$ the wrong way.
#
# ## Exercises
#
# 1. Before you run it: what happens to $L$ if the leaves move by `-= 0.01 * leaf.grad`?
# 2. Set $x_2$ to 0.5 and do the neuron again. Which gradients change, and which one is no longer 0?
# 3. By hand: $g = (a + b) \cdot (a + b)$ with $a = 2$, $b = -3$. Two ways lead from $g$ to $a$. What do you do with the two
#    numbers? (Nudge, if you are not sure. Lesson 6 is about this.)
#
# ## A way on
#
# You have done the same thing seven times: take the gradient of the result, multiply it by a local slope, give it to the
# operand. In lesson 4 each node does that by itself.
