"""Lists of layers, neurons and weights that are edited while a compiled function uses them."""

from __future__ import annotations

import collections
import itertools
import random

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses, nn

X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [0.1, 0.2], [-1.0, -1.5], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-0.3, 0.6]]
MANY = [[0.03 * i - 1.0, 0.9 - 0.02 * i] for i in range(64)]


def squares(count, activation="tanh"):
    """Layers that can stand in any order."""
    return [nn.Layer(2, 2, activation, rng=k, bias="uniform") for k in range(count)]


class Stack(nn.Module):
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x[0] - 0.5 * x[1]


@scenario
def last_layer_is_popped(compile):
    model = Stack(squares(4))
    f = compile(lambda x: model(x))
    for k in range(18):
        if k in (5, 11):
            model.layers.pop()
        yield f(X[k % 9]), model


@scenario
def layer_is_inserted_in_front(compile):
    model = Stack(squares(1))
    f = compile(lambda x: model(x))
    for k in range(18):
        if k in (5, 11):
            model.layers.insert(0, nn.Layer(2, 2, "sigmoid", rng=k))
        yield f(X[k % 9]), model


@scenario
def network_grows_deeper_while_it_trains(compile):
    model = Stack(squares(1))
    loss = compile(lambda x: model(x) ** 2)
    for k in range(22):
        if k in (5, 10, 16):
            model.layers.append(nn.Layer(2, 2, "tanh", rng=k))
        yield loss.mean(MANY), model


@scenario
def layers_are_reversed_in_place(compile):
    model = Stack(squares(3))
    f = compile(lambda x: model(x))
    for k in range(22):
        if k in (5, 11, 17):
            model.layers.reverse()
        yield f(X[k % 9]), model


@scenario
def slice_of_layers_is_assigned(compile):
    model = Stack(squares(4))
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 6:
            model.layers[1:3] = [nn.Layer(2, 2, "relu", rng=9)]
        if k == 13:
            model.layers[:] = squares(2, "sigmoid")
        yield f(X[k % 9]), model


@scenario
def every_other_layer_is_deleted(compile):
    model = Stack(squares(5))
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 6:
            del model.layers[::2]
        yield f(X[k % 9]), model
        yield f.map(X)


@scenario
def layers_are_cleared_and_filled_again(compile):
    model = Stack(squares(2))
    f = compile(lambda x: model(x))
    for k in range(18):
        if k in (5, 11):
            kept = list(model.layers)
            model.layers.clear()
            model.layers.extend([kept[1], kept[0]])
        yield f(X[k % 9]), model


@scenario
def all_layers_are_removed(compile):
    model = Stack(squares(2))
    f = compile(lambda x: Value(1.0) * model(x))
    for k in range(16):
        if k == 5:
            model.layers.clear()
        if k == 12:
            model.layers += squares(1)
        yield f(X[k % 9])


@scenario
def neurons_are_sorted_by_their_bias(compile):
    layer = nn.Layer(2, 4, "tanh", bias="uniform", rng=1)
    f = compile(lambda x: wengert.dot(layer(x), [1.0, 2.0, 4.0, 8.0]))
    for k in range(20):
        if k in (5, 11):
            layer.neurons[0].b.data += 1.0
            layer.neurons.sort(key=lambda neuron: neuron.b.data)
        yield f(X[k % 9]), layer


@scenario
def neurons_are_shuffled(compile):
    layer = nn.Layer(2, 5, "sigmoid", bias="uniform", rng=2)
    shuffle = random.Random(0).shuffle
    f = compile(lambda x: wengert.dot(layer(x), [1.0, -2.0, 3.0, -4.0, 5.0]))
    for k in range(22):
        if k in (5, 10, 16):
            shuffle(layer.neurons)
        yield f(X[k % 9]), layer


@scenario
def weights_are_reversed_in_place(compile):
    neuron = nn.Neuron(2, "linear", rng=3)
    f = compile(lambda x: neuron(x))
    for k in range(20):
        if k in (5, 13):
            neuron.w.reverse()
        yield f(X[k % 9]), neuron


@scenario
def neuron_is_removed_with_what_reads_it(compile):
    model = nn.MLP(2, [4, 1], "tanh", rng=4)
    f = compile(lambda x: model(x))
    for k in range(22):
        if k in (5, 10, 16):
            del model.layers[0].neurons[1]
            del model.layers[1].neurons[0].w[1]
        yield f(X[k % 9]), model


@scenario
def neurons_are_pruned_in_batches(compile):
    model = nn.MLP(2, [6, 1], "tanh", rng=5)
    loss = compile(lambda x: losses.mse(model(x), x[0] * x[1]))
    for k in range(16):
        if k in (5, 11):
            outer = model.layers[1].neurons[0]
            least = min(range(len(outer.w)), key=lambda i: abs(outer.w[i].data))
            model.layers[0].neurons.pop(least)
            outer.w.pop(least)
        yield loss.mean(MANY), model


