"""What lesson 6 asks for: what is used several times gets all its gradients. (How it works, lesson 1's tests say.)"""


def used_twice(own, draw, written):
    """a value used twice

    backward(), and then what a value receives from all its uses has to add up
    """
    part = f"({written})" if " + " in written or " - " in written else written
    for at in draw.operands(written):
        if "b" not in at:
            yield from own.tell(f"{part} + {part}", at)
            continue
        for one in "ba":
            yield from own.tell(f"{part} + {part.replace(one, 'c')}", {**at, "c": 0.8})
        if at["a"] > 0:
            yield from own.tell(written.replace("b", "a"), {"a": at["a"]})


def shared(own, draw):
    """a result used twice"""
    for a, b in draw.pairs():
        yield from own.tell("s = a * b; s * c + s * d", {"a": a, "b": b, "c": 3.0, "d": -2.0}, "a b")


def order(own, draw):
    """a result used again further on"""
    for a, b in draw.pairs():
        for last in ("s * t", "t * s"):
            yield from own.tell(f"s = a * b; t = s + a; {last}", {"a": a, "b": b}, "a b s")
        for last in ("s * u", "u * s"):
            yield from own.tell(f"s = a * b; u = (s + a) * (s + b) + a; {last}", {"a": a, "b": b}, "a b")


def equal(own, draw):
    """different values of equal numbers"""
    x, y = draw.numbers(2)
    yield from own.tell("s = a * c; t = b * d; s * t", {"a": x, "b": x, "c": y, "d": y})


def long(own, draw):
    """an expression of twenty operations"""
    a, b = ((-4.0, 2.0), (3.0, -2.0), (-2.5, 1.5), (2.0, -1.5))[draw.below(4)]
    first = "c = a + b; d = a * b + b * b * b; c += c + 1; c += c + a * -1"
    then = "d += d * 2 + (b + a); d += d * 3 + (b * 2 + a); e = c + d * -1; e * e * 0.5 + e"
    yield from own.tell(f"{first}; {then}", {"a": a, "b": b})


def random(own, draw):
    """random expressions"""
    for program in range(6):
        x, y, z = draw.choose((0.5, 0.6, 0.75, 1.25, 1.5), 3)
        a, b, c = nodes = own.leaves(x, y, z)
        for _ in range(14):
            left, right = nodes[-1 - draw.below(min(5, len(nodes)))], draw.below(len(nodes))
            nodes.append(left + nodes[right] if draw.below(2) else left * nodes[right % 3])
        root = nodes[-1] + nodes[-2] * nodes[3]
        yield from own.gradients(f"a = {x:g}, b = {y:g}, c = {z:g}", f"expression {program}", root, a=a, b=b, c=c)


def ladder(own, draw):
    """forty doublings, s = s + s * one"""
    a, one = own.leaves(1.0, 1.0)
    s = a
    for _ in range(40):
        s = s + s * one
    yield from own.gradients("a = 1", "forty doublings of a", s, a=a)


def again(own, draw):
    """backward() of a second expression"""
    yield from own.after("back(a * a); back(a * b)")


def zeroed(own, draw):
    """a gradient set to zero, then a new expression"""
    yield from own.after("for _ in range(3): zero(a, b); back(a * b + a)")
