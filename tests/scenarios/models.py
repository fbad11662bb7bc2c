"""Models of `wengert.nn` of which a part is replaced while a compiled function uses them."""

from __future__ import annotations

import copy

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses, nn

X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [0.1, 0.2], [-1.0, -1.5], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-0.3, 0.6]]
Y = [0.5, -0.5, 1.0, 0.0, -1.0, 0.25, 0.75, -0.25, 0.1]
MANY = [[0.03 * i - 1.0, 0.9 - 0.02 * i] for i in range(64)]
TARGETS = [0.1 * (i % 7) for i in range(64)]


@scenario
def hidden_layer_is_replaced(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=1)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (5, 13):
            model.layers[0] = nn.Layer(2, 3, "tanh", rng=k)
        yield f(X[k % 9]), model


@scenario
def last_layer_is_replaced_for_another_task(compile):
    model = nn.MLP(2, [4, 2], "tanh", rng=2)

    @compile
    def loss(x, target):
        return losses.cross_entropy(model(x), target)

    for k in range(18):
        if k == 6:
            model.layers[-1] = nn.Layer(4, 3, "linear", rng=7)
        yield loss(X[k % 9], k % 2), model


@scenario
def hidden_width_grows_by_two_new_layers(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=3)
    f = compile(lambda x: model(x))
    for k in range(22):
        if k in (5, 10, 16):
            width = len(model.layers[0].neurons) + 1
            model.layers = [nn.Layer(2, width, "tanh", rng=k), nn.Layer(width, 1, "linear", rng=k)]
        yield f(X[k % 9]), model


@scenario
def layer_is_replaced_in_batches(compile):
    model = nn.MLP(2, [3, 1], rng=4, bias="uniform")
    loss = compile(lambda x, y: losses.mse(model(x), y))
    for k in range(16):
        if k in (5, 11):
            model.layers[0] = nn.Layer(2, 3, "relu", bias="uniform", rng=k)
        yield loss.mean(MANY, TARGETS), model
        yield loss.map(X, Y)


@scenario
def neuron_is_replaced(compile):
    layer = nn.Layer(2, 3, "sigmoid", rng=5)
    f = compile(lambda x: sum(layer(x)))
    for k in range(20):
        if k in (5, 10, 17):
            layer.neurons[k % 3] = nn.Neuron(2, "sigmoid", rng=k)
        yield f(X[k % 9]), layer


@scenario
def neuron_is_replaced_by_one_of_another_activation(compile):
    layer = nn.Layer(2, 2, "tanh", rng=6)

    @compile
    def norm(x):
        a, b = layer(x)
        return a * a + 2.0 * b

    for k in range(22):
        if k == 6:
            layer.neurons[0] = nn.Neuron(2, "gelu", rng=6)
        yield norm(X[k % 9]), layer


@scenario
def one_weight_is_replaced_by_a_new_value(compile):
    neuron = nn.Neuron(2, "linear", rng=1)
    f = compile(lambda x: neuron(x) ** 2)
    for k in range(24):
        if k in (5, 11, 21):
            neuron.w[1] = Value(0.3 * k)
        yield f(X[k % 9]), neuron


@scenario
def list_of_weights_is_replaced(compile):
    neuron = nn.Neuron(2, "tanh", rng=2)
    f = compile(lambda x: neuron(x))
    for k in range(20):
        if k in (6, 12):
            neuron.w = [Value(w.data * 0.5) for w in neuron.w]
        yield f(X[k % 9]), neuron


@scenario
def bias_is_replaced(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=8)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (5, 13):
            for neuron in model.layers[0].neurons:
                neuron.b = Value(0.1 * k)
        yield f(X[k % 9]), model


@scenario
def bias_is_taken_out_by_a_plain_zero(compile):
    neuron = nn.Neuron(2, "linear", bias="uniform", rng=3)
    loss = compile(lambda x, y: (neuron(x) - y) ** 2)
    for k in range(16):
        if k == 6:
            neuron.b = 0.0
        yield loss.mean(MANY, TARGETS), neuron


