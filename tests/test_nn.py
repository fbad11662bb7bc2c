"""Modules: where parameters are found and under which names, what neurons compute, what misuse is told."""

from __future__ import annotations

import copy
import math
import pickle
import random
import re
from array import array
from collections import deque
from typing import Any

import pytest

from wengert import functions
from wengert.engine import Value
from wengert.errors import ArgumentError, LengthError, OperandError, WengertError
from wengert.nn import MLP, Layer, Module, Neuron


class Mixture(Module):
    """Parameters in every kind of place."""

    def __init__(self) -> None:
        self.name = "mixture"
        self.scale = Value(1.0)
        self.parts: dict[str, Any] = {"tanh": Neuron(1), "rest": (Value(2.0), [Value(3.0)])}
        self.tied = self.scale
        self.body = MLP(1, [1])
        self.owner = self  # a cycle


def test_parameters_are_found_everywhere_in_the_order_of_storing() -> None:
    mixture = Mixture()
    names = [name for name, _ in mixture.named_parameters()]
    assert names == [
        "scale",
        "parts.tanh.w.0",
        "parts.tanh.b",
        "parts.rest.0",
        "parts.rest.1.0",
        "body.layers.0.neurons.0.w.0",
        "body.layers.0.neurons.0.b",
    ]
    assert [p for _, p in mixture.named_parameters()] == mixture.parameters()


def test_a_shared_value_is_one_parameter() -> None:
    model = MLP(2, [3, 3])
    model.layers[1].neurons[0].w = model.layers[0].neurons[0].w
    assert len(model.parameters()) == len({id(p) for p in model.parameters()}) == 9 + 12 - 3


def test_a_result_that_is_kept_is_no_parameter() -> None:
    neuron = Neuron(2)
    neuron.last = neuron([1.0, 2.0])  # type: ignore[attr-defined]
    assert len(neuron.parameters()) == 3


def test_names_of_a_network() -> None:
    named = dict(MLP(64, [32, 10]).named_parameters())
    assert len(named) == 2410
    assert next(iter(named)) == "layers.0.neurons.0.w.0"
    assert {"layers.0.neurons.3.w.17", "layers.0.neurons.3.b", "layers.1.neurons.9.b"} <= set(named)


def test_two_parameters_of_one_name_are_refused() -> None:
    module = Module()
    module.table = {1: Value(1.0), "1": Value(2.0)}  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match=r"two parameters are named 'table\.1'"):
        module.state_dict()


def test_zero_grad() -> None:
    model = MLP(2, [2, 1])
    model([1.0, 2.0]).backward()
    model.zero_grad()
    assert [p.grad for p in model.parameters()] == [0.0] * 9


def test_state_goes_round() -> None:
    model, other = MLP(3, [4, 2]), MLP(3, [4, 2])
    other.load_state_dict(model.state_dict())
    assert other.state_dict() == model.state_dict()
    assert [o.data for o in other([1.0, 2.0, 3.0])] == [o.data for o in model([1.0, 2.0, 3.0])]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: s.pop("layers.0.neurons.0.b"), ArgumentError, r"1 missing \(layers\.0\.neurons\.0\.b\)"),
        (lambda s: s.update(extra=1.0), ArgumentError, r"1 unexpected \(extra\)"),
        (lambda s: s.clear(), ArgumentError, r"5 missing \(layers\.0\.neurons\.0\.w\.0, .*, \.\.\.\)"),
        (lambda s: s.update({"layers.1.neurons.0.b": "1"}), OperandError, r"layers\.1\.neurons\.0\.b: .*'1'"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change: Any, error: type[WengertError], message: str) -> None:
    model = MLP(2, [1, 1])
    before = model.state_dict()
    state = {name: number + 1.0 for name, number in before.items()}
    change(state)
    with pytest.raises(error, match=message):
        model.load_state_dict(state)
    assert model.state_dict() == before


def test_modules_read_well() -> None:
    assert repr(Neuron(3)) == "Neuron(3 -> 1 relu, 4 parameters)"
    assert repr(Layer(3, 2, activation="tanh")) == "Layer(3 -> 2 tanh, 8 parameters)"
    assert repr(MLP(3, [4, 1], activation=functions.gelu)) == "MLP(3 -> 4 gelu -> 1 linear, 21 parameters)"
    assert repr(Mixture()).splitlines() == [
        "Mixture(7 parameters)",
        "  body: MLP(1 -> 1 linear, 2 parameters)",
        "  owner: ...",
    ]


