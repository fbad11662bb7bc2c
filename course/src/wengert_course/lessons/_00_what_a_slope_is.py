# %% [markdown]
# # 0. What a slope is
#
# Somewhere in a computer there is a number that says how wrong a program is. It depends on a million other numbers, and
# each of them is yours to turn, a little up or a little down. **Which way do you turn each one?**
#
# This course answers that. At its end stands an engine that you have written yourself, a network that learns with it, and
# a small model of language. You need school mathematics and a little Python. Each lesson takes a quarter of an hour, and
# has one gap for you to fill: look for `YOUR CODE HERE`.
#
# We begin with one number to turn.

# %%
from wengert import course


def f(x):
    return 3 * x**2 - 4 * x + 5


f(3.0)

# %% [markdown]
# At $x = 3$ the result is 20. If we move $x$ by a very little $h$, how much faster or slower than $x$ does the result
# move? That factor is the **slope** of $f$ at $x$, and there is no need for calculus to find it. Try it: move, look at how
# far the result has moved, and divide by how far you have moved.
#
# $$\text{slope} \approx \frac{f(x + h) - f(x)}{h}$$
#
# With several inputs there are several slopes: one for each, where that input alone is moved and the others stay where
# they are.
#
# ## Your turn
#
# Write two functions. `slope(f, x)` gives the slope of a function of one number. `slopes(f, xs)` gives a list, with the
# slope of `f(*xs)` with respect to each of the inputs. Take `h = 0.0001`.

# %%
h = 0.0001


# YOUR CODE HERE: slope(f, x)
### BEGIN SOLUTION
def slope(f, x):
    return (f(x + h) - f(x)) / h


### END SOLUTION
# YOUR CODE HERE: slopes(f, xs)
### BEGIN SOLUTION
def slopes(f, xs):
    found = []
    for i in range(len(xs)):
        moved = list(xs)
        moved[i] += h
        found.append((f(*moved) - f(*xs)) / h)
    return found


### END SOLUTION

# %% [markdown]
# The check calls your functions with others than ours, on numbers that are new each time. It says what is right, what is
# wrong, and what is still to do.

# %% tags=["unchecked"]
course.check(globals(), step=0)

# %% [markdown]
# Now look. The slope of $3x^2 - 4x + 5$ is $6x - 4$ by the rules of school, which is 14 at $x = 3$:

# %%
slope(f, 3.0)

# %% [markdown]
# And here are three inputs. The result is 4. Before you run the cell, say which of the three slopes is below zero.


# %%
def d(a, b, c):
    return a * b + c


d(2.0, -3.0, 10.0), [round(by, 4) for by in slopes(d, [2.0, -3.0, 10.0])]

# %% [markdown]
# - With respect to $a$ it is $-3$, which is $b$: where $a$ grows by $h$, the product grows by $h b$, and $b$ is negative.
# - With respect to $b$ it is $2$, which is $a$.
# - With respect to $c$ it is $1$: what is added goes through as it is.
#
# So to make the result larger you would turn $a$ down, $b$ up, and $c$ up. That is the whole idea of learning. What is
# left is to do it for a million numbers, quickly.
#
# ## The mistake that everybody makes
#
# "If a small $h$ is good, then a very small one is better." Watch the slope, which is 14:

# %%
for k in (1, 2, 4, 6, 8, 10, 12, 14, 16):
    print(f"h = 1e-{k:<3} slope {(f(3.0 + 10**-k) - f(3.0)) / 10**-k:.10f}")

# %% [markdown]
# It becomes better, down to about `1e-8`, and then it becomes worse. At `1e-16` it is 0, which is nonsense: a float holds
# some 16 digits, and `3.0 + 1e-16` is `3.0` again. In between, `f(x + h)` and `f(x)` agree in nearly all their digits, and
# what is left of their difference is rounding. A slope found by nudging is never exact, whatever $h$ you take.
#
# There is a second trouble, and it is the larger one. Each slope costs another run of the function. A million inputs take
# a million runs, for one step of learning.
#
# ## Exercises
#
# 1. Nudge both ways: $(f(x + h) - f(x - h)) / 2h$. How many more digits are right at `h = 1e-4`?
# 2. Find an $x$ at which the slope of $f$ is 0. What is special about $f$ there?
# 3. What does `slope(abs, 0.0)` give? And with `h = -0.0001`? Which one would you trust?
#
# ## A way on
#
# Nudging asks the result from outside. What if every number knew how it was made? Then it could tell. In lesson 1 you
# write such a number.
