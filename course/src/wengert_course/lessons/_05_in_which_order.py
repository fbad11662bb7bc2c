# %% [markdown]
# # 5. In which order
#
# Five closures, five calls, written down by hand: `o`, `n`, `both`, `x2w2`, `x1w1`. **What if the order is wrong, and who
# writes it down for a graph of ten thousand nodes?**
#
# A node may pass its gradient on when it has got all of it, and not before. So it has to wait for every node that was made
# from it. An order in which each node stands behind everything it was made *from* is a **topological order**; walk it from
# its end, and each node comes after everything that was made from *it*.
#
# Such an order is easy to build. To put a node on the list: first put each of its operands there, by the same rule; then the
# node itself. And whoever is there already is not put there again.
#
# ## Your turn
#
# Write `backward()`. It makes the list, sets the gradient of the result to 1, and calls each `_backward` once, from the end
# of the list to its beginning. The rest of the class is yours, from lesson 4.

# %%
from wengert import course, draw, steps


@course.go_on(4)
class Value:
    """What lesson 5 adds to it."""

    # YOUR CODE HERE: backward
    ### BEGIN SOLUTION
    def backward(self):
        order = []
        visited = set()

        def put(node):
            if node not in visited:
                visited.add(node)
                for operand in node._prev:
                    put(operand)
                order.append(node)

        put(self)
        self.grad = 1.0
        for node in reversed(order):
            node._backward()

    ### END SOLUTION


# %% tags=["unchecked"]
course.check(Value, step=5)

# %%
x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
b = Value(6.8813735870195432, label="b")
n = x1 * w1 + x2 * w2 + b
n.label = "n"
o = n.tanh()
o.label = "o"
o.backward()
draw(o)

# %% [markdown]
# One call. And this plays it, node by node, in the order that a right `backward()` takes:

# %%
steps(o)

# %% [markdown]
# ## The mistake that everybody makes
#
# `reversed` is forgotten, and the walk begins at the leaves. They have nothing to pass on yet, and pass on that:


# %%
def from_the_leaves(root):
    order, visited = [], set()

    def put(node):
        if node not in visited:
            visited.add(node)
            for operand in node._prev:
                put(operand)
            order.append(node)

    put(root)
    root.grad = 1.0
    for node in order:  # reversed(order)
        node._backward()


x = Value(3.0, label="x")
y = x.tanh().tanh().tanh()
y.label = "y"
from_the_leaves(y)
print("x.grad is", x.grad)
draw(y)

# %% [markdown]
# Only the last step had something to pass on when its turn came. `x.grad` is 0, and 0 looks like a result: as if $x$ had no
# part in $y$. The picture knows better: nothing has arrived there. If gradients are 0 everywhere but near the end, look at
# the order.
#
# The other shortcut is to do without a list: call your own `_backward`, then `backward` of each operand. It is right on
# every chain and on every tree. But where a result is used twice, all that is below it is walked twice.

# %%
calls = []


def without_a_list(node):
    calls.append(node.label)
    node._backward()
    for operand in node._prev:
        without_a_list(operand)


s = Value(0.5, label="s0")
for k in range(1, 5):
    s = s + s
    s.label = f"s{k}"
s.grad = 1.0
without_a_list(s)
len(calls), "calls for 5 nodes"

# %% [markdown]
# Twice as many with each sum. Twenty sums in a row take two million calls; forty would take weeks.
#
# ## Exercises
#
# 1. Print the order for the neuron. Is it the only right one?
# 2. Take the set `visited` away. On which of the graphs above does that change the number of calls?
# 3. Make a chain of 2,000 sums and call `backward()`. What does Python say, and how would you walk without a function that
#    calls itself?
#
# ## A way on
#
# Try `a + a`: your engine says that the slope with respect to $a$ is 1. Nudge, and it is 2. In lesson 6 you find the
# one character that is missing.