def test_copies_are_whole_and_apart() -> None:
    model = MLP(2, [3, 1], activation="gelu", output="tanh")
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.state_dict() == model.state_dict()
        assert not set(twin.parameters()) & set(model.parameters())
        assert twin([1.0, -1.0]).data == model([1.0, -1.0]).data


# -- what is computed -----------------------------------------------------------------------------------------------


def test_a_neuron_by_hand() -> None:
    neuron = Neuron(2, activation="tanh")
    neuron.load_state_dict({"w.0": -3.0, "w.1": 1.0, "b": 6.8813735870195432})
    output = neuron([2.0, 0.0])
    output.backward()
    assert output.data == pytest.approx(math.sqrt(0.5), abs=1e-15)
    assert [p.grad for p in neuron.parameters()] == pytest.approx([1.0, 0.0, 0.5], abs=1e-14)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("relu", 0.0),
        ("linear", -1.5),
        ("tanh", math.tanh(-1.5)),
        ("sigmoid", 1.0 / (1.0 + math.exp(1.5))),
        ("softplus", math.log1p(math.exp(-1.5))),
        ("arctan", math.atan(-1.5)),
        ("leaky_relu", -0.015),
        (functions.square, 2.25),
        (lambda x: 1.0 - x, 2.5),
    ],
)
def test_activations(activation: Any, expected: float) -> None:
    neuron = Neuron(1, activation=activation)
    neuron.load_state_dict({"w.0": 2.0, "b": 0.5})
    assert neuron([-1.0]).data == pytest.approx(expected, rel=1e-15)


def test_nonlin_false_is_linear() -> None:
    neuron = Neuron(1, nonlin=False)
    neuron.load_state_dict({"w.0": 1.0, "b": 0.0})
    assert neuron([-1.0]).data == -1.0
    assert neuron.activation == "linear"


def test_where_the_activations_of_a_network_go() -> None:
    def functions_of(model: MLP) -> list[str]:
        return [layer.neurons[0].activation for layer in model.layers]

    assert functions_of(MLP(2, [4, 4, 1])) == ["relu", "relu", "linear"]
    assert functions_of(MLP(2, [4, 4, 1], output="relu")) == ["relu", "relu", "relu"]
    assert functions_of(MLP(2, [4, 4, 1], activation="tanh", output="tanh")) == ["tanh", "tanh", "tanh"]


def test_one_output_is_a_value_or_a_list_of_one() -> None:
    assert isinstance(Layer(2, 1)([1.0, 2.0]), Value)
    assert isinstance(MLP(2, [3, 1])([1.0, 2.0]), Value)
    assert len(Layer(2, 1, squeeze=False)([1.0, 2.0])) == 1
    assert len(MLP(2, [3, 1], squeeze=False)([1.0, 2.0])) == 1
    assert len(MLP(2, [3, 2])([1.0, 2.0])) == 2
    assert isinstance(MLP(2, [1, 1])([1.0, 2.0]), Value)  # a hidden layer of one neuron stays a list


def test_inputs_may_be_values_and_get_gradients() -> None:
    x, h = [Value(1.0), Value(-1.0)], 1e-6
    model = MLP(2, [3, 1], activation="tanh", rng=random.Random(0))
    model(x).backward()
    for i in range(2):
        ahead, behind = [1.0, -1.0], [1.0, -1.0]
        ahead[i] += h
        behind[i] -= h
        assert x[i].grad == pytest.approx((model(ahead).data - model(behind).data) / (2 * h), rel=1e-7)


def test_inputs_may_be_an_array() -> None:
    numpy = pytest.importorskip("numpy")
    model = MLP(2, [3, 1])
    assert model(numpy.array([1.0, 2.0])).data == model([1.0, 2.0]).data


# -- what is drawn --------------------------------------------------------------------------------------------------


def micrograd_draws(nin: int, nouts: list[int], bias: bool) -> list[float]:
    """The numbers that an MLP of micrograd draws, in its order: neuron by neuron, weights first."""
    sizes = [nin, *nouts]
    drawn = []
    for i, nout in enumerate(nouts):
        for _ in range(nout):
            drawn += [random.uniform(-1, 1) for _ in range(sizes[i])]
            drawn += [random.uniform(-1, 1) if bias else 0.0]
    return drawn


@pytest.mark.parametrize("bias", ["zero", "uniform"])
def test_the_seed_of_random_decides_the_parameters(bias: str) -> None:
    random.seed(1337)
    expected = micrograd_draws(3, [4, 4, 1], bias == "uniform")
    random.seed(1337)
    assert [p.data for p in MLP(3, [4, 4, 1], bias=bias).parameters()] == expected
    rng = random.Random(1337)
    assert [p.data for p in MLP(3, [4, 4, 1], bias=bias, rng=rng).parameters()] == expected


