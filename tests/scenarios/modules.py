"""Modules of the user's own: nested, in lists and dicts and attributes, derived from those of `wengert.nn`."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses, nn

X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [0.1, 0.2], [-1.0, -1.5], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-0.3, 0.6]]
T = [0.1 * i - 0.4 for i in range(9)]
MANY = [[0.03 * i - 1.0, 0.9 - 0.02 * i] for i in range(64)]


class Line(nn.Module):
    def __init__(self, slope=2.0, offset=1.0):
        self.slope, self.offset = Value(slope), Value(offset)

    def __call__(self, x):
        return self.slope * x + self.offset


class Residual(nn.Module):
    def __init__(self, inner):
        self.inner = inner
        self.scale = 1.0

    def __call__(self, x):
        return [a + self.scale * b for a, b in zip(x, self.inner(x), strict=True)]


@scenario
def parameter_of_a_module_is_replaced(compile):
    line = Line()
    f = compile(lambda x: line(x) ** 2)
    for k in range(24):
        if k in (5, 11, 21):
            line.slope = Value(0.1 * k)
        yield f(T[k % 9]), line


@scenario
def inner_module_is_replaced(compile):
    block = Residual(nn.Layer(2, 2, "tanh", rng=1))
    f = compile(lambda x: sum(block(x)))
    for k in range(22):
        if k == 5:
            block.inner = nn.Layer(2, 2, "sigmoid", rng=2)
        if k == 11:
            block.inner = Residual(block.inner)
        if k == 17:
            block.inner.inner.neurons[0].b = Value(1.0)
        yield f(X[k % 9]), block


@scenario
def float_of_a_module_is_changed(compile):
    block = Residual(nn.Layer(2, 2, "tanh", rng=3))
    f = compile(lambda x: wengert.dot(block(x), [1.0, -1.0]))
    for k in range(16):
        if k in (5, 11):
            block.scale *= 0.5
        yield f.mean(MANY), block
        yield f.map(X)


class Experts(nn.Module):
    def __init__(self):
        self.by_name = {"wide": nn.MLP(2, [4, 1], "tanh", rng=4), "deep": nn.MLP(2, [2, 2, 1], "tanh", rng=5)}
        self.gate = Value(0.3)

    def __call__(self, x):
        g = self.gate.sigmoid()
        return g * self.by_name["wide"](x) + (1.0 - g) * self.by_name["deep"](x)


@scenario
def model_in_a_dict_is_replaced(compile):
    experts = Experts()
    f = compile(lambda x: experts(x))
    for k in range(18):
        if k == 5:
            experts.by_name["deep"] = nn.MLP(2, [3, 1], "sigmoid", rng=6)
        if k == 11:
            experts.by_name.update(wide=experts.by_name["deep"])
        yield f(X[k % 9]), experts


@scenario
def models_of_a_dict_are_summed(compile):
    heads = {name: nn.Neuron(2, "tanh", rng=k) for k, name in enumerate("abc")}
    f = compile(lambda x: sum(head(x) for head in heads.values()))
    for k in range(22):
        if k == 5:
            del heads["b"]
        if k == 10:
            heads["d"] = nn.Neuron(2, "linear", rng=k)
        if k == 16:
            heads["a"], heads["c"] = heads["c"], nn.Neuron(2, "sigmoid", rng=k)
        yield f(X[k % 9]), heads


class Pair(nn.Module):
    def __init__(self, first, second):
        self.parts = (first, second)

    def __call__(self, x):
        first, second = self.parts
        return first(x) * second(x)


@scenario
def tuple_of_modules_is_replaced(compile):
    pair = Pair(Line(), Line(0.5, -1.0))
    f = compile(lambda x: pair(x))
    for k in range(22):
        if k == 5:
            pair.parts = pair.parts[::-1]
        if k == 11:
            pair.parts = (pair.parts[0], pair.parts[0])
        if k == 17:
            pair.parts[0].slope = Value(3.0)
        yield f(T[k % 9]), pair


class Scaled(nn.MLP):
    """An MLP with a temperature."""

    temperature = 1.0

    def __call__(self, x):
        return super().__call__(x) / self.temperature


@scenario
def subclass_of_mlp_with_a_class_attribute(compile):
    model = Scaled(2, [3, 1], "tanh", rng=7)
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 5:
            Scaled.temperature = 2.0
        if k == 11:
            model.temperature = 4.0
        if k == 17:
            del model.temperature
        yield f(X[k % 9]), model


class Normed(nn.Layer):
    """A layer whose outputs are divided by their norm."""

    def __init__(self, *args, eps=1e-3, **named):
        super().__init__(*args, **named)
        self.eps = eps

    def __call__(self, x):
        y = super().__call__(x)
        norm = wengert.sqrt(sum(h * h for h in y) + self.eps)
        return [h / norm for h in y]


@scenario
def subclass_of_layer_in_an_mlp(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=8)
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 5:
            model.layers[0] = Normed(2, 3, "tanh", rng=8)
        if k in (11, 17):
            model.layers[0].eps *= 100.0
        yield f(X[k % 9]), model


class Gated(nn.Neuron):
    """A neuron with a second bias."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.gate = Value(1.0)

    def __call__(self, x):
        return self.gate * super().__call__(x)


