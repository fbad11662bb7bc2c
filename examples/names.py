"""A GPT that invents names, in plain scalar Python: every number in it is a Value.

    python examples/names.py NAMES.txt [--steps 1000] [--seed 42] [--eager]

NAMES.txt holds one name a line, as names.txt of https://github.com/karpathy/makemore does. The model reads a name
letter by letter and learns to say which letter comes next: one layer of attention with four heads, and a small network
behind it, 4,192 parameters for an alphabet of 26 letters. Each step of training takes the loss of one name, some 3,000
nodes, and its gradient.

`wengert.compile` records these nodes once for each length of name and runs them as a NumPy program from then on: a
thousand steps in seconds. With `--eager`, or without NumPy, the engine builds and walks the graph of every name anew.
It is the same code, and the same losses to the last digits.

The architecture is GPT-2's, as small as it goes and with what later models simplified: RMSNorm without weights
(Zhang and Sennrich 2019), ReLU, no biases.
"""

from __future__ import annotations

import argparse
import random
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import wengert
from wengert import Value, optim

Vector = list[Value]
Matrix = list[Vector]

WIDTH, HEADS, BLOCK = 16, 4, 16  # numbers a letter becomes; heads that share them; letters read at once


class GPT(wengert.nn.Module):
    """The model: what its matrices are, and how they turn letters into a prediction.

    Args:
        letters: how many there are; one more token, the last, marks where a name begins and ends.
        rng: where the starting weights come from.
    """

    def __init__(self, letters: int, rng: random.Random) -> None:
        tokens = letters + 1

        def matrix(rows: int, columns: int = WIDTH) -> Matrix:
            return [[Value(rng.gauss(0, 0.08)) for _ in range(columns)] for _ in range(rows)]

        self.letter, self.place = matrix(tokens), matrix(BLOCK)  # what a letter means, and where it stands
        self.query, self.key, self.value, self.out = (matrix(WIDTH) for _ in range(4))
        self.up, self.down = matrix(4 * WIDTH), matrix(WIDTH, 4 * WIDTH)
        self.head = matrix(tokens)

    def __call__(self, token: int, keys: list[Vector], values: list[Vector]) -> Vector:
        """Read one more token; the logits of the next.

        Args:
            token: what is read.
            keys: of the tokens read before it; this one's is added.
            values: likewise.
        """
        place = self.place[len(keys)]
        x = rmsnorm([a + b for a, b in zip(self.letter[token], place, strict=True)])

        normed = rmsnorm(x)
        keys.append(linear(self.key, normed))
        values.append(linear(self.value, normed))
        read = attention(linear(self.query, normed), keys, values)
        x = [a + b for a, b in zip(x, linear(self.out, read), strict=True)]

        hidden = [h.relu() for h in linear(self.up, rmsnorm(x))]
        x = [a + b for a, b in zip(x, linear(self.down, hidden), strict=True)]
        return linear(self.head, x)

    def loss(self, tokens: list[int]) -> Value:
        """How surprised the model is by each token of a name after the first: the mean cross-entropy, in nats."""
        keys: list[Vector] = []
        values: list[Vector] = []
        losses = []
        for token, following in pairwise(tokens):
            scores = wengert.log_softmax(self(token, keys, values))
            losses.append(-scores[following])
        return wengert.mean(losses)


def linear(matrix: Matrix, x: Vector) -> Vector:
    """The matrix times x. `dot` is one node, where a sum of products would be two for each weight."""
    return [wengert.dot(row, x) for row in matrix]


def rmsnorm(x: Vector) -> Vector:
    """x, scaled to a root mean square of 1."""
    scale = (wengert.dot(x, x) / len(x) + 1e-5) ** -0.5
    return [xi * scale for xi in x]