def test_scaled_weights() -> None:
    plain = Layer(16, 4, rng=random.Random(5))
    scaled = Layer(16, 4, weights="scaled", bias="uniform", rng=random.Random(5))
    assert [w.data for w in scaled.neurons[0].w] == [w.data / 4.0 for w in plain.neurons[0].w]
    assert all(abs(w.data) <= 0.25 for neuron in scaled.neurons for w in neuron.w)


def test_a_generator_of_numpy_serves_as_source() -> None:
    numpy = pytest.importorskip("numpy")
    expected = numpy.random.RandomState(7).uniform(-1, 1, size=2).tolist()
    assert [w.data for w in Neuron(2, rng=numpy.random.RandomState(7)).w] == expected


def test_a_whole_number_is_a_seed() -> None:
    for make in (lambda rng: MLP(3, [4, 1], rng=rng), lambda rng: Layer(3, 2, rng=rng), lambda rng: Neuron(3, rng=rng)):
        numbers = [p.data for p in make(1).parameters()]  # type: ignore[no-untyped-call]
        assert numbers == [p.data for p in make(random.Random(1)).parameters()]  # type: ignore[no-untyped-call]
    drawn = [p.data for p in MLP(3, [4, 4, 1], rng=1, bias="uniform").parameters()]
    assert len(set(drawn)) == 41  # no two neurons begin alike


def test_an_activation_in_the_third_place_and_sizes_in_a_range() -> None:
    assert repr(MLP(3, [4, 4, 1], "tanh")) == "MLP(3 -> 4 tanh -> 4 tanh -> 1 linear, 41 parameters)"
    assert repr(MLP(3, range(1, 3))) == "MLP(3 -> 1 relu -> 2 linear, 8 parameters)"
    assert repr(Layer(3, 2, "tanh")) == "Layer(3 -> 2 tanh, 8 parameters)"
    assert repr(Neuron(3, "tanh")) == "Neuron(3 -> 1 tanh, 4 parameters)"


