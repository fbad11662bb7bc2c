# %% [markdown]
# # 6. Used twice
#
# Your engine has been right so far, because we were careful: each number was used once. Here is the shortest program that
# is not careful. **How fast does `b` move with `a`?**
#
# ```python
# a = Value(3.0)
# b = a + a
# b.backward()
# a.grad        # 1.0
# ```
#
# Twice as fast, of course: both sides of the plus move. But the closure says `self.grad = out.grad`, and then `other.grad
# = out.grad`, and both are `a`. The second line writes over what the first one wrote.
#
# If several ways lead from the result to a number, its gradient is the **sum** over all of them. So a gradient is not set.
# It is added to.
#
# ## Your turn
#
# Write the three operations once more, such that gradients add up. It takes one character in each line.

# %%
import math

from wengert import course, draw, steps


@course.go_on(5, anew="__add__ __mul__ tanh")
class Value:
    """What lesson 6 changes in it."""

    # YOUR CODE HERE: __add__, __mul__, tanh, whose gradients add up
    ### BEGIN SOLUTION
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += 1.0 * out.grad
            other.grad += 1.0 * out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out

    ### END SOLUTION


# %% tags=["unchecked"]
course.check(Value, step=6)

# %%
a = Value(3.0, label="a")
b = a + a
b.label = "b"
b.backward()
draw(b)

# %% [markdown]
# A larger one: $f = d \cdot (a + b)$ where $d = a b$. Two ways lead from $f$ to $a$, and two to $b$. Step through it, and
# watch the last step: what arrives is added to what is there. The switch shows what `=` would have done.

# %%
a, b = Value(-2.0, label="a"), Value(3.0, label="b")
d = a * b
d.label = "d"
f = d * (a + b)
f.label = "f"
f.backward()
steps(f)

# %% [markdown]
# By the rules of school: $f = a b (a + b) = a^2 b + a b^2$, and so its slope with respect to $a$ is
# $2 a b + b^2 = -3$, and with respect to $b$ it is $a^2 + 2 a b = -8$.

# %%
(a.grad, b.grad), f.data

# %% [markdown]
# ## The mistake that everybody makes
#
# You have made it: it is lesson 5. Here is how it looks, in the same graph. Compare the boxes of $a$ and $b$.


# %%
class Overwriting(Value):
    def __add__(self, other):
        out = Overwriting(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad = out.grad
            other.grad = out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        out = Overwriting(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad = other.data * out.grad
            other.grad = self.data * out.grad

        out._backward = _backward
        return out


p, q = Overwriting(-2.0, label="a"), Overwriting(3.0, label="b")
r = p * q
r.label = "d"
g = r * (p + q)
g.label = "f"
g.backward()
draw(g)

# %% [markdown]
# $a$ has 3 or $-6$, and not their sum $-3$: what came last has won, and which comes last is an accident of the order. Play
# it, and watch the gradient of $a$ at the last step: the program calls the closures that you see above.

# %%
steps(g)

# %% [markdown]
# No error, no warning. A network trained with this learns something, only not what you asked.
#
# The price of adding up: a gradient that is not set to zero is still there when you come again.

# %%
x = Value(3.0, label="x")
seen = []
for _ in range(2):
    y = x * 2
    y.backward()
    seen.append(x.grad)
seen  # the slope is 2 both times

# %% [markdown]
# That is no fault of the engine. It is what you asked for: two passes, added up. But remember it in lesson 9.
#
# ## Exercises
#
# 1. Call `f.backward()` twice on the *same* `f`. Is `a.grad` twice what it was? Why not, and which gradients would have to be
#    set to zero before the second walk?
# 2. `x * x * x * x` at $x = 1.5$: how many ways lead from the result to `x`? What is the gradient?
# 3. Keep `_prev` as a set again, and try `a + a`. Is the gradient right? And the picture?
#
# ## A way on
#
# The engine is right now, for any graph. It is only a little poor: it has no minus, no quotient, no power. That is lesson 7,
# and most of it is free.