@scenario
def another_output_is_appended(compile):
    model = nn.MLP(2, [3, 2], "tanh", rng=6)
    surprise = compile(lambda x, target: losses.cross_entropy(model(x), target))
    for k in range(18):
        if k == 6:
            model.layers[-1].neurons.append(nn.Neuron(3, "linear", rng=k))
        yield surprise(X[k % 9], k % 2), model
        if k > 6:
            yield surprise(X[k % 9], 2), model


@scenario
def layers_are_a_tuple_that_is_replaced(compile):
    model = Stack(tuple(squares(2)))
    f = compile(lambda x: model(x))
    for k in range(18):
        if k in (5, 11):
            model.layers = (*model.layers, nn.Layer(2, 2, "tanh", rng=k))
        yield f(X[k % 9]), model


@scenario
def list_becomes_an_equal_one_and_is_edited_then(compile):
    model = Stack(squares(2))
    old = model.layers
    f = compile(lambda x: model(x))
    for k in range(22):
        if k == 5:
            model.layers = list(old)
        if k == 10:
            old.pop()  # nobody's any more
        if k == 16:
            model.layers.pop(0)
        yield f(X[k % 9]), model


@scenario
def one_layer_stands_in_the_list_twice(compile):
    model = Stack(squares(2))
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 5:
            model.layers[1] = model.layers[0]
        if k == 12:
            model.layers *= 2
        yield f(X[k % 9]), model


@scenario
def layers_rotate_in_a_deque(compile):
    layers = collections.deque(squares(3))

    def forward(x):
        for layer in layers:
            x = layer(x)
        return x[0] + x[1]

    f = compile(forward)
    for k in range(22):
        if k in (5, 11):
            layers.rotate(1)
        if k == 17:
            layers.popleft()
        yield f(X[k % 9]), list(layers)


@scenario
def layer_is_removed_by_its_identity(compile):
    model = Stack(squares(3))
    middle = model.layers[1]
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 5:
            model.layers.remove(middle)
        if k == 13:
            model.layers.append(middle)
        yield f(X[k % 9]), model, middle


@scenario
def nested_lists_of_weights(compile):
    table = [[Value(0.1 * (i + j)) for j in range(2)] for i in range(3)]
    f = compile(lambda x: sum(wengert.dot(row, x).tanh() for row in table))
    for k in range(24):
        if k == 5:
            table[1][0] = Value(1.0)
        if k == 10:
            table[2] = [Value(-1.0), Value(1.0)]
        if k == 16:
            table.append([Value(2.0), Value(0.5)])
        if k == 21:
            table[0].reverse()
        yield f(X[k % 9]), table


@scenario
def rows_of_an_embedding_are_exchanged(compile):
    table = [[Value(0.5 * i - j) for j in range(2)] for i in range(5)]
    f = compile(lambda token, x: wengert.dot(wengert.take(table, token), x))
    for k in range(20):
        if k in (5, 11):
            table[0], table[k % 5] = table[k % 5], table[0]
        yield f(k % 5, X[k % 9]), table


@scenario
def vocabulary_grows(compile):
    table = [Value(0.1 * i) for i in range(3)]
    f = compile(lambda token: table[token] ** 2)
    for k in range(16):
        if k in (5, 10):
            table.append(Value(1.0 + k))
        yield [attempt(lambda: f(3).data), f(k % 3).data, f(-1).data]
        yield f.map([0, 1, 2, 0, 1, 2, -1, -2, -3])


@scenario
def features_are_added_to_each_row(compile):
    weights, rows = [Value(0.5), Value(-0.5)], [[float(i), 1.0] for i in range(9)]
    f = compile(lambda x: sum(w * xi for w, xi in zip(weights, x, strict=True)))
    for k in range(16):
        if k in (5, 11):
            weights.append(Value(0.1 * k))
            rows = [[*row, 0.3 * i] for i, row in enumerate(rows)]
        yield f(rows[k % 9]), weights
        yield f.map(rows)


@scenario
def layers_are_chained_from_two_lists(compile):
    body, head = squares(2), squares(1, "linear")

    @compile
    def f(x):
        for layer in itertools.chain(body, head):
            x = layer(x)
        return x[0]

    for k in range(18):
        if k == 5:
            body.pop()
        if k == 11:
            head[0] = nn.Layer(2, 2, "linear", rng=30)
        yield f(X[k % 9]), body, head


@scenario
def length_of_the_list_is_used(compile):
    members = [nn.Neuron(2, "tanh", rng=k) for k in range(3)]
    f = compile(lambda x: sum(member(x) for member in members) / len(members))
    for k in range(22):
        if k in (5, 10):
            members.append(nn.Neuron(2, "tanh", rng=k))
        if k == 16:
            members.pop(0)
        yield f(X[k % 9]), members


@scenario
def enumerated_layers_with_a_skip_connection(compile):
    layers, skips = squares(4), {1, 3}

    @compile
    def f(x):
        for i, layer in enumerate(layers):
            y = layer(x)
            x = [a + b for a, b in zip(x, y, strict=True)] if i in skips else y
        return x[0] * x[1]

    for k in range(22):
        if k == 5:
            skips.add(2)
        if k == 11:
            skips.clear()
        if k == 17:
            layers.reverse()
        yield f(X[k % 9]), layers
