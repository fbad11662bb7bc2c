"""What lesson 1 asks for: a number that remembers.

A test of lessons 1 to 7 yields what it did, what it looked at, and the number that was there. It runs on your class and
on one that is right, and the numbers have to be the same. `draw` draws numbers. `own` makes your Values and reads them:
`own.make(2.0)`, and of a Value `own.number(x)` and `own.grad(x)`. `own.tell("a * b", {"a": 2.0, "b": -3.0})` runs a
program on new Values, and yields the number of its result and, from lesson 4 on, the gradients of a and b.
"""


def leaf(own, draw):
    """Value(2.0)

    a class whose Value(2.0) keeps its number in .data
    """
    for number in (2, *draw.points()):
        yield f"a = Value({number})", "a.data", own.number(own.make(number))


def repr_(own, draw):
    """repr(a)

    a __repr__ of its own, that shows the number
    """
    if getattr(own.make, "__repr__", None) is object.__repr__:
        own.unfit("absent", "Python's own repr")
    for number in draw.points():
        shown = own.numbers_in(repr(own.make(number)))
        nearest = min(shown, key=lambda x: abs(x - number), default=float("nan"))
        yield f"a = Value({number})", "the number that repr(a) shows", nearest


OPERATIONS = {  # as it is written, what is asked for, and where these are others: the programs that are tried
    "a + b": ["__add__ gives a new Value that holds the sum"],
    "a + 3": ["a plain number on the right of + is made a Value first", "a + 3", "a + 0.5"],
    "a * b": ["__mul__ gives a new Value that holds the product"],
    "a * 3": ["a plain number on the right of * is made a Value first", "a * 3", "a * 0.5"],
}


def operation(own, draw, written):
    """It is tried alone; and in a larger expression, where the gradient above it is not 1."""
    for at in draw.operands(written):
        yield from own.tell(written, at)
        for name in at if "b" in at else "":
            yield own.where(at), f"{name}, after {written}", own.number(own.scope[name])
        if own.plan.product and own.plan.mode == "backward":
            yield from own.tell(f"({written}) * c", {**at, "c": 5.0}, "a b" if "b" in at else "a c")