@scenario
def weight_becomes_a_constant(compile):
    """A float in the place of a Value: it takes part, and gets no gradient."""
    neuron = nn.Neuron(2, "tanh", rng=4)
    f = compile(lambda x: neuron(x))
    for k in range(20):
        if k == 5:
            neuron.w[0] = 0.25
        if k == 14:
            neuron.w[0] = Value(0.5)
        yield f(X[k % 9]), neuron


@scenario
def two_weights_change_places(compile):
    neuron = nn.Neuron(2, "linear", rng=5)
    f = compile(lambda x: neuron(x) * neuron.w[0])
    for k in range(22):
        if k in (5, 11, 19):
            neuron.w[0], neuron.w[1] = neuron.w[1], neuron.w[0]
        yield f(X[k % 9]), neuron


@scenario
def weights_of_two_neurons_are_exchanged(compile):
    layer = nn.Layer(2, 2, "tanh", rng=6)
    f = compile(lambda x: wengert.dot(layer(x), [1.0, 3.0]))
    for k in range(20):
        if k in (5, 11):
            first, second = layer.neurons
            first.w, second.w = second.w, first.w
        yield f(X[k % 9]), layer


@scenario
def activation_is_a_closure_whose_slope_changes(compile):
    slope = 0.1

    def leaky(z):
        return wengert.maximum(z, slope * z)

    model = nn.MLP(2, [3, 1], leaky, rng=7)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (6, 13):
            slope += 0.2
        yield f(X[k % 9]), model


def squash(z):
    return z.tanh()


@scenario
def activation_calls_a_global_function_that_is_replaced(compile):
    global squash
    model = nn.MLP(2, [3, 1], lambda z: squash(z), rng=8)
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 5:
            squash = Value.sigmoid
        if k == 13:
            squash = abs
        yield f(X[k % 9]), model


class Swish:
    """An activation with a parameter, which is no Module."""

    def __init__(self, beta):
        self.beta = beta

    def __call__(self, z):
        return z * (self.beta * z).sigmoid()


@scenario
def activation_is_an_object_with_a_setting(compile):
    swish = Swish(1.0)
    model = nn.MLP(2, [2, 1], swish, rng=9)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (5, 11):
            swish.beta *= 2.0
        yield f(X[k % 9]), model


@scenario
def activation_learns_and_its_parameter_is_replaced(compile):
    swish = Swish(Value(1.0))
    model = nn.MLP(2, [2, 1], swish, rng=9)
    loss = compile(lambda x, y: losses.huber(model(x), y))
    for k in range(16):
        if k in (5, 11):
            swish.beta = Value(0.5 + 0.1 * k)
        yield loss.mean(MANY, TARGETS), model, swish.beta


@scenario
def layer_no_longer_squeezes(compile):
    layer = nn.Layer(2, 1, "linear", rng=1)
    f = compile(lambda x: layer(x))
    for k in range(16):
        if k == 5:
            layer.squeeze = False
        if k == 11:
            layer.squeeze = True
        yield f(X[k % 9]), layer


@scenario(documented="what is written into the dict of a Module, past its attributes, is not counted")
def attributes_are_taken_over_through_vars(compile):
    model, other = nn.MLP(2, [3, 1], "tanh", rng=1), nn.MLP(2, [2, 2, 1], "tanh", rng=2)
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 6:
            vars(model).update(vars(other))
        yield f(X[k % 9]), model


@scenario
def attributes_are_set_by_name(compile):
    layer = nn.Layer(2, 2, "tanh", rng=2)
    f = compile(lambda x: layer(x)[0] - layer(x)[1])
    for k in range(20):
        for when, name, thing in [(5, "b", Value(0.5)), (9, "w", [Value(1.0), Value(-1.0)]), (13, "b", Value(-0.5))]:
            if k == when:
                setattr(layer.neurons[0], name, thing)
        yield f(X[k % 9]), layer


