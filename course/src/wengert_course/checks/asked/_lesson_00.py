"""What lesson 0 asks for: slopes, by nudging."""


def slope(own, draw):
    """slope(f, x)

    how fast f(x) grows as x does, by a small nudge of x
    """
    for _ in range(3):
        a, b, c, x = draw.choose(draw.LARGE)[0], *draw.numbers(3)
        text = f"f(x) = {a:g}*x*x + {b:g}*x + {c:g} and x = {x:g}"
        own.same("slope(f, x)", own.slope(lambda x: a * x * x + b * x + c, x), 2 * a * x + b, text, within=1e-3)


def slopes(own, draw):
    """slopes(f, xs)

    the list of the slopes of f(*xs), with respect to one input after the other
    """
    for n in (3, 1, 4):
        ws, xs = draw.numbers(n), draw.numbers(n)

        def f(*xs):
            if len(xs) != n or isinstance(xs[0], (list, tuple)):
                own.wrong(f"f takes {n} numbers: call f(*xs), with the star")
            return sum(w * x * x for w, x in zip(ws, xs))

        text = " + ".join(f"{w:g}*x{i}**2" for i, w in enumerate(ws))
        given = list(xs)
        where = f"f gives {text} and xs = {xs}"
        own.same("slopes(f, xs)", own.slopes(f, given), [2 * w * x for w, x in zip(ws, xs)], where, within=1e-3)
        own.same("after slopes(f, xs), xs", given, xs, "they are moved in a copy of the list")
