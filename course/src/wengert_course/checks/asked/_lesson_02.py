"""What lesson 2 asks for: where a result came from. (How these tests work, those of lesson 1 say.)"""

SYMBOLS = (("+", "add", "plus", "sum"), ("*", "mul", "times", "prod"))


def parts(own, draw):
    """c._prev

    the result of an operation remembers its operands in _prev; a leaf has none
    """
    numbers = own.drawn("a b c f")
    a, b, c, f = own.leaves(*numbers.values())
    where = own.where(numbers)
    yield where, "how many Values a._prev holds", float(len(own.parts(a)))
    for what, x in (("a * b", a * b), ("a + b", a + b)):
        held = own.parts(x)
        yield where, f"how many Values the _prev of {what} holds", float(len(held))
        yield where, f"the sum of the numbers in the _prev of {what}", sum([own.number(part) for part in held])
    ends = [own.number(node) for node in own.under((a * b + c) * f) if not own.parts(node)]
    yield where, "the sum of the leaves' numbers under (a * b + c) * f", sum(ends)


def operands(own, draw):
    """c._prev

    the operands themselves are in it, and not copies
    """
    for what in ("a + b", "a * b"):
        held = own.parts(own.run(what, own.drawn("a b")))
        same = sum([part is own.scope[name] for part in held for name in "ab"])
        yield "", f"how many of a and b themselves are in the _prev of {what}", float(same)


def wrapped(own, draw):
    """c._prev

    a plain number is in it as the Value that it was made
    """
    numbers = own.drawn("a")
    held = own.parts(own.run("a + 3", numbers))
    yield own.where(numbers), "the sum of the numbers in the _prev of a + 3", sum([own.number(part) for part in held])


def symbols(own, draw):
    """c._op

    the result of an operation remembers its symbol in _op, such as '+'; a leaf has ''
    """
    a, b = own.leaves(*draw.numbers(2))
    named = (("a + b", a + b), ("a * b", a * b), ("a", a))
    found = {what: getattr(x, own.names["_op"]) for what, x in named}
    if not any(found.values()):
        own.unfit("absent", "no operation has its symbol")
    for what, symbol in found.items():
        number = next((number for number, names in enumerate(SYMBOLS, 1) if symbol in names), 3 if symbol else 0)
        yield "", f"the symbol of {what} (1 for '+', 2 for '*', 0 for '')", float(number)


def label(own, draw):
    """Value(2.0, label='a')

    the constructor takes a label, '' if none is given, and keeps it in .label
    """
    try:
        a = own.make(draw.number(), label="a")
    except TypeError:
        own.unfit("absent", "no label")
    for x, text in ((a, "a"), (own.make(2.0), "")):
        kept = getattr(x, own.names.get("label", "label"), None) == text
        yield f"x = Value(..., label={text!r})", f"whether x.label is {text!r} (1: it is)", float(kept)
