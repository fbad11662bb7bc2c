"""What lesson 7 asks for: the other operators. (How these are tried, the tests of lessons 1 and 6 say.)"""

OPERATIONS = {
    "3 + a": ["a number on the left of +: Python asks the right operand, by a method of its own"],
    "3 * a": ["a number on the left of *, likewise"],
    "-a": ["the minus sign in front of a Value"],
    "a - b": ["the difference of two Values: it can be written with what is there already"],
    "a - 3": ["a difference with a number on its right"],
    "3 - a": ["a difference with a number on its left: Python asks the right operand"],
    "a ** n": [
        "a power whose exponent is an int or a float, with the power rule",
        *("a ** 3", "a ** 2", "a ** -1", "a ** 0.5"),
    ],
    "a / b": ["the quotient of two Values: it can be written as a product with a power"],
    "a / 4": ["a quotient with a number on its right"],
    "4 / a": ["a quotient with a number on its left, likewise"],
    "a.exp()": ["a method exp that gives a Value: its derivative is its result"],
}


def sum_(own, draw):
    """sum([a, b, c])

    Python's sum(), which starts at 0: it works as soon as 0 + a does
    """
    told = own.tell("sum([a, b, c])", own.drawn("a b c"))
    yield next(told)
    if own.plan.mode == "backward":  # it has no closure of its own
        yield from told