# -- misuse ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Neuron(3), Layer(3, 2), MLP(3, [2, 1])])
@pytest.mark.parametrize("x", [[], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_wrong_number_of_inputs_names_both(model: Module, x: list[float]) -> None:
    with pytest.raises(LengthError, match=f"expected 3 inputs, got {len(x)}"):
        model(x)  # type: ignore[operator]


def test_all_rows_at_once() -> None:
    with pytest.raises(
        LengthError, match=r"expected 3 inputs, got a list of 4 rows: write \[model\(row\) for row in rows"
    ):
        MLP(3, [4, 1])([[2.0, 3.0, -1.0]] * 4)


NO_ROWS: list[Any] = [1.0, 3, Value(1.0), None, "abc", b"abc", iter([1.0, 2.0, 3.0]), (float(i) for i in range(3))]
NO_ROWS += [{1: 2.0, 3: 4.0, 5: 6.0}, {1.0, 2.0, 3.0}, frozenset([1.0, 2.0, 3.0]), {"a": 1, "b": 2, "c": 3}.values()]


@pytest.mark.parametrize("model", [Neuron(3), Layer(3, 2), MLP(3, [2, 1])])
@pytest.mark.parametrize("x", NO_ROWS, ids=lambda x: type(x).__name__)
def test_inputs_that_are_no_row(model: Any, x: Any) -> None:
    """A row is a sequence: a dict would give its keys, a set its items in an order of its own."""
    with pytest.raises(OperandError, match=f"expected a list of 3 inputs, got {re.escape(repr(x))}"):
        model(x)


@pytest.mark.parametrize("row", [(1.0, -2.0), deque([1.0, -2.0]), array("d", [1.0, -2.0])], ids=str)
def test_a_row_may_be_any_sequence(row: Any) -> None:
    model = MLP(2, [3, 1], rng=0)
    assert model(row).data == model([1.0, -2.0]).data


def test_an_input_that_is_no_number() -> None:
    with pytest.raises(OperandError, match="'two'"):
        Neuron(3)([1.0, "two", 3.0])  # type: ignore[list-item]


def test_an_error_of_the_activation_is_its_own() -> None:
    def broken(x: Value) -> Value:
        raise LengthError("mine")

    with pytest.raises(LengthError, match="mine"):
        Neuron(1, activation=broken)([1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Neuron(0), "nin is 0; expected an int >= 1"),
        (lambda: Neuron(2.0), "nin is 2.0; expected an int >= 1"),  # type: ignore[arg-type]
        (lambda: Layer(2, -1), "nout is -1; expected an int >= 1"),
        (lambda: MLP(2, []), r"nouts is \[\]; expected the size of each layer in a list"),
        (lambda: MLP(2, 3), "nouts is 3; expected the size of each layer in a list"),  # type: ignore[arg-type]
        (lambda: MLP(2, [3, 0]), "nout is 0"),
        (lambda: Neuron(2, activation="rleu"), "activation is 'rleu'; expected 'linear', a function"),
        (lambda: Neuron(2, activation="atan2"), "activation is 'atan2'"),
        (lambda: Neuron(2, activation="rleu"), "did you mean relu?"),
        (lambda: Neuron(2, activation="tnah"), "did you mean tanh?"),
        (lambda: Neuron(2, activation="sum"), "activation is 'sum'"),
        (lambda: Neuron(2, bias="one"), "bias is 'one'; expected 'zero' or 'uniform'"),
        (lambda: Neuron(2, weights="small"), "weights is 'small'; expected 'uniform' or 'scaled'"),
        (lambda: Neuron(2, False), "activation is False; expected 'linear', a function"),  # type: ignore[arg-type]
        (lambda: MLP(2, [4, 1], [1]), r"activation is \[1\]; expected 'linear', a function"),  # type: ignore[arg-type]
        (lambda: MLP(2, [4, 1], rng="1"), r"rng is '1'; expected an int, or a source of numbers such as random"),
        (lambda: MLP(2, {4, 1}), r"nouts is \{.*\}; expected the size of each layer in a list"),
    ],
)
def test_arguments_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "name", "ours"),
    [
        (lambda: MLP(n_inputs=3, layer_sizes=[4, 4, 1]), "layer_sizes", "nin, nouts, .*; write nouts for layer_sizes$"),
        (lambda: MLP(3, layer_sizes=[4, 4, 1]), "layer_sizes", "nin, nouts, "),
        (lambda: MLP(n_inputs=3, nouts=[4, 4, 1]), "n_inputs", "nin, nouts, "),
        (lambda: MLP(3, [4, 1], nonlin=False), "nonlin", "nin, nouts, activation, output, "),
        (lambda: Layer(n_in=3, n_out=2), "n_in", "nin, nout, activation, "),
        (lambda: Layer(3, n_neurons=2), "n_neurons", "nin, nout, .*; write nout for n_neurons$"),
        (lambda: MLP(3, [4, 1], activaton="tanh"), "activaton", r".*; did you mean activation\?$"),
        (lambda: Neuron(n_in=3), "n_in", "nin, activation, bias, weights, nonlin, rng; write nin for n_in$"),
        (lambda: Neuron(n_inputs=3, activation="tanh"), "n_inputs", "nin, "),
    ],
)
def test_a_parameter_as_another_tutorial_calls_it(make: Any, name: str, ours: str) -> None:
    with pytest.raises(ArgumentError, match=f"has no parameter {name}: its parameters are {ours}"):
        make()


def test_a_class_of_ones_own_calls_its_parameters_as_it_likes() -> None:
    class Network(MLP):
        def __init__(self, n_in: int, layer_sizes: list[int]) -> None:
            super().__init__(n_in, layer_sizes, "tanh", output="tanh")

    assert repr(Network(n_in=3, layer_sizes=[4, 4, 1])) == "Network(3 -> 4 tanh -> 4 tanh -> 1 tanh, 41 parameters)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'nin'"):
        Network(nin=3, nouts=[4, 1])  # type: ignore[call-arg]


def test_sizes_in_one_list_are_told_where_the_inputs_go() -> None:
    expected = "the number of inputs comes first, then the sizes of the layers: MLP(2, [4, 1])"
    with pytest.raises(ArgumentError, match=re.escape(expected)):
        MLP([2, 4, 1])
    with pytest.raises(ArgumentError, match=re.escape("MLP(nin, [])")):
        MLP([])


@pytest.mark.parametrize(
    ("thing", "name", "words"), [(Value(2.0), "shape", "one number"), (MLP(2, [1]), "forward", r"model\(x\)")]
)
def test_what_other_libraries_have_is_neither_found_nor_listed(thing: object, name: str, words: str) -> None:
    kind = type(thing).__name__
    with pytest.raises(AttributeError, match=f"'{kind}' object has no attribute '{name}': .*{words}") as caught:
        getattr(thing, name)
    assert (caught.value.name, caught.value.obj) == (name, thing)
    assert not hasattr(thing, name)
    assert name not in dir(thing)
    assert {"__class__", "tanh" if kind == "Value" else "parameters"} <= {*dir(thing)}
