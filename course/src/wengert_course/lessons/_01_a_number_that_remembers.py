# %% [markdown]
# # 1. A number that remembers
#
# Here is the result of a computation: `4.0`. **Where did it come from?** From $2 \cdot (-3) + 10$, or from $1 + 3$, or did
# somebody type it in? You cannot tell. A float has forgotten everything but its value, and so it can never say whose fault
# it is.

# %%
from wengert import course

2.0 * -3.0 + 10.0

# %% [markdown]
# We want numbers that remember, and these we have to make ourselves. In this lesson they learn to be numbers: to hold a
# value, to show it, to be added and multiplied. What they remember comes in the next.
#
# Python lets a class say what `+` means. Where it reads `a + b`, it calls `a.__add__(b)`, and where it reads `a * b`,
# `a.__mul__(b)`. At the end of a cell it asks `a.__repr__()` for a text to show.
#
# ## Your turn
#
# The constructor is there. Write the other three.
#
# - `__repr__` gives a text such as `Value(2.0)`.
# - `__add__` gives a **new** `Value`, which holds the sum. The two that were added stay as they are.
# - `__mul__` does the same for the product.
#
# And one thing more: in `a + 3` the other one is no `Value`. Make it one first.


# %%
class Value:
    def __init__(self, data):
        self.data = data

    # YOUR CODE HERE: __repr__
    ### BEGIN SOLUTION
    def __repr__(self):
        return f"Value({self.data})"

    ### END SOLUTION
    # YOUR CODE HERE: __add__
    ### BEGIN SOLUTION
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data)

    ### END SOLUTION
    # YOUR CODE HERE: __mul__
    ### BEGIN SOLUTION
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data)

    ### END SOLUTION


# %% tags=["unchecked"]
course.check(Value, step=1)

# %% [markdown]
# What passes is kept, in a file `mine.py`. Each of the next lessons takes it up: the engine that trains a language model at
# the end is the one that you have just begun.

# %%
a = Value(2.0)
b = Value(-3.0)
c = Value(10.0)
a * b + c

# %% [markdown]
# That is a formula as you would write it for floats, and what runs is your own code: Python turns it into
# `(a.__mul__(b)).__add__(c)`.
#
# ## The mistake that everybody makes
#
# Nothing says that `other` is a `Value`. Without the line that makes it one, sums of Values work, and a plain number ends
# in an error that names neither the sum nor the number:


# %%
class Trusting(Value):
    def __add__(self, other):
        return Value(self.data + other.data)


try:
    Trusting(2.0) + 3
except AttributeError as error:
    print("AttributeError:", error)

# %% [markdown]
# Its relative is quieter. To add "in place" looks thrifty, and spoils a number that others are still using:


# %%
class InPlace(Value):
    def __add__(self, other):
        self.data += other.data
        return self


x = InPlace(2.0)
y = x + InPlace(3.0)
x, y  # x was 2

# %% [markdown]
# ## Exercises
#
# 1. What does `3 + a` do? Read the last line of the error, and keep the question for lesson 7.
# 2. Have `__repr__` show four digits at most. The check still wants to find the number in it.
# 3. What happens with `Value("a") + Value("b")`? Should it?
#
# ## A way on
#
# Your number computes, and it forgets as a float does: `a * b + c` holds 4.0, and neither 2 nor -3 nor 10. In
# lesson 2 it keeps what it was made from, and draws it.
