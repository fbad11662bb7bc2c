# %% [markdown]
# # 9. Learning
#
# Here are four points, and what a network should say of each. Yours says something else, since its weights were drawn at
# random. **Which way do you turn forty-one numbers so that it comes closer, at all four points at once?**
#
# One number says how far off it is, the **loss**: the mean of $(\text{prediction} - \text{target})^2$ over the points. It is
# a Value, made from all 41 parameters, and you know how to get its slope with respect to each. Turn each a little the
# other way, since the loss is to *fall*. And again. A round of it has four parts:
#
# 1. **forward**: the predictions and the loss, anew, from the parameters as they are now
# 2. **zero**: the gradients of the last round go
# 3. **backward**
# 4. **update**: `p.data -= rate * p.grad`
#
# The cells below take up what you wrote in lessons 7 and 8, and give the points.

# %%
import random

from wengert import course

mine = course.mine(8)
Value, Neuron, Layer, MLP = mine.Value, mine.Neuron, mine.Layer, mine.MLP

# %%
xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
ys = [1.0, -1.0, -1.0, 1.0]

random.seed(9)
untaught = MLP(3, [4, 4, 1])
[round(untaught(x).data, 2) for x in xs]

# %% [markdown]
# ## The mistake that everybody makes
#
# This time it comes first, so that you know it when you meet it. Here is a loop as one writes it late in the evening. Can
# you see what is missing? Its losses can.


# %% tags=["unchecked"]
def forgetful(model, xs, ys, steps, rate):
    losses = []
    for _ in range(steps):
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys)) / len(xs)
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        losses.append(loss.data)
    return losses


random.seed(9)
without_zero = forgetful(MLP(3, [4, 4, 1]), xs, ys, 60, 0.2)
[round(loss, 2) for loss in without_zero[::6]]

# %% [markdown]
# No gradient is ever set to zero, so each round adds its own to all that were before (lesson 6). The steps grow longer, run
# past the valley and up the other side: this network had learned the task, then lost it for good. Worse, with most seeds the
# bug does not show.
#
# ## Your turn
#
# Write `train(model, xs, ys, steps, rate)`, with all four parts. It gives the list of the losses, one for each round.


# %%
# YOUR CODE HERE: train(model, xs, ys, steps, rate)
### BEGIN SOLUTION
def train(model, xs, ys, steps, rate):
    losses = []
    for _ in range(steps):
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys)) / len(xs)
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        losses.append(loss.data)
    return losses


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=9)

# %%
random.seed(9)
n = MLP(3, [4, 4, 1])
losses = train(n, xs, ys, 60, 0.2)
[round(loss, 2) for loss in losses[::6]], [round(n(x).data, 2) for x in xs]

# %% [markdown]
# It has learnt. Nobody told the network how; it was told how wrong it is, and 41 slopes did the rest. Here are both curves:

# %% tags=["unchecked"]
import matplotlib.pyplot as plt

plt.figure(figsize=(6, 3))
plt.plot(losses, label="with all four parts")
plt.plot(without_zero, label="gradients never set to zero")
plt.xlabel("round")
plt.ylabel("loss")
plt.legend()
plt.show()
# %% [markdown]
# A loss is a graph like any other, your own: four examples, each through the same network. One neuron and one point of it
# are small enough to be looked at, and to be stepped through.

# %% tags=["unchecked"]
from wengert import draw, steps

neuron = Neuron(1)
neuron.w[0].label, neuron.b.label = "w", "b"
loss = (neuron([0.5]) - 1.0) ** 2
loss.label = "loss"
loss.backward()
draw(loss)

# %% tags=["unchecked"]
steps(loss)

# %% [markdown]
# ## How fast?
#
# A rate that is too small takes all day. And one that is too large? Six networks each, from six seeds:

# %% tags=["unchecked"]
for rate in (0.05, 0.5, 5.0):
    ends = []
    for seed in range(6):
        random.seed(seed)
        ends.append(train(MLP(3, [4, 4, 1]), xs, ys, 25, rate)[-1])
    learnt, stuck = sum(end < 0.1 for end in ends), sum(end > 0.97 for end in ends)
    print(f"rate {rate}: {learnt} of 6 below 0.1, {stuck} stuck at 1 or above")

# %% [markdown]
# With 0.05 it takes more rounds: after a hundred, all six have learnt. With 5 the first steps are so long that a $\tanh$ lands
# where it is flat, near $-1$ or $1$. There its slope, $1 - t^2$, is nearly 0, and no gradient gets through any more. The loss
# stands, and nothing says why.
#
# Many texts take the **sum** of the errors. With four points that is four times the mean, and so is every step: a rate of
# 0.5 is then what 2 is here, and about half of all networks get stuck. With a mean, a rate that was good for four points is
# still good for four thousand.
#
# ## Why ReLU gets stuck
#
# A network with $\max(0, x)$ instead of $\tanh$, *also at its end*, has the same trouble in a plainer form. Here is
# exclusive or: 1 where one of the two inputs is 1.


# %% tags=["unchecked"]
def relu(x):
    out = Value(max(0.0, x.data), (x,), "relu")

    def _backward():
        x.grad += (out.data > 0) * out.grad

    out._backward = _backward
    return out


class ReLU(Neuron):
    def __call__(self, x):
        return relu(sum((wi * xi for wi, xi in zip(self.w, x)), self.b))


def network_of_relus():
    model = MLP(2, [4, 4, 1])
    for layer in model.layers:
        layer.neurons = [ReLU(len(neuron.w)) for neuron in layer.neurons]
    return model


corners, either = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 0.0]
random.seed(4)
relus = network_of_relus()
stuck = train(relus, corners, either, 100, 0.2)
outputs = [relus(x).data for x in corners]
stuck[-1], outputs, max(abs(p.grad) for p in relus.parameters())

# %% [markdown]
# The output is 0 at every corner and every gradient is 0: the last ReLU is below 0 for all four, its slope there is 0, and
# from there nothing gets back. It is **dead**, and stays so for as long as you train. About half of all seeds end like this;
# if the last neuron has no ReLU, few do.
#
# ## Exercises
#
# 1. Swap "zero" and "update", so that gradients are set to zero just before the update. What does the loss do?
# 2. Give exclusive or a linear end (`layer.neurons` of the last layer without `relu`), and train from ten seeds.
# 3. Move the line of the loss in front of the loop. Why does the loss stay what it is, although all parameters move?
#
# ## A way on
#
# That is all of learning by gradients; the rest is size. Lesson 10 has the exercises that everybody sets, each solved on less
# than a screen. If you want to go on at once: lesson 11, where your engine meets Wengert.
