"""What lesson 12 asks for: a table of pairs of letters, counted; and the loss of one that is learnt."""

import math

LETTERS = ".abcdefghijklmnopqrstuvwxyz"


def counts(own, draw):
    """counts(names)

    a table of how often each letter follows each, with '.' at both ends of a name
    """
    names = ["".join(LETTERS[1 + draw.below(5)] for _ in range(2 + k)) for k in range(4)]
    names += [names[0], "".join(LETTERS[1 + draw.below(26)] for _ in range(9))]
    wanted = [[0] * 27 for _ in LETTERS]
    for name in names:
        for one, two in zip("." + name, name + "."):
            wanted[LETTERS.index(one)][LETTERS.index(two)] += 1
    own.same("counts(names)", own.counts(list(names)), wanted, f"names = {names}")


def loss(own, draw):
    """loss(logits, counts)

    the mean surprise, minus the logarithm of the softmax of a row, over all pairs
    counted
    """

    def surprise(logits, counts):
        total = 0.0
        for row, ns in zip(logits, counts):
            whole = math.log(sum(math.exp(z) for z in row))
            total += sum(n * (whole - z) for z, n in zip(row, ns))
        return total / sum(map(sum, counts))

    logits = [draw.numbers(27) for _ in LETTERS]
    table = [[draw.below(3) * draw.below(4) for _ in LETTERS] for _ in LETTERS]
    own.agrees("loss(logits, counts)", surprise, [logits], [table])
