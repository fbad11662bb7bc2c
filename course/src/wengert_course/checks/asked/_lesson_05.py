"""What lesson 5 asks for: backward(), which calls each closure in its turn. (How it works, lesson 1's tests say.)"""

PROGRAM = "s = a * b; t = s + c; u = t * s; v = u + t; L = v * s"
USERS = {"s": "tuL", "t": "uv", "u": "v", "v": "L", "L": ""}  # of each node, the nodes that are made of it


def inside(own, draw):
    """gradients inside an expression

    backward(): the nodes in topological order, the result's gradient at 1, and each _backward called once
    """
    numbers, program = own.drawn("a b c f"), "e = a * b; d = e + c; L = d * f"
    yield from own.tell(f"{program}; L", numbers, "a b c f e d L")
    yield f"{own.where(numbers)}; {program}", "L.data, after backward()", own.number(own.scope["L"])


def calls(own, draw):
    """every node once, in order

    a node passes its gradient on when all that is made of it has done so, and once
    """
    root = own.run(f"{PROGRAM}; L", own.drawn("a b c"))
    called, where = [], f"{PROGRAM}; L.backward()"
    for name in USERS:
        own.record(own.scope[name], name, called)
    own.backward(root)
    for name, uses in USERS.items():
        yield where, f"how often {name}._backward() is called", float(called.count(name))
        first = called.index(name) if name in called else len(called)
        early = [user for user in uses if user not in called[:first] and called.count(name) == 1]
        yield where, f"how many of the nodes made of {name} are called only after it", float(len(early))
    own.backward(own.run("a * b", own.drawn("a b")))
    yield where, "how often backward() of another expression calls L._backward()", called.count("L") - 1.0
