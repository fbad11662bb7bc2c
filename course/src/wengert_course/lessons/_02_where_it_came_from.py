# %% [markdown]
# # 2. Where it came from
#
# Your `Value` from lesson 1 adds and multiplies. But ask it about itself: `d = a * b + c`, and then **which numbers have a
# part in `d`, and by which way?** It holds 4.0 and knows nothing else.
#
# Three things are missing, and all three are memory:
#
# - `_prev`: the Values that it was made from. For one that you typed in yourself, there are none.
# - `_op`: how it was made from them, as a text: `"+"` or `"*"`. Else it is `""`.
# - `label`: a name, for the eye.
#
# ## Your turn
#
# `course.go_on(1)` takes up your class from lesson 1: what you write below joins it, or takes the place of a method that it
# has. (If lesson 1 is not finished, it says how to go on with our class.) The constructor becomes
# `__init__(self, data, _children=(), _op="", label="")`, and the operators tell it what they know.

# %%
from wengert import course


@course.go_on(1)
class Value:
    """What lesson 2 adds to it."""

    # YOUR CODE HERE: __init__, which keeps data, _prev, _op and label
    ### BEGIN SOLUTION
    def __init__(self, data, _children=(), _op="", label=""):
        self.data = data
        self._prev = tuple(_children)
        self._op = _op
        self.label = label

    ### END SOLUTION
    # YOUR CODE HERE: __add__ and __mul__, which pass on operands and symbol
    ### BEGIN SOLUTION
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), "+")

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), "*")

    ### END SOLUTION


# %% tags=["unchecked"]
course.check(Value, step=2)

# %% [markdown]
# Now a number can be followed back to where it began. Here is an expression with a name for each of its steps:

# %%
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
L, L._op, L._prev

# %% [markdown]
# What was made from what is a **graph**, and it can be drawn. This is your own class in the picture; it knows nothing
# about the program that draws it, and does not need to.

# %%
from wengert import draw

draw(L)

# %% [markdown]
# Read it from the left. The blue boxes are **leaves**: numbers that were given. Each round node is an operation, and the
# box behind it is its result. Point at a box to see all of it. In a terminal there is `tree(L)`:

# %%
from wengert import tree

tree(L)

# %% [markdown]
# And this goes through the same graph one node at a time. Press the arrow at the right.

# %%
from wengert import steps

steps(L)

# %% [markdown]
# ## The mistake that everybody makes
#
# A sum that computes and does not pass on its operands is right in every number, and a dead end in the graph:


# %%
class Forgetful(Value):
    def __add__(self, other):
        return Value(self.data + other.data)  # (self, other), "+" is missing


forgetful = Forgetful(-6.0, label="e") + Forgetful(10.0, label="c")
lost = forgetful * f
lost.label = "L"
draw(lost)

# %% [markdown]
# $L$ is still 4 times -2. But the way back ends at a leaf that holds 4, and $a$, $b$ and $c$ will never hear of $L$.
#
# ## Exercises
#
# 1. Draw `a + a`. How many edges lead into the plus? If you keep `_prev` as a set, there is one Value in it: remember that
#    in lesson 6.
# 2. Write a function that counts the Values under `L`, each once. What does it say of `x = Value(1.0)`, doubled ten times by
#    `x = x + x`?
# 3. Make the constructor refuse a `data` that is no number, with a sentence that says what was expected.
#
# ## A way on
#
# The graph shows through which hands a change of $a$ has to go before it reaches $L$. In lesson 3 you follow it, by hand
# and backwards, and find all the slopes at once.
