"""The Python of the playground: a network of scalar Values that trains step by step and answers for its weights.

In the browser a worker calls a `Playground`; what it gives are numbers and texts.
"""

import random
from array import array

import wengert
from wengert import Graph, Value, data, mean
from wengert.losses import binary_cross_entropy_with_logits
from wengert.nn import MLP
from wengert.optim import SGD, Adam
from wengert.view.javascript import Script

COUNT = 60  # examples
OPTIMIZERS = {"adam": Adam, "sgd": SGD}


def examples(kind):
    """Points of the plane around its middle, and their classes, 0 and 1."""
    if kind == "moons":
        X, Y = data.moons(COUNT, noise=0.1, seed=0)
        return [[x - 0.5, y - 0.25] for x, y in X], Y
    if kind == "circles":
        return data.circles(COUNT, noise=0.1, factor=0.4, seed=0)
    if kind == "spiral":
        X, Y = data.spiral(COUNT // 2, classes=2, noise=0.1, seed=0)
        return [[1.4 * x, 1.4 * y] for x, y in X], Y
    corners, classes = data.xor()
    draw = random.Random(0).gauss
    X = [[2 * x - 1 + draw(0, 0.2) for x in corner] for corner in corners for _ in range(COUNT // 4)]
    return X, [y for y in classes for _ in range(COUNT // 4)]


class Playground:
    """A network, its examples and its optimizer.

    Args:
        layers: how many neurons each hidden layer has.
        activation: theirs.
        optimizer: "adam" or "sgd".
        rate: the learning rate.
        seed: decides the weights.
        X, Y: the examples and their classes.
    """

    def __init__(self, layers, activation, optimizer, rate, seed, X, Y):
        self.model = MLP(2, [*layers, 1], activation=activation, rng=random.Random(seed))
        self.optimizer = OPTIMIZERS[optimizer](self.model, lr=rate)
        self.losses = []
        self.loss = None
        self.learn_from(X, Y)

    def learn_from(self, X, Y):
        """Take these examples from the next step on."""
        self.X, self.Y = X, Y

    def set_rate(self, rate):
        """Take steps of this size from the next on."""
        self.optimizer.lr = rate

    def step(self):
        """One step of training on all examples; the loss before it."""
        pairs = zip(self.X, self.Y, strict=True)
        self.loss = mean([binary_cross_entropy_with_logits(self.model(x), y) for x, y in pairs])
        self.losses.append(self.loss.data)
        self.model.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        return self.loss.data

    def names(self):
        """What the parameters are called."""
        return [name for name, _ in self.model.named_parameters()]

    def numbers(self):
        """Every parameter, then every gradient, in the order of their names."""
        parameters = [p for _, p in self.model.named_parameters()]
        return array("d", [p.data for p in parameters] + [p.grad for p in parameters])

    def forward(self):
        """The network as a function of JavaScript, made from the rules of the table of operations.

        It takes the parameters in the order of their names, a point and a list, into which it writes what every neuron
        gives, layer by layer.
        """
        point = [Value(0.0), Value(0.0)]
        made, outputs = point, []
        for layer in self.model.layers:
            made = layer(made)
            outputs += made if isinstance(made, list) else [made]
        names = {value: f"p[{i}]" for i, (_, value) in enumerate(self.model.named_parameters())}
        names |= {point[0]: "x1", point[1]: "x2"}
        graph, script = Graph(*outputs), Script()
        rules, lines = {}, []
        for place, (op, operands, value) in enumerate(graph):
            if op.name != "leaf":
                rule = rules.setdefault(script.rules(op, len(operands)), f"f{len(rules)}")
                given = ", ".join(names[graph.values[x]] if isinstance(x, int) else repr(x) for x in operands)
                lines.append(f"const v{place} = {rule}({given});")
                names[value] = f"v{place}"
        lines += [f"out[{i}] = {names[value]};" for i, value in enumerate(outputs)]
        head = [script.definitions(), *(f"const [{name}] = {rule};" for rule, name in rules.items())]
        return "\n".join([*head, "return (p, x1, x2, out) => {", *lines, "};"])

    def why(self, name, example):
        """Of a parameter, by its name, and the loss of one example: `explain`, the page of steps, and where it begins.

        That is the first step in which the parameter receives a gradient, and what is said of this parameter there.
        """
        inputs = [Value(x, f"x{i}") for i, x in enumerate(self.X[example], 1)]
        logit = self.model(inputs)
        logit.label = "logit"
        loss = binary_cross_entropy_with_logits(logit, self.Y[example])
        loss.label = "loss"
        parameter = dict(self.model.named_parameters())[name]
        told, sequence = wengert.explain(parameter, loss), wengert.steps(loss)
        turn = next(step for step in sequence if any(move.name == told.name for move in step.contributions))
        return [str(told), str(sequence.page()), f"{turn.number + 1},{told.name}"]

    def diagnosis(self):
        """What `diagnose` says of the last step and of the losses so far."""
        return str(wengert.diagnose(self.model, self.loss, self.losses)) if self.losses else ""
