"""What is done to models between the steps: tying, pruning, freezing, transfer, fresh starts, states, checkpoints."""

from __future__ import annotations

import copy
import pickle
import random
import tempfile
from pathlib import Path

import wengert
from tests.scenarios.kit import scenario
from wengert import Value, checkpoint, losses, nn, optim, training

X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [0.1, 0.2], [-1.0, -1.5], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-0.3, 0.6]]
MANY = [[0.03 * i - 1.0, 0.9 - 0.02 * i] for i in range(64)]
SIGNS = [1.0 if i % 3 else -1.0 for i in range(64)]


@scenario
def weights_of_two_layers_are_tied(compile):
    model = nn.MLP(2, [2, 2], "tanh", rng=1)
    f = compile(lambda x: sum(model(x)))
    for k in range(20):
        if k == 6:
            for first, second in zip(model.layers[0].neurons, model.layers[1].neurons, strict=True):
                second.w = first.w
        yield f(X[k % 9]), model


@scenario
def tied_weights_are_untied(compile):
    shared = Value(0.8)
    layer = nn.Layer(2, 2, "linear", rng=2)
    for neuron in layer.neurons:
        neuron.w[0] = shared
    f = compile(lambda x: losses.mse(layer(x), [1.0, -1.0]))
    for k in range(18):
        if k == 5:
            layer.neurons[1].w[0] = Value(shared.data)  # the same number, a gradient of its own
        if k == 12:
            layer.neurons[0].w[0].data += 1.0
        yield f(X[k % 9]), layer, shared


@scenario
def autoencoder_reads_its_encoder_transposed(compile):
    rows = [[Value(0.2 * (i + 1) * (j - 0.5)) for j in range(2)] for i in range(3)]

    @compile
    def reconstruction(x):
        code = [wengert.dot(row, x).tanh() for row in rows]
        decoded = [wengert.dot(column, code) for column in zip(*rows, strict=True)]
        return losses.mse(decoded, x)

    for k in range(16):
        if k == 5:
            rows[1][0] = Value(0.9)
        if k == 11:
            rows.append([Value(0.1), Value(0.2)])
        yield reconstruction.mean(MANY), rows