@scenario
def subclass_of_neuron_in_a_layer(compile):
    layer = nn.Layer(2, 3, "tanh", rng=9)
    layer.neurons[1] = Gated(2, "tanh", rng=1)
    f = compile(lambda x: wengert.dot(layer(x), [1.0, 2.0, 3.0]))
    for k in range(20):
        if k == 6:
            layer.neurons[1].gate = Value(-0.5)
        if k == 11:
            layer.neurons[2] = Gated(2, "linear", rng=2)
        yield f(X[k % 9]), layer


@scenario
def method_of_a_subclass_is_redefined(compile):
    class Own(nn.Neuron):
        def __call__(self, x):
            return super().__call__(x) * 2.0

    neuron = Own(2, "tanh", rng=10)
    f = compile(lambda x: neuron(x))
    for k in range(18):
        if k == 5:
            Own.__call__ = lambda self, x: self.w[0] * x[0] - self.b
        if k == 13:
            del Own.__call__
        yield f(X[k % 9]), neuron


class Optional(nn.Module):
    def __init__(self):
        self.weight, self.bias = Value(1.5), None

    def __call__(self, x):
        out = self.weight * x
        return out if self.bias is None else out + self.bias


@scenario
def optional_bias_is_given_later(compile):
    model = Optional()
    f = compile(lambda x: model(x))
    for k in range(20):
        if k == 5:
            model.bias = Value(0.5)
        if k == 13:
            model.bias = None
        yield f(T[k % 9]), model


@scenario
def attribute_appears_and_goes(compile):
    line = Line()

    @compile
    def f(x):
        y = line(x)
        return y * line.gain if hasattr(line, "gain") else y

    for k in range(20):
        if k == 5:
            line.gain = Value(3.0)
        if k == 13:
            del line.gain
        yield f(T[k % 9]), line


class Lazy(nn.Module):
    """Makes its weights at the first call, as it does not know the width before."""

    def __init__(self):
        self.weights = []

    def __call__(self, x):
        while len(self.weights) < len(x):
            self.weights.append(Value(0.5 / (1 + len(self.weights))))
        return wengert.dot(self.weights[: len(x)], x)


@scenario
def lazy_module_makes_its_weights_when_it_is_called(compile):
    model = Lazy()
    f = compile(lambda x: model(x).tanh())
    for k in range(18):
        yield f([0.1 * k, 1.0] if k < 6 else [0.1 * k, 1.0, 2.0]), model


class Counting(nn.Module):
    """Counts its calls, as a batch norm does."""

    def __init__(self):
        self.w, self.calls = Value(2.0), 0

    def __call__(self, x):
        self.calls += 1
        return self.w * x


@scenario
def module_counts_its_calls(compile):
    model = Counting()
    f = compile(lambda x: model(x))
    for k in range(14):
        yield f(T[k % 9]), model
        yield model.calls
        yield [f.map(T), model.calls]