def attention(query: Vector, keys: list[Vector], values: list[Vector]) -> Vector:
    """What one position takes from itself and those before it: each head weighs them by its own columns."""
    width = WIDTH // HEADS
    read = []
    for start in range(0, WIDTH, width):
        columns = slice(start, start + width)
        weights = wengert.softmax([wengert.dot(query[columns], key[columns]) / width**0.5 for key in keys])
        read += [wengert.dot(weights, column) for column in zip(*(value[columns] for value in values), strict=True)]
    return read


def read_names(path: Path) -> tuple[list[str], int]:
    """The names of a file, and how many of them were cut to fit into `BLOCK - 1` letters.

    Raises:
        SystemExit: there is no such file, or it is no text, or no names are in it.
    """
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()  # sig: some editors put a mark before the text
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SystemExit(f"{path}, line {line}: not UTF-8 text; expected one name a line") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise SystemExit(f"{path}: no names; expected one name a line")
    longest = BLOCK - 1
    return [name[:longest] for name in names], sum(len(name) > longest for name in names)


def train(model: GPT, names: list[list[int]], steps: int, *, eager: bool = False) -> list[float]:
    """One name a step, Adam, a learning rate that falls to 0; returns the loss of each step."""
    loss_of = model.loss if eager else wengert.compile(model.loss)
    optimizer = optim.Adam(model, lambda step: 0.01 * (1 - step / steps), betas=(0.85, 0.99))
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(names[step % len(names)])
        loss.backward()
        optimizer.step()
        losses.append(loss.data)
        if (step + 1) % 100 == 0 or step + 1 == steps:
            recent = losses[-100:]
            print(f"step {step + 1:5d}   loss {sum(recent) / len(recent):.4f}, the mean of {len(recent)} names")
    return losses


@wengert.no_grad()
def sample(model: GPT, alphabet: str, rng: random.Random, temperature: float = 0.5) -> str:
    """A new name, drawn letter by letter; a low temperature keeps to what is likely."""
    end = token = len(alphabet)
    keys: list[Vector] = []
    values: list[Vector] = []
    name = ""
    while len(keys) < BLOCK:
        logits = [logit / temperature for logit in model(token, keys, values)]
        probabilities = [p.data for p in wengert.softmax(logits)]
        token = rng.choices(range(end + 1), probabilities)[0]
        if token == end:
            break
        name += alphabet[token]
    return name


def main(argv: list[str] | None = None) -> None:
    """Train on a file of names, then print names that the model draws; the commonest are in the file too."""
    parser = argparse.ArgumentParser(description="A GPT that invents names, in plain scalar Python.")
    parser.add_argument("names", type=Path, metavar="NAMES.txt", help="one name a line")
    parser.add_argument("--steps", type=int, default=1000, help="how many names it reads (default: 1000)")
    parser.add_argument("--seed", type=int, default=42, help="of everything random (default: 42)")
    parser.add_argument("--eager", action="store_true", help="let the engine compute each name, without NumPy")
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error(f"--steps is {options.steps}; expected 1 or more")

    rng = random.Random(options.seed)
    names, cut = read_names(options.names)
    alphabet = "".join(sorted(set("".join(names))))
    rng.shuffle(names)
    model = GPT(len(alphabet), rng)
    print(f"{len(names):,} names in {len(alphabet)} letters, {len(model.parameters()):,} parameters")
    if cut:
        print(f"{cut:,} of them were cut to {BLOCK - 1} letters")
    end = len(alphabet)
    eager = options.eager or find_spec("numpy") is None
    began = perf_counter()
    train(model, [[end, *map(alphabet.index, name), end] for name in names], options.steps, eager=eager)
    print(f"trained in {perf_counter() - began:.1f} s, {'by the engine' if eager else 'compiled'}")
    drawn = [sample(model, alphabet, rng) for _ in range(12)]
    new = sum(name not in names for name in drawn)
    print(f"{len(drawn)} names drawn, {new} of them not in the file:", ", ".join(drawn))


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace", line_buffering=True)  # a console may lack letters; a pipe shows progress
    main()
