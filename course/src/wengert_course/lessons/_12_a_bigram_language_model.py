# %% [markdown]
# # 12. A bigram language model
#
# A language model says which letter comes next. The simplest one looks at one letter only, the last, and has seen two
# thousand names. **Can a gradient find out what counting knows?** You do both, and compare.

# %%
from importlib.resources import files

from wengert import course

names = (files("wengert_course") / "lessons" / "names.txt").read_text().split()
len(names), names[:6]

# %% [markdown]
# A name begins and ends somewhere, and that is worth knowing too: `"."` stands for both ends, so that `emma` has the pairs
# `.e`, `em`, `mm`, `ma`, `a.`
#
# ## Your turn: counting
#
# `counts(names)` gives a table, a list of 27 rows. In the row of a letter and the column of another stands how often the one is
# followed by the other. Letters have their places in `letters`.

# %%
letters = ".abcdefghijklmnopqrstuvwxyz"


# YOUR CODE HERE: counts(names)
### BEGIN SOLUTION
def counts(names):
    table = [[0] * len(letters) for _ in letters]
    for name in names:
        ended = "." + name + "."
        for one, two in zip(ended, ended[1:]):
            table[letters.index(one)][letters.index(two)] += 1
    return table


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=12)

# %%
N = counts(names)
sum(map(sum, N)), [(two, N[0][j]) for j, two in enumerate(letters) if N[0][j] > 120]

# %% [markdown]
# A row, divided by its sum, is a model: how likely each letter is after this one. How good is it? As in lesson 10: by how
# surprised it is, on the average, by the letter that really comes. No table of pairs can do better.

# %%
import math

best = -sum(n * math.log(n / sum(row)) for row in N for n in row if n) / sum(map(sum, N))
best, math.log(27)  # and of one that knows nothing

# %% [markdown]
# ## Your turn: learning
#
# Now a table of 27 times 27 *logits*, all 0 at the beginning: a model that knows nothing. `softmax` makes probabilities of a row.
# `loss(logits, counts)` is the mean surprise: for each pair, minus the logarithm of its probability, as often as it was counted,
# and the whole divided by the number of pairs. As in lesson 11, begin the sum at a number.
#
# The cell below has `log_softmax(row)`, which gives the logarithms of a row's probabilities: each logit, minus the logarithm of
# the sum of all $e^z$. And it takes up your engine, with the `log` of lesson 10.

# %%
import sys

from wengert import draw, steps

Value = course.mine(10).Value
# backward() calls itself for each value below another.
sys.setrecursionlimit(20_000)


def log_softmax(row):
    total = sum(z.exp() for z in row).log()
    return [z - total for z in row]


# %%
# YOUR CODE HERE: loss(logits, counts)
### BEGIN SOLUTION
def loss(logits, counts):
    surprises = []
    for row, ns in zip(logits, counts):
        for log_p, n in zip(log_softmax(row), ns):
            if n:
                surprises.append(-n * log_p)
    return sum(surprises) / sum(map(sum, counts))


### END SOLUTION

# %% tags=["unchecked"]
course.check(globals(), step=12)

# %% [markdown]
# The loop is that of lesson 9, with the momentum of lesson 10, and what learns is the class that you began in lesson 1. A
# letter that is rare has a small part in the loss, and so a small gradient: the rate is large.

# %% tags=["unchecked"]
logits = [[Value(0.0) for _ in letters] for _ in letters]
parameters = [z for row in logits for z in row]
velocity = [0.0] * len(parameters)
curve = []
for _ in range(40):
    now = loss(logits, N)
    for p in parameters:
        p.grad = 0.0
    now.backward()
    for i, p in enumerate(parameters):
        velocity[i] = 0.9 * velocity[i] - 40 * p.grad
        p.data += velocity[i]
    curve.append(now.data)
learnt = [[math.exp(z.data) for z in log_softmax(row)] for row in logits]
print(f"at first {curve[0]:.4f}, learnt {curve[-1]:.4f}, counted {best:.4f}")

# %% tags=["unchecked"]
import matplotlib.pyplot as plt

plt.figure(figsize=(6, 2.5))
plt.plot(curve)
plt.axhline(best, color="gray", linestyle="--")
plt.xlabel("round")
plt.ylabel("mean surprise")

counted = [[n / max(1, sum(row)) for n in row] for row in N]
figure, both = plt.subplots(1, 2, figsize=(12, 6))
for axes, title, table in zip(both, ("counted", "learnt"), (counted, learnt)):
    axes.imshow(table, cmap="Blues")
    axes.set_title(title)
    axes.set_xticks(range(27), letters)
    axes.set_yticks(range(27), letters)

# %% [markdown]
# The same table, found without counting anything. Nothing is gained, in a model as small as this. But a table of *triples* has
# 19,683 entries to fill, and one of ten letters cannot be counted at all; a gradient does not mind.
#
# Here is its graph, for one row and two letters, the second of which came three times as often:

# %%
tiny_loss = loss([[Value(0.0, label="za"), Value(0.0, label="zb")]], [[1, 3]])
tiny_loss.label = "loss"
tiny_loss.backward()
draw(tiny_loss)

# %%
steps(tiny_loss)

# %% [markdown]
# And names that the table draws, letter by letter, each after the one before it:

# %% tags=["unchecked"]
import random


def name(rng):
    drawn, k = "", 0
    while True:
        k = rng.choices(range(27), learnt[k])[0]
        if k == 0:
            return drawn
        drawn += letters[k]


rng = random.Random(3)
[name(rng) for _ in range(8)]

# %% [markdown]
# Almost names. They know which letters follow which, and nothing of what came before.
#
# ## The mistake that everybody makes
#
# The ends are forgotten. All letters are counted, the loss even falls; but where does a name begin, and when is it over?

# %%
flat = [[0] * 27 for _ in letters]
for word in names:
    for one, two in zip(word, word[1:]):
        flat[letters.index(one)][letters.index(two)] += 1
surprise = -sum(n * math.log(n / sum(row)) for row in flat for n in row if n)
sum(flat[0]), surprise / sum(map(sum, flat))

# %% [markdown]
# Nothing follows `"."`, so that no name can begin and none can end. And the loss even looks better than the other! It is the
# loss of another question, an easier one. Losses can be compared only where they are of the same examples.
#
# ## Exercises
#
# 1. Smooth the counts: add 1 to each. What becomes of the loss, and what of a pair that was never seen?
# 2. Two letters of memory: a row for each pair. How many pairs are never seen?
# 3. Divide the logits by 0.5 before you draw. What kind of names come out?
#
# ## A way on
#
# `examples/names.py` in the source folder reads sixteen letters instead of one: a GPT, with attention, layers and all, of 4,192
# numbers, each a `Value` as in lesson 1. You know every line of what happens in it. Nothing in it is magic any more.
