"""The Python of the playground: a network of scalar Values that trains step by step and answers for its weights.

In the browser a worker calls a `Playground`; what it gives are numbers and texts.
"""

import math
import random
from array import array

import wengert
from wengert import Graph, Value, data, mean
from wengert.losses import binary_cross_entropy_with_logits, l2, mse
from wengert.nn import MLP
from wengert.optim import SGD, Adam
from wengert.view.javascript import Script

OPTIMIZERS = {"adam": Adam, "sgd": SGD}
INPUTS = {  # of a point of the plane, floats or Values
    "x1": lambda x1, x2: x1,
    "x2": lambda x1, x2: x2,
    "x1²": lambda x1, x2: x1 * x1,
    "x2²": lambda x1, x2: x2 * x2,
    "x1x2": lambda x1, x2: x1 * x2,
    "sin 3x1": lambda x1, x2: wengert.sin(3.0 * x1),
    "sin 3x2": lambda x1, x2: wengert.sin(3.0 * x2),
}
TURNS = 1.75  # of an arm of the spiral
HILLS = [(-1.1, 0.7, 1), (0.0, 0.7, -1), (1.1, 0.7, 1), (-1.1, -0.7, -1), (0.0, -0.7, 1), (1.1, -0.7, -1)]
TARGETS = {  # of regression: a number from -1 to 1 for a point of the square
    "plane": lambda x1, x2: (x1 + x2) / 3.0,
    "gaussians": lambda x1, x2: sum(
        height * math.exp(-((x1 - a) ** 2 + (x2 - b) ** 2) / 0.2) for a, b, height in HILLS
    ),
}
LOSSES = {"classification": binary_cross_entropy_with_logits, "regression": mse}