@scenario
def smallest_weights_are_set_to_zero(compile):
    model = nn.MLP(2, [4, 1], "tanh", rng=3)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (5, 11):
            for p in sorted([p for p in model.parameters() if p.data], key=lambda p: abs(p.data))[: k // 2]:
                p.data = 0.0
        yield f(X[k % 9]), model


@scenario
def pruned_weights_become_constants(compile):
    """Magnitude pruning as one writes it: what is small is a plain 0.0 from then on."""
    model = nn.MLP(2, [3, 1], "tanh", rng=4)
    loss = compile(lambda x, y: losses.hinge(model(x), y))
    for k in range(16):
        if k in (6, 12):
            for neuron in model.layers[0].neurons:
                neuron.w = [w if abs(getattr(w, "data", w)) > 0.05 * k else 0.0 for w in neuron.w]
        yield loss.mean(MANY, SIGNS), model


@scenario
def mask_of_weights_is_changed(compile):
    weights, mask = [Value(0.5), Value(-1.5), Value(2.5)], [1.0, 1.0, 1.0]
    f = compile(lambda x: sum(w * m * xi for w, m, xi in zip(weights, mask, x, strict=True)))
    for k in range(22):
        if k in (5, 10, 18):
            mask[k % 3] = 0.0
        yield f([0.5, 1.0, 0.1 * k]), weights


@scenario
def mask_decides_which_weights_are_read(compile):
    model = nn.MLP(2, [4, 1], "tanh", rng=5)
    alive = [True] * 4

    @compile
    def f(x):
        hidden = [neuron(x) for neuron, on in zip(model.layers[0].neurons, alive, strict=True) if on]
        return sum(hidden) / sum(alive)

    for k in range(22):
        if k in (5, 10, 16):
            alive[k % 4] = False
        yield f(X[k % 9]), model


@scenario
def body_is_frozen_by_stop_gradient(compile):
    model, frozen = nn.MLP(2, [3, 1], "tanh", rng=6), False

    @compile
    def f(x):
        hidden = model.layers[0](x)
        if frozen:
            hidden = [wengert.stop_gradient(h) for h in hidden]
        return model.layers[1](hidden)

    for k in range(20):
        if k in (5, 13):
            frozen = not frozen
        yield f(X[k % 9]), model


@scenario
def head_is_replaced_and_trained_alone(compile):
    body, head = nn.MLP(2, [3, 3], "tanh", rng=7), nn.Neuron(3, "linear", rng=7)
    model = {"head": head}
    loss = compile(lambda x, y: losses.hinge(model["head"](body(x)), y))
    optimizer = optim.SGD(head, lr=0.1)
    for k in range(16):
        if k == 6:
            model["head"] = nn.Neuron(3, "tanh", rng=8)
            optimizer = optim.SGD(model["head"], lr=0.1)
        step = loss.mean(MANY, SIGNS)
        optimizer.zero_grad()
        step.backward()
        optimizer.step()
        yield [step.data, model["head"].state_dict(), body.state_dict()]


@scenario
def layers_are_transplanted_from_a_pretrained_model(compile):
    teacher, student = nn.MLP(2, [3, 3, 1], "tanh", rng=8), nn.MLP(2, [3, 3, 1], "tanh", rng=9)
    f = compile(lambda x: student(x))
    for k in range(22):
        if k in (5, 10, 16):
            i = (5, 10, 16).index(k)
            student.layers[i] = teacher.layers[i]
        yield f(X[k % 9]), student, teacher


@scenario
def teacher_is_copied_from_the_student_now_and_then(compile):
    student = nn.MLP(2, [2, 1], "tanh", rng=10)
    teacher = copy.deepcopy(student)
    distance = compile(lambda x: (student(x) - wengert.stop_gradient(teacher(x))) ** 2)
    for k in range(20):
        for p in student.parameters():
            p.data *= 1.05
        if k in (5, 11):
            teacher = copy.deepcopy(student)
        yield distance(X[k % 9]), student


@scenario
def moving_average_is_written_into_another_model(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=11)
    average = copy.deepcopy(model)
    f = compile(lambda x: model(x) * average(x))
    for k in range(20):
        model.layers[0].neurons[0].w[0].data += 0.1
        for mean, p in zip(average.parameters(), model.parameters(), strict=True):
            mean.data = 0.9 * mean.data + 0.1 * p.data
        yield f(X[k % 9]), model, average


@scenario
def parameters_start_anew_with_other_numbers(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=12)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (5, 13):
            draw = random.Random(k)
            for p in model.parameters():
                p.data = draw.gauss(0.0, 0.5)
        yield f(X[k % 9]), model


@scenario
def init_is_called_again_on_the_model(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=13)
    f = compile(lambda x: model(x))
    for k in range(18):
        if k == 5:
            model.__init__(2, [2, 1], "sigmoid", rng=k)
        if k == 11:
            model.layers[0].__init__(2, 2, "relu", bias="uniform", rng=k)
        yield f(X[k % 9]), model


@scenario
def dead_neurons_are_given_new_ones(compile):
    model = nn.MLP(2, [4, 1], "relu", rng=14)
    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (6, 13):
            for i, neuron in enumerate(model.layers[0].neurons):
                if all(neuron(x).data == 0.0 for x in X[:3]):
                    model.layers[0].neurons[i] = nn.Neuron(2, "relu", bias="uniform", rng=k + i)
            model.layers[0].neurons[k % 4].b = Value(0.7)
        yield f(X[k % 9]), model


@scenario
def state_dict_is_loaded(compile):
    model, other = nn.MLP(2, [3, 1], "tanh", rng=15), nn.MLP(2, [3, 1], "tanh", rng=16)
    states = [model.state_dict(), other.state_dict()]
    f = compile(lambda x: model(x))
    for k in range(22):
        if k in (5, 10, 17):
            model.load_state_dict(states[k % 2])
        yield f(X[k % 9]), model


@scenario
def best_state_is_kept_and_restored(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=17)
    loss = compile(lambda x, y: losses.hinge(model(x), y))
    optimizer, best = optim.SGD(model, lr=2.0), (float("inf"), {})
    for k in range(18):
        step = loss.mean(MANY, SIGNS)
        if step.data < best[0]:
            best = step.data, model.state_dict()
        if k in (9, 14):
            model.load_state_dict(best[1])
            step = loss.mean(MANY, SIGNS)
        model.zero_grad()
        step.backward()
        optimizer.step()
        yield [step.data, best[0], model]


@scenario
def checkpoint_is_loaded_into_the_model(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=18)
    f = compile(lambda x: model(x))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        checkpoint.save(model, path)
        for k in range(20):
            for p in model.parameters():
                p.data += 0.01
            if k in (5, 13):
                checkpoint.load(model, path)
            yield f(X[k % 9]), model


@scenario
def checkpoint_is_loaded_into_a_new_model(compile):
    holder = {"model": nn.MLP(2, [3, 1], "tanh", rng=19)}
    loss = compile(lambda x, y: losses.mse(holder["model"](x), y))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        checkpoint.save(holder["model"], path)
        for k in range(16):
            holder["model"].layers[0].neurons[0].w[0].data += 0.1
            if k in (5, 11):
                holder["model"] = nn.MLP(2, [3, 1], "tanh")
                checkpoint.load(holder["model"], path)
            yield loss.mean(MANY, SIGNS), holder["model"]


@scenario
def optimizer_resumes_from_a_checkpoint(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=20)
    adam = optim.Adam(model, lr=0.05)
    loss = compile(lambda x, y: losses.mse(model(x), y))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        for k in range(16):
            if k == 6:
                checkpoint.save(model, path, optimizer=adam)
            if k == 11:
                adam = optim.Adam(model, lr=0.05)
                checkpoint.load(model, path, optimizer=adam)
            adam.zero_grad()
            step = loss.mean(MANY, SIGNS)
            step.backward()
            adam.step()
            yield [step.data, model, adam.state_dict()]


@scenario
def model_comes_back_from_a_pickle(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=21)
    f = compile(lambda x: model(x))
    for k in range(18):
        if k in (5, 11):
            packed = pickle.dumps(model)
            model.layers[0].neurons[0].b.data = 5.0  # of the old one
            model = pickle.loads(packed)
        yield f(X[k % 9]), model


@scenario
def fit_trains_the_model_between_the_calls(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=22)
    score = compile(lambda x: model(x))
    for k in range(22):
        if k in (5, 10):
            sgd = optim.SGD(model, lr=0.1)
            training.fit(model, losses.hinge, MANY, SIGNS, sgd, epochs=1, batch_size=32, seed=k, progress=False)
        yield score(X[k % 9]), model
        yield score.map(X)


@scenario
def pretraining_layer_by_layer(compile):
    layers = [nn.Layer(2, 2, "tanh", rng=23)]

    @compile
    def reconstruction(x):
        for layer in layers:
            x = layer(x)
        return sum(h * h for h in x)

    for k in range(15):
        if k in (5, 10):
            for p in layers[-1].parameters():
                p.data *= 0.5
            layers.append(nn.Layer(2, 2, "tanh", rng=k))
        yield reconstruction.sum(MANY), layers[-1]


@scenario
def dropout_rate_is_switched_off_for_the_evaluation(compile):
    """The kept units are drawn outside and are read, as a user with a compiled function does."""
    model, kept, training_now = nn.MLP(2, [4, 1], "tanh", rng=24), [1.0, 0.0, 1.0, 1.0], True

    @compile
    def f(x):
        hidden = model.layers[0](x)
        if training_now:
            hidden = [h * keep / 0.75 for h, keep in zip(hidden, kept, strict=True)]
        return model.layers[1](hidden)

    draw = random.Random(1)
    for k in range(22):
        if k in (5, 6, 7, 17):
            kept = [float(draw.random() < 0.75) for _ in kept]
        training_now = k not in (9, 10, 11)
        yield f(X[k % 9]), model


@scenario
def quantised_weights(compile):
    """Straight-through: the forward pass reads rounded numbers, from a table that is made now and then."""
    weights = [Value(0.37), Value(-0.81)]
    grid = {"bits": 2}

    @compile
    def f(x):
        scale = 2 ** grid["bits"]
        rounded = [w + wengert.stop_gradient((w * scale).floor() / scale - w) for w in weights]
        return wengert.dot(rounded, x)

    for k in range(18):
        if k in (5, 11):
            grid["bits"] += 1
        yield f(X[k % 9]), weights
