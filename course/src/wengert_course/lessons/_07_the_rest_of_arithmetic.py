# %% [markdown]
# # 7. The rest of arithmetic
#
# `a + 3` works and `3 + a` does not. There is no minus, no quotient and no power. **How many closures do you still have to
# write, for a whole engine?** Fewer than you think: two.
#
# **Who is asked.** Where Python reads `3 + a`, it asks the 3 first, which does not know what a `Value` is. Then it asks the
# right side, by another method: `a.__radd__(3)`. And so with `*`, `-` and `/`: these are the *reflected* operators.
#
# **What can be said by others.** $-a$ is $a \cdot (-1)$, and $a - b$ is $a + (-b)$. And $a / b$ is $a \cdot b^{-1}$. What is
# made of operations that have a closure needs none of its own.
#
# **What is new.** A power, $a^n$ for a number $n$, with the slope $n a^{n-1}$. And $e^a$, which is its own slope.
#
# ## Your turn
#
# Two methods with a closure: `__pow__` (for `n` an int or a float) and `exp`. Seven without: `__neg__`, `__sub__`,
# `__truediv__`, and the reflected `__radd__`, `__rmul__`, `__rsub__`, `__rtruediv__`. Mind which operand is which in
# `__rsub__`: Python calls `a.__rsub__(3)` for `3 - a`.

# %%
import math

from wengert import course, draw, steps


@course.go_on(6)
class Value:
    """What lesson 7 adds to it."""

    # YOUR CODE HERE: __pow__ and exp, each with its closure
    ### BEGIN SOLUTION
    def __pow__(self, n):
        out = Value(self.data**n, (self,), f"**{n}")

        def _backward():
            self.grad += n * self.data ** (n - 1) * out.grad

        out._backward = _backward
        return out

    def exp(self):
        out = Value(math.exp(self.data), (self,), "exp")

        def _backward():
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    ### END SOLUTION
    # YOUR CODE HERE: __neg__, __sub__, __truediv__
    ### BEGIN SOLUTION
    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __truediv__(self, other):
        return self * other**-1

    ### END SOLUTION
    # YOUR CODE HERE: __radd__, __rmul__, __rsub__, __rtruediv__
    ### BEGIN SOLUTION
    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return (-self) + other

    def __rtruediv__(self, other):
        return self**-1 * other

    ### END SOLUTION


# %% tags=["unchecked"]
course.check(Value, step=7)

# %% [markdown]
# This is a finished engine. The check has tried it on random expressions, too. What it notes and does not count is true of
# nearly every engine of this kind.
#
# Now lesson 0 has become a line of your own. Its function had the slope 14 at $x = 3$, and here is no $h$:

# %%
x = Value(3.0, label="x")
y = 3 * x**2 - 4 * x + 5
y.label = "y"
y.backward()
y.data, x.grad

# %%
draw(y)

# %% [markdown]
# ## tanh taken apart
#
# Is $\tanh$ one operation, or several? It is
#
# $$\tanh n = \frac{e^{2n} - 1}{e^{2n} + 1}$$
#
# and you have all of that now. What counts is that each piece knows its own slope.

# %%
x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
b = Value(6.8813735870195432, label="b")
n = x1 * w1 + x2 * w2 + b
n.label = "n"
e = (2 * n).exp()
e.label = "e"
o = (e - 1) / (e + 1)
o.label = "o"
o.backward()
draw(o)

# %% [markdown]
# The same gradients as in lesson 4, by another way. An engine may have ten operations or a hundred.

# %%
steps(o)

# %% [markdown]
# ## The mistake that everybody makes
#
# In `__rsub__`, `self` stands on the **right**. Written as it sounds, it gives the other difference, and the same with `/`:


# %%
class Turned(Value):
    def __rsub__(self, other):
        return self - other  # should be other - self


3 - Turned(1.0)  # 2, and not -2

# %% [markdown]
# Nobody notices in `(3 - a)**2`. In `1 - p`, a probability becomes negative.
#
# And the formula above, which is right on paper, fails where $e^{2n}$ is too large for a float. `math.tanh` knows better:

# %%
try:
    big = (2 * Value(400.0)).exp()
    print((big - 1) / (big + 1))
except OverflowError as error:
    print("OverflowError:", error, "   and math.tanh(400.0) is", math.tanh(400.0))

# %% [markdown]
# ## Exercises
#
# 1. `relu`, `log` and `sigmoid`, each with its closure. (The check grades them if they are there; lesson 10 has them.)
# 2. `2**a`, with the number below: `__rpow__`. Which slope has $2^a$?
# 3. `a == b` compares whether both are the same object. Why would it be a bad idea to compare `data` instead? (The set in
#    `backward()` asks.)
#
# ## A way on
#
# Enough of single numbers. In lesson 8, forty-one of them become a network.