def examples(kind, count=60, noise=0.1, seed=0):
    """Points of the plane around its middle, and their targets: classes, 0 and 1, or in regression numbers.

    The noise moves points of a class, and changes the numbers of regression.
    """
    if kind == "moons":
        X, Y = data.moons(count, noise=noise, seed=seed)
        return [[x - 0.5, y - 0.25] for x, y in X], Y
    if kind == "circles":
        return data.circles(count, noise=noise, factor=0.4, seed=seed)
    rng = random.Random(seed)
    draw = rng.gauss
    if kind in TARGETS:
        X = [[rng.uniform(-1.5, 1.5), rng.uniform(-1.5, 1.5)] for _ in range(count)]
        return X, [round(TARGETS[kind](*x) + draw(0, noise), 2) for x in X]
    if kind == "spiral":
        return spiral(count, noise, draw)
    corners, classes = data.xor()
    X = [[2 * x - 1 + draw(0, 0.1 + noise) for x in corner] for corner in corners for _ in range(count // 4)]
    return X, [y for y in classes for _ in range(count // 4)]


def spiral(count, noise, draw):
    """Two arms that wind around one another; the noise is less than the room between them."""
    X, Y = [], []
    for arm in (0, 1):
        for i in range(count // 2):
            radius = 0.1 + 1.5 * i / max(count // 2 - 1, 1)
            angle = math.pi * arm + 2 * math.pi * TURNS * i / max(count // 2 - 1, 1)
            X.append([radius * math.sin(angle) + draw(0, noise / 4), radius * math.cos(angle) + draw(0, noise / 4)])
            Y.append(arm)
    return X, Y


def javascript(outputs, names, parameters):
    """Write values as a function of JavaScript, made from the rules of the table of operations.

    Args:
        outputs: the values; the function writes them into the list that is its last parameter.
        names: what the leaves under them are in JavaScript.
        parameters: of the function.
    """
    graph, script, names = Graph(*outputs), Script(), dict(names)
    rules, lines = {}, []
    for place, (op, operands, value) in enumerate(graph):
        if op.name != "leaf":
            rule = rules.setdefault(script.rules(op, len(operands)), f"f{len(rules)}")
            given = ", ".join(names[graph.values[x]] if isinstance(x, int) else repr(x) for x in operands)
            lines.append(f"const v{place} = {rule}({given});")
            names[value] = f"v{place}"
    lines += [f"out[{i}] = {names[value]};" for i, value in enumerate(outputs)]
    head = [script.definitions(), *(f"const [{name}] = {rule};" for rule, name in rules.items())]
    return "\n".join([*head, f"return ({parameters}, out) => {{", *lines, "};"])


class Playground:
    """A network, its examples and its optimizer.

    Args:
        problem: "classification", whose loss reads the network's output as a logit, or "regression".
        layers: how many neurons each hidden layer has.
        activation: theirs.
        optimizer: "adam" or "sgd".
        rate: the learning rate.
        seed: decides the weights, and the order of the examples.
        inputs: what the network reads of a point, by the names of INPUTS.
        batch: how many examples make a step; 0 for all.
        penalty: the factor of the squares of the weights in the loss.
        X, Y: the examples and their targets.
    """

    def __init__(self, problem, layers, activation, optimizer, rate, seed, inputs, batch, penalty, X, Y):
        self.loss_of, self.output = LOSSES[problem], "logit" if problem == "classification" else "output"
        self.inputs = [INPUTS[name] for name in inputs]
        self.model = MLP(len(inputs), [*layers, 1], activation=activation, rng=random.Random(seed))
        self.optimizer = OPTIMIZERS[optimizer](self.model, lr=rate)
        self.batch, self.penalty = batch, penalty
        self.draw = random.Random(seed)
        self.losses = []
        self.loss = None
        self.learn_from(X, Y)

    def learn_from(self, X, Y):
        """Take these examples from the next step on."""
        self.X, self.Y = X, Y
        self.left = []

    def set_rate(self, rate):
        """Take steps of this size from the next on."""
        self.optimizer.lr = rate

    def set_parameter(self, name, number):
        """Set a parameter by hand; gives every number."""
        dict(self.model.named_parameters())[name].data = float(number)
        return self.numbers()

    def read(self, point):
        """What the network reads of a point."""
        return [of(*point) for of in self.inputs]

    def chosen(self):
        """The examples of the next step: all, or so many of them, until all have had their turn."""
        if not 0 < self.batch < len(self.X):
            return range(len(self.X))
        if len(self.left) < self.batch:
            self.left = self.draw.sample(range(len(self.X)), len(self.X))
        taken, self.left = self.left[: self.batch], self.left[self.batch :]
        return taken

    def step(self):
        """One step of training; the mean loss of its examples before it."""
        places = self.chosen()
        self.loss = mean([self.loss_of(self.model(self.read(self.X[i])), self.Y[i]) for i in places])
        told = self.loss.data
        if self.penalty:
            self.loss = self.loss + l2(self.model.parameters(), self.penalty)
        self.losses.append(told)
        self.model.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        return told

    def names(self):
        """What the parameters are called."""
        return [name for name, _ in self.model.named_parameters()]

    def numbers(self):
        """Every parameter, then every gradient, in the order of their names."""
        parameters = [p for _, p in self.model.named_parameters()]
        return array("d", [p.data for p in parameters] + [p.grad for p in parameters])

    def forward(self):
        """The network as a function of JavaScript.

        It takes the parameters in the order of their names, a point and a list, into which it writes what the network
        reads of the point and then what every neuron gives, layer by layer.
        """
        point = [Value(0.0), Value(0.0)]
        outputs = made = self.read(point)
        for layer in self.model.layers:
            made = layer(made)
            outputs = outputs + (made if isinstance(made, list) else [made])
        names = {value: f"p[{i}]" for i, (_, value) in enumerate(self.model.named_parameters())}
        names |= {point[0]: "x1", point[1]: "x2"}
        return javascript(outputs, names, "p, x1, x2")

    def measure(self):
        """The loss of one example as a function of JavaScript: it takes the network's output, the target and a list."""
        output, target = Value(0.0), Value(0.0)
        return javascript([self.loss_of(output, target)], {output: "output", target: "target"}, "output, target")

    def why(self, name, example):
        """Of a parameter, by its name, and the loss of one example: `explain`, the page of steps, and where it begins.

        That is the first step in which the parameter receives a gradient, and what is said of this parameter there.
        """
        point = [Value(x, f"x{i}") for i, x in enumerate(self.X[example], 1)]
        output = self.model(self.read(point))
        output.label = self.output
        loss = self.loss_of(output, self.Y[example])
        loss.label = "loss"
        parameter = dict(self.model.named_parameters())[name]
        told, sequence = wengert.explain(parameter, loss), wengert.steps(loss)
        turn = next(step for step in sequence if any(move.name == told.name for move in step.contributions))
        return [str(told), str(sequence.page()), f"{turn.number + 1},{told.name}"]

    def diagnosis(self):
        """What `diagnose` says of the last step and of the losses so far; in words, too, where it finds nothing."""
        if not self.losses:
            return ""
        found = wengert.diagnose(self.model, self.loss, self.losses)
        if found:
            return str(found)
        falls = "the loss falls, and " if self.losses[-1] < self.losses[0] else ""
        return f"Healthy: {falls}no neuron is dead or saturated."