class Doubled(nn.Layer):
    def __call__(self, x):
        return [2.0 * y for y in super().__call__(x)]


@scenario
def class_of_a_layer_is_changed(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=3)
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 5:
            model.layers[0].__class__ = Doubled
        if k == 13:
            model.layers[0].__class__ = nn.Layer
        yield f(X[k % 9]), model


@scenario
def call_of_neuron_is_patched_for_all(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=4)
    f = compile(lambda x: model(x))
    plain = nn.Neuron.__call__
    for k in range(20):
        if k == 6:
            nn.Neuron.__call__ = lambda self, x: 0.5 * plain(self, x)
        if k == 14:
            nn.Neuron.__call__ = plain
        yield f(X[k % 9]), model


@scenario
def model_stays_as_it_is_while_its_copy_is_edited(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=5)
    both = [model, copy.deepcopy(model)]
    f = compile(lambda x: both[0](x) - both[1](x))
    for k in range(20):
        if k in (5, 11):
            both[1].layers[0].neurons[k % 3] = nn.Neuron(2, "tanh", rng=k)
        yield f(X[k % 9]), both[0], both[1]


@scenario
def shallow_copy_shares_the_layers(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=6)
    view = copy.copy(model)
    f = compile(lambda x: view(x))
    for k in range(20):
        if k == 5:
            model.layers[0] = nn.Layer(2, 3, "sigmoid", rng=6)
        if k == 11:
            model.layers = []  # the view keeps its list
        yield f(X[k % 9]), view


@scenario
def numbers_are_written_and_then_objects_replaced(compile):
    neuron = nn.Neuron(2, "tanh", rng=7)
    f = compile(lambda x: neuron(x))
    for k in range(24):
        neuron.w[0].data += 0.01
        if k in (5, 11, 21):
            neuron.w[0] = Value(neuron.w[0].data - 1.0)
        yield f(X[k % 9]), neuron


@scenario
def inputs_no_longer_fit_after_a_weight_was_removed(compile):
    neuron = nn.Neuron(3, "tanh", rng=8)
    f = compile(lambda x: neuron(x))
    for k in range(16):
        if k == 5:
            neuron.w.pop()
        if k == 10:
            neuron.nin = 2
        yield attempt(lambda: f([0.5, 1.0]).data)
        yield attempt(lambda: f([0.5, 1.0, 0.1 * k]).data)


@scenario
def parameter_is_also_read_beside_the_model(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=9)

    @compile
    def regularised(x, y):
        return losses.mse(model(x), y) + losses.l2(model.parameters(), 0.1)

    for k in range(16):
        if k == 6:
            model.layers[1].neurons[0].w[0] = Value(2.0)
        if k == 12:
            model.layers[0].neurons.append(nn.Neuron(2, "tanh", rng=0))
            model.layers[1].neurons[0].w.append(Value(0.5))
        yield regularised(X[k % 9], Y[k % 9]), model


@scenario
def bound_call_of_a_model_is_compiled(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=1)
    f = compile(model.__call__)
    for k in range(18):
        if k in (5, 11):
            model.layers[-1] = nn.Layer(3, 1, "linear", rng=k)
        yield f(X[k % 9]), model


@scenario
def model_itself_is_compiled(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=2)
    f = compile(model)
    for k in range(18):
        if k in (5, 11):
            model.layers[0].neurons[1].b = Value(0.1 * k)
        yield f.map(X)
        yield f(X[k % 9]), model


@scenario
def gradient_of_the_model_with_respect_to_its_input(compile):
    model = nn.MLP(1, [3, 1], "tanh", rng=3)
    slope = compile(lambda t: wengert.grad(lambda s: model([s]))(t))
    for k in range(16):
        if k == 6:
            model.layers[0] = nn.Layer(1, 3, "sigmoid", rng=3)
        yield slope(0.2 * k - 1.0), model
