# %% [markdown]
# # 4. The chain rule in a closure
#
# In lesson 3 you wrote one line for each number of a small neuron. A network has a hundred thousand of them. **Who writes
# those lines?**
#
# Nobody. Each line was the same: *gradient of the result, times local slope, into the operand*. The local slope depends on
# nothing but the operation and its operands, and there is one place where all three are at hand: inside `__add__` or
# `__mul__`, when the result is made. So the operation leaves a note there, a function that does this one step later, when
# the gradient of the result is known. A function that remembers the names around it is called a **closure**.
#
# ## Your turn
#
# `__add__` shows how it goes. Write `__mul__` and `tanh` in the same way. `tanh` has one operand; if `t` is the result, its
# local slope is $1 - t^2$.

# %%
import math

from wengert import course, draw, steps


@course.go_on(3)
class Value:
    def __init__(self, data, _children=(), _op="", label=""):
        self.data = data
        self.grad = 0.0
        self._backward = lambda: None  # a leaf has nothing to pass on
        self._prev = tuple(_children)
        self._op = _op
        self.label = label

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad = 1.0 * out.grad
            other.grad = 1.0 * out.grad

        out._backward = _backward
        return out

    # YOUR CODE HERE: __mul__, with its _backward
    ### BEGIN SOLUTION
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad = other.data * out.grad
            other.grad = self.data * out.grad

        out._backward = _backward
        return out

    ### END SOLUTION
    # YOUR CODE HERE: tanh, with its _backward
    ### BEGIN SOLUTION
    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad = (1 - t**2) * out.grad

        out._backward = _backward
        return out

    ### END SOLUTION


# %% tags=["unchecked"]
course.check(Value, step=4)

# %% [markdown]
# The check calls each `_backward` by itself, with some gradient in the result. Now the neuron of lesson 3 once more. You
# still say in which order, but no longer what is to be done:

# %%
x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
b = Value(6.8813735870195432, label="b")
x1w1, x2w2 = x1 * w1, x2 * w2
both = x1w1 + x2w2
n = both + b
n.label = "n"
o = n.tanh()
o.label = "o"

o.grad = 1.0
o._backward()  # n
n._backward()  # both, b
both._backward()  # x1w1, x2w2
x2w2._backward()  # x2, w2
x1w1._backward()  # x1, w1
draw(o)

# %%
steps(o)

# %% [markdown]
# The same numbers as by hand: $w_1$ has 1, $x_1$ has $-1.5$, and $w_2$ has 0.
#
# While you write a class, an operation without a closure is drawn dashed: there the gradient stops. Here is one that its
# author has not finished.


# %%
def double(x):
    return Value(2 * x.data, (x,), "double")


unfinished = double(Value(1.5, label="x").tanh())
unfinished.grad = 1.0
unfinished._backward()
draw(unfinished)

# %% [markdown]
# ## The mistake that everybody makes
#
# Two brackets. `out._backward = _backward` keeps the function for later. `out._backward = _backward()` calls it now, when
# there is no gradient yet, and keeps what it gives, which is nothing:


# %%
class Hasty(Value):
    def __mul__(self, other):
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad = other.data * out.grad
            other.grad = self.data * out.grad

        out._backward = _backward()
        return out


product = Hasty(2.0) * Hasty(-3.0)
product.grad = 1.0
try:
    product._backward()
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# And two brackets more. `1 - t**2 * out.grad` is not `(1 - t**2) * out.grad`. With `out.grad = 1` nobody can tell the two
# apart, and so the neuron above comes out right. Change it, and see:

# %%
t = math.tanh(0.5)
for above in (1.0, 0.5, 0.0):
    wrong, right = 1 - t**2 * above, (1 - t**2) * above
    print(f"out.grad = {above}: {wrong:.4f}, and should be {right:.4f}")

# %% [markdown]
# ## Exercises
#
# 1. Write `relu`: the number if it is above 0, else 0. What is its local slope on either side?
# 2. Leave out one of the five calls above. Which gradients are wrong then, and what does the picture say of them?
# 3. Why does `_backward` read `other.data` when it runs, and not when it is made? Change `w1.data` before
#    `x1w1._backward()`: of which function is that the gradient?
#
# ## A way on
#
# You called the closures in an order, and the order was right. In lesson 5 you find out what "right" is, and have the
# computer find it.