class RunningMean(nn.Module):
    def __init__(self):
        self.mean, self.w, self.training = 0.0, Value(1.0), True

    def __call__(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x
        return self.w * (x - self.mean)


@scenario
def running_mean_is_updated_in_training_alone(compile):
    model = RunningMean()
    f = compile(lambda x: model(x))
    for k in range(24):
        model.training = k not in range(7, 15)
        yield f(T[k % 9]), model
        yield model.mean


class Recurrent(nn.Module):
    def __init__(self):
        self.cell = nn.Layer(3, 2, "tanh", rng=11)
        self.steps = 3

    def __call__(self, xs):
        state = [0.0, 0.0]
        for x in xs[: self.steps]:
            state = self.cell([x, *state])
        return state[0] - state[1]


@scenario
def recurrent_cell_is_replaced(compile):
    model = Recurrent()
    f = compile(lambda xs: model(xs))
    for k in range(22):
        if k == 5:
            model.cell = nn.Layer(3, 2, "sigmoid", rng=12)
        if k == 10:
            model.steps = 5
        if k == 16:
            model.cell.neurons[0].w.reverse()
        yield f([0.1 * k, 0.2, 0.3, 0.4, 0.5]), model


class Attention(nn.Module):
    def __init__(self):
        self.query, self.key = nn.Layer(2, 2, "linear", rng=13), nn.Layer(2, 2, "linear", rng=14)
        self.causal = False

    def __call__(self, tokens):
        total = 0.0
        for i, token in enumerate(tokens):
            seen = tokens[: i + 1] if self.causal else tokens
            scores = [wengert.dot(self.query(token), self.key(other)) for other in seen]
            total += wengert.dot(wengert.softmax(scores), [other[0] for other in seen])
        return total


@scenario
def attention_becomes_causal_and_gets_another_key(compile):
    model = Attention()
    f = compile(lambda tokens: model(tokens))
    for k in range(22):
        if k == 5:
            model.causal = True
        if k == 10:
            model.key = nn.Layer(2, 2, "linear", rng=15)
        if k == 17:
            model.key = model.query
        yield f(X[k % 4 : k % 4 + 4]), model


@dataclass
class Polynomial(nn.Module):
    coefficients: list[Value] = field(default_factory=lambda: [Value(1.0), Value(-0.5), Value(0.25)])
    powers: tuple[int, ...] = (0, 1, 2)

    def __call__(self, x):
        return sum(c * x**p for c, p in zip(self.coefficients, self.powers, strict=True))


@scenario
def module_that_is_a_dataclass(compile):
    model = Polynomial()
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 5:
            model.powers = (0, 1, 3)
        if k == 11:
            model.coefficients = [*model.coefficients[:2], Value(2.0)]
        if k == 17:
            model.coefficients.append(Value(0.1))
            model.powers += (4,)
        yield f(0.5 + T[k % 9]), model


class Spectral(nn.Module):
    """A property computes what the call reads."""

    def __init__(self):
        self.raw, self.limit = Value(0.7), 2.0

    @property
    def rate(self):
        return self.limit * self.raw.sigmoid()

    def __call__(self, x):
        return wengert.exp(-self.rate * x)


@scenario
def property_of_a_module(compile):
    model = Spectral()
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 5:
            model.limit = 3.0
        if k == 11:
            model.raw = Value(-0.7)
        if k == 17:
            Spectral.rate = property(lambda self: self.limit * self.raw)
        yield f(0.2 * k), model


@scenario
def call_gets_an_option(compile):
    class Head(nn.Module):
        def __init__(self):
            self.inner = nn.Layer(2, 2, "linear", rng=16)

        def __call__(self, x, *, temperature=1.0):
            return wengert.softmax([z / temperature for z in self.inner(x)])

    head, options = Head(), {}
    f = compile(lambda x: head(x, **options)[0])
    for k in range(20):
        if k == 5:
            options["temperature"] = 2.0
        if k == 13:
            options.clear()
        yield f(X[k % 9]), head


@scenario
def forward_is_a_partial_of_the_layers(compile):
    layers = [nn.Layer(2, 2, "tanh", rng=17), nn.Layer(2, 1, "linear", rng=18)]
    forward = functools.partial(functools.reduce, lambda x, layer: layer(x), layers)
    f = compile(lambda x: forward(x))
    for k in range(18):
        if k == 5:
            layers[0] = nn.Layer(2, 2, "sigmoid", rng=17)
        if k == 11:
            layers.insert(1, nn.Layer(2, 2, "tanh", rng=19))
        yield f(X[k % 9]), layers


class Compiled(nn.Module):
    """Its method is compiled in the class, for all its instances."""

    def __init__(self, rng):
        self.net, self.weight = nn.MLP(2, [2, 1], "tanh", rng=rng), 1.0


@scenario
def compiled_method_of_two_instances(compile):
    Compiled.loss = compile(lambda self, x, y: self.weight * (self.net(x) - y) ** 2)
    first, second = Compiled(1), Compiled(2)
    for k in range(22):
        if k == 6:
            first.weight = 0.5
        if k == 11:
            second.net = first.net
        if k == 17:
            first.net = nn.MLP(2, [3, 1], "tanh", rng=3)
        yield first.loss(X[k % 9], 0.5), first
        yield second.loss(X[k % 9], -0.5), second


@scenario
def wrong_number_of_outputs_raises_as_before(compile):
    model = nn.MLP(2, [3, 2], "tanh", rng=20)
    f = compile(lambda x: losses.mse(model(x), [0.5, 1.0]))
    for k in range(16):
        if k == 5:
            model.layers[-1] = nn.Layer(3, 3, "linear", rng=20)
        if k == 11:
            model.layers[-1].neurons.pop()
        yield attempt(lambda: f(X[k % 9]).data)


class Kernel(nn.Module):
    """Centres that are data, widths that are learnt."""

    def __init__(self):
        self.centres, self.widths = [[0.0, 0.0], [1.0, -1.0]], [Value(1.0), Value(0.5)]

    def __call__(self, x):
        near = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in self.centres]
        return sum(wengert.exp(-w * d) for w, d in zip(self.widths, near, strict=True))


@scenario
def centres_of_a_kernel_move_and_multiply(compile):
    model = Kernel()
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 5:
            model.centres[0] = [0.5, math.pi]
        if k == 10:
            model.centres[1][1] = 0.25
        if k == 16:
            model.centres.append([2.0, 2.0])
            model.widths.append(Value(0.1))
        yield f(X[k % 9]), model
        yield f.map(X)
