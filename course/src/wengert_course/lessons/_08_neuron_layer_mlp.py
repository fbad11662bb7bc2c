# %% [markdown]
# # 8. Neuron, Layer, MLP
#
# You have an engine for single numbers. **How do you write down a function of forty-one numbers without naming them?**
#
# In three small classes, each a list of the one before:
#
# - A **neuron** has a weight for each input and a bias, all of them Values that begin at random between $-1$ and $1$. It
#   gives $\tanh(w_1 x_1 + w_2 x_2 + \dots + b)$.
# - A **layer** is some neurons that read the same inputs. It gives a list of what they give; of one neuron, that alone.
# - An **MLP**, a multi-layer perceptron, is some layers, each of which reads what the one before it gives.
#
# Each has a method `parameters()`, one flat list of all the Values that may be turned. The cell below takes up the
# engine that you finished in lesson 7.

# %%
import random

from wengert import course, draw, steps

Value = course.mine(7).Value

# %% [markdown]
# ## Your turn
#
# `Neuron(nin)`, `Layer(nin, nout)`, and `MLP(nin, nouts)`, where `nouts` is a list: `MLP(3, [4, 4, 1])` reads three numbers,
# has two layers of four neurons, and ends in one.
#
# Python's `sum` takes where to begin as its second argument: `sum(products, self.b)`.


# %%
# YOUR CODE HERE: class Neuron, with __init__, __call__ and parameters
### BEGIN SOLUTION
class Neuron:
    def __init__(self, nin):
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(random.uniform(-1, 1))

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.tanh()

    def parameters(self):
        return self.w + [self.b]


### END SOLUTION
# YOUR CODE HERE: class Layer, with __init__, __call__ and parameters
### BEGIN SOLUTION
class Layer:
    def __init__(self, nin, nout):
        self.neurons = [Neuron(nin) for _ in range(nout)]

    def __call__(self, x):
        outs = [neuron(x) for neuron in self.neurons]
        return outs[0] if len(outs) == 1 else outs

    def parameters(self):
        return [p for neuron in self.neurons for p in neuron.parameters()]


### END SOLUTION
# YOUR CODE HERE: class MLP, with __init__, __call__ and parameters
### BEGIN SOLUTION
class MLP:
    def __init__(self, nin, nouts):
        sizes = [nin] + nouts
        self.layers = [Layer(sizes[i], sizes[i + 1]) for i in range(len(nouts))]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=8)

# %% [markdown]
# Three inputs, and $4 (3 + 1) + 4 (4 + 1) + 1 (4 + 1)$ parameters:

# %%
random.seed(1337)
n = MLP(3, [4, 4, 1])
len(n.parameters())

# %% [markdown]
# What a network gives is a Value like any other, and knows where it came from. One neuron is small enough to be drawn whole:

# %%
neuron = Neuron(2)
for name, p in zip(["w1", "w2", "b"], neuron.parameters()):
    p.label = name
o = neuron([Value(2.0, label="x1"), Value(-1.0, label="x2")])
o.label = "o"
o.backward()
draw(o)

# %%
steps(o)

# %% [markdown]
# And this is all of the network at one point. A picture of more than sixty boxes is folded, here neuron by neuron; one call
# of `backward()` gives each of the 41 its gradient.

# %%
y = n([2.0, 3.0, -1.0])
y.label = "y"
y.backward()
draw(y)

# %%
sum(p.grad != 0 for p in n.parameters()), "of 41 have a gradient"

# %% [markdown]
# ## The mistake that everybody makes
#
# `[Neuron(nin)] * nout` is shorter than a loop. It makes **one** neuron and writes its name down `nout` times:


# %%
class Repeated(Layer):
    def __init__(self, nin, nout):
        self.neurons = [Neuron(nin)] * nout


layer = Repeated(3, 4)
different = {id(p) for p in layer.parameters()}
[round(out.data, 4) for out in layer([2.0, 3.0, -1.0])], len(different)

# %% [markdown]
# Four outputs, always the same, and four parameters where there should be sixteen. It runs, it even learns a little, and
# it is a network of one neuron.
#
# The other one is a list in a list: `return [self.w, self.b]` gives two things, of which the first is no `Value`. It shows
# only where `p.grad` is asked for.
#
# ## Exercises
#
# 1. How many parameters has `MLP(2, [16, 16, 1])`? Work it out before you ask.
# 2. Why random weights? Set all of them to 0.5, and look at the gradients of the neurons of a layer.
# 3. Let the last layer leave out its $\tanh$. What can the network give now that it could not before?
#
# ## A way on
#
# The network gives numbers, and they mean nothing. In lesson 9 it is told what they should be, and it learns.
