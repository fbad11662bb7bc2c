"""What lesson 8 asks for: a neuron, a layer, a network.

Nobody has to know in which order `parameters()` gives weights and biases. Where each of them is the same number c, a
neuron of inputs x gives f(c * sum(x) + c), and its gradients are the same numbers in whatever order they come.
"""

import math

ACTIVATIONS = (
    math.tanh,
    lambda z: max(z, 0.0),  # ReLU, and leaky ones
    lambda z: max(z, 0.01 * z),
    lambda z: max(z, 0.1 * z),
    lambda z: 0.5 * (1.0 + math.tanh(0.5 * z)),  # sigmoid
)


def neuron_parameters(own, draw):
    """Neuron(3).parameters()

    a class Neuron, made with its number of inputs, that holds a weight for each and a bias: Values drawn at random; and
    its method parameters(), which gives a list of them
    """
    parameters(own, "Neuron", 3)


def neuron(own, draw):
    """Neuron(3)

    Neuron.__call__(x): the weighted sum of the inputs and the bias, through tanh
    """
    called(own, draw, "Neuron", 3)


def layer_parameters(own, draw):
    """Layer(3, 4).parameters()

    a class Layer, made with its numbers of inputs and of outputs, that holds a Neuron for each output; its parameters()
    gives those of all its neurons, in one list
    """
    parameters(own, "Layer", 3, 4)


def layer(own, draw):
    """Layer(3, 4)

    Layer.__call__(x): the list of what its neurons give
    """
    called(own, draw, "Layer", 3, 4)


def layer_of_one(own, draw):
    """Layer(3, 1)

    Layer.__call__(x): of one neuron, what that gives, alone
    """
    called(own, draw, "Layer", 3, 1)


def network_parameters(own, draw):
    """MLP(3, [4, 4, 1]).parameters()

    a class MLP, made with its number of inputs and a list of the layers' sizes, that holds the Layers; its parameters()
    gives those of all its layers, in one list
    """
    parameters(own, "MLP", 3, [4, 4, 1])


def network(own, draw):
    """MLP(3, [4, 4, 1])

    MLP.__call__(x): each layer reads what the one before it gives
    """
    called(own, draw, "MLP", 3, [4, 4, 1])


def network_of_two(own, draw):
    """MLP(2, [3, 2])

    MLP.__call__(x): of several outputs, a list
    """
    called(own, draw, "MLP", 2, [3, 2])


def at_random(own, draw):
    """MLP(3, [4, 4, 1]), as it begins

    weights that are drawn at random, on both sides of 0
    """
    several = [own.method(own.MLP(3, [4, 4, 1]), "parameters")() for _ in range(4)]
    weights = [own.number(p) for one in several for p in one if own.number(p) != 0.0]  # biases may be 0
    if len(set(weights)) < max(len(weights), 2):
        own.wrong("some weights begin as the same number: neurons that are alike learn alike, so draw each by itself")
    below = sum(weight < 0.0 for weight in weights)
    if not len(weights) < 4 * below < 3 * len(weights):  # of 164, it is hardly ever a quarter
        own.wrong("the weights begin on one side of 0: draw them from -1 to 1")


def sizes_of(arguments):
    """How many neurons each layer has: a neuron by itself is a layer of one."""
    last = ([*arguments, 1])[1]
    return last if isinstance(last, list) else [last]


def parameters(own, name, *arguments):
    """One flat list of different Values, always the same ones, as many as there have to be."""
    thing, call = getattr(own, name)(*arguments), f"{name}({', '.join(map(str, arguments))}).parameters()"
    given = own.method(thing, "parameters")()
    if not isinstance(given, (list, tuple)):
        told = "None: is a return missing?" if given is None else f"a {type(given).__name__}, where a list is asked for"
        own.wrong(f"{call} gives {told}")
    for one in given:
        if not own.is_value(one):
            own.wrong(f"{call} has a {type(one).__name__} in its list, where each item has to be a Value")
    different = len({id(one) for one in given})
    if different < len(given):
        own.wrong(f"{call} gives a Value several times: {len(given)} items are {different} Values")
    if [id(one) for one in thing.parameters()] != [id(one) for one in given]:
        own.wrong(f"{call} makes new Values each time: those that are computed with are asked for")
    nin, count = arguments[0], 0
    for size in sizes_of(arguments):
        count, nin = count + size * (nin + 1), size
    own.same(f"len({call})", len(given), count)


def outputs(numbers, x, functions, sizes):
    """What a network gives, in plain numbers: those of each neuron's weights, and then its bias."""
    left = iter(numbers)
    for size, f in zip(sizes, functions):
        x = [f(sum([next(left) * one for one in x]) + next(left)) for _ in range(size)]
    return x


def called(own, draw, name, *arguments):
    """What comes out, where all parameters are one number; and the gradients there."""
    thing, text = getattr(own, name)(*arguments), f"{name}({', '.join(map(str, arguments))})"
    own.method(thing, "__call__")
    leaves, sizes = list(own.method(thing, "parameters")()), sizes_of(arguments)

    def forward(c, x):
        for leaf in leaves:
            own.put(leaf, c)
        return thing(list(x))

    def right(functions, c, x):
        found = outputs([c] * len(leaves), x, functions, sizes)
        return found if len(found) > 1 else found[0]

    probes = [(c, [round(abs(draw.small()) + 0.1, 3) for _ in range(arguments[0])]) for c in (0.1, -0.2, 0.4)]
    given = [forward(c, x) for c, x in probes]
    ways = [[f] * len(sizes) for f in ACTIVATIONS]
    if len(sizes) > 1:  # the last layer may be linear
        ways += [[*way[1:], float] for way in ways]
    fitting = [way for way in ways if all(own.alike(one, right(way, *at)) for one, at in zip(given, probes))]
    way = [*fitting, ways[0]][0]
    for one, (c, x) in zip(given, probes):
        if isinstance(one, float) or (isinstance(one, list) and any(isinstance(item, float) for item in one)):
            own.wrong(f"{text}(x) gives plain numbers, and the graph is lost: Values all the way")
        own.same(f"{text}(x)", one, right(way, c, x), f"x = {x} and each parameter is {c}")

    c, x = probes[0]
    for k in range(sizes[-1]):
        out = forward(c, x)  # made anew, as parts that outputs share keep gradients
        got = sorted(own.backward(out[k] if sizes[-1] > 1 else out, leaves))
        wanted = sorted(own.differences(lambda *numbers, k=k: outputs(numbers, x, way, sizes)[k], [c] * len(leaves)))
        lost = got.count(0.0) - wanted.count(0.0)
        if lost > 0:
            told = "is a .data, or a new Value of a number, on the way?"
            own.wrong(f"no gradient reaches {lost} of the {len(leaves)} parameters of {text}: {told}", "gradient")
        for one, other in zip(got, wanted):
            if not math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4):
                told = f"{text}: the output is right, and a gradient that should be {other:.6g} is {one:.6g}"
                own.wrong(f"{told}: check the Value itself (--step 7)", "gradient")
