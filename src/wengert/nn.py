"""Neural networks of scalar Values: Neuron, Layer, MLP, and Module, the base class of these and of your own.

A network is an ordinary Python object with Values as its parameters, and calling it is ordinary arithmetic on them: a
neuron is a weighted sum and an activation, a layer is a list of neurons, and an MLP is a list of layers.

    >>> import random
    >>> random.seed(1337)
    >>> model = MLP(3, [4, 4, 1], activation="tanh")
    >>> model
    MLP(3 -> 4 tanh -> 4 tanh -> 1 linear, 41 parameters)
    >>> score = model([2.0, 3.0, -1.0])
    >>> score.backward()
    >>> sum(p.grad != 0.0 for p in model.parameters())
    41
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import index
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, SupportsIndex
from weakref import WeakValueDictionary

from wengert import parameters
from wengert.derivatives import KeyPath, keys_of, tree_flatten
from wengert.engine import Value, dot
from wengert.errors import (
    ArgumentError,
    LengthError,
    OperandError,
    WengertError,
    answer,
    counted,
    did_you_mean,
    no_none,
    refer,
    unknown_keyword,
)
from wengert.ops import BY_NAME, TABLE

__all__ = ["MLP", "Activation", "Layer", "Module", "Neuron", "RandomSource", "registered_names"]

OTHER_NAMES: dict[str, tuple[str, ...]] = {  # of a parameter, in tutorials and other libraries
    "nin": ("n_in", "n_inputs", "in_features", "input_size", "inputs"),
    "nout": ("n_out", "n_outputs", "out_features", "output_size", "outputs", "n_neurons"),
    "nouts": ("n_outs", "layer_sizes", "hidden_sizes", "sizes", "layers"),
    "activation": ("act", "nonlinearity", "activation_fn", "hidden_activation"),
    "output": ("output_activation", "out_activation", "last_activation"),
    "rng": ("seed", "generator", "random_state", "key"),
}
ELSEWHERE: dict[str, str] = {  # parameters of other libraries' models
    "dropout": "against overfitting write optim.AdamW(model, weight_decay=0.01)",
    "lr": "the learning rate is the optimizer's: write optim.SGD(model, lr=0.1)",
    **dict.fromkeys(("device", "dtype"), "leave it out: a parameter is a float, on no device"),
}

Activation = str | Callable[[Value], Value]


class RandomSource(Protocol):
    """A source of random weights: the module `random`, a `random.Random(seed)`, or a NumPy generator."""

    def uniform(self, low: float, high: float, /) -> float:
        """Return a random number between low and high."""


class Module:
    """The base class of models: it finds the parameters in its attributes.

    A parameter is a leaf Value in an attribute, or in lists, tuples, dicts and Modules there, nested to any depth.
    Nothing has to be declared: derive from Module, store Values and Modules in `__init__`, and compute with them in
    `__call__`. A Value that is found twice is one parameter, with the name of its first place. A Value that was
    computed from others is not a parameter.

    >>> class Line(Module):
    ...     def __init__(self):
    ...         self.slope, self.offset = Value(2.0), Value(1.0)
    ...
    ...     def __call__(self, x):
    ...         return self.slope * x + self.offset
    >>> line = Line()
    >>> line(3.0).data
    7.0
    >>> line.state_dict()
    {'slope': 2.0, 'offset': 1.0}
    >>> line
    Line(2 parameters)
    """

    def __new__(cls, *arguments: Any, **named: Any) -> Self:  # noqa: D102  (the reference would show it of a model)
        # It is remembered as long as it lives, so that drawings know the names of its parameters.
        init = cls.__init__
        if named and getattr(init, "__module__", "") == __name__:  # a class below, not the user's
            known = [name for name in init.__annotations__ if name != "return"]
            for name in sorted(named.keys() - known):
                own = [own for own, others in OTHER_NAMES.items() if name in others and own in known]
                hints = {name: f"write {own[0]} for {name}"} if own else ELSEWHERE
                raise unknown_keyword(cls.__name__, name, known, hints)
        if (
            init is vars(MLP)["__init__"]
            and len(arguments) == 1
            and not named
            and isinstance(arguments[0], (list, tuple))
        ):
            nin, *nouts = [*arguments[0], "nin"][:-1] or ["nin"]
            raise ArgumentError(f"the number of inputs comes first, then the sizes of the layers: MLP({nin}, {nouts})")
        module = super().__new__(cls)
        _registry[id(module)] = module
        return module

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        _changes[0] = object()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        _changes[0] = object()

    def parameters(self) -> list[Value]:
        """List every parameter once, in the order in which attributes and items were stored."""
        return parameters.find(self, Module)

    def named_parameters(self) -> list[tuple[str, Value]]:
        """List every parameter with its path as its name, such as `layers.0.neurons.3.w.17`.

        Raises:
            ArgumentError: two parameters have the same name (dict keys 1 and "1", or a key with a dot in it).
        """
        found: dict[Value, KeyPath] = {}
        seen: dict[int, object] = {}  # by identity; it keeps each alive, so that no id is given to another object

        def leaf(item: object, path: KeyPath) -> Any:
            if isinstance(item, Value):
                if item.is_leaf:
                    found.setdefault(item, path)
            elif isinstance(item, (Module, dict, list, tuple)) and id(item) not in seen:
                seen[id(item)] = item
                return None  # go into it, once, so that cycles end
            return "*"

        tree_flatten(self, leaf)
        named = [(".".join(map(str, keys_of(path))), p) for p, path in found.items()]
        by_name = dict(named)
        for name, p in named:
            if by_name[name] is not p:
                raise ArgumentError(f"two parameters are named {name!r}: rename one of the keys in this path")
        return named

    def zero_grad(self, set_to_none: Literal[False] = False) -> None:
        """Set the gradient of every parameter to 0, before the next backward pass.

        Raises:
            KeywordError: `set_to_none`, a parameter of PyTorch's, is True: here a gradient is always a number.
        """
        if set_to_none:
            raise no_none()
        if getattr(self.parameters, "__func__", None) is Module.parameters:
            parameters.reset(self, Module)
        else:  # a class with its own method `parameters`
            for p in self.parameters():
                p.grad = 0.0

    def state_dict(self) -> dict[str, float]:
        """Return the data of every parameter by its name: everything that training changes."""
        return {name: p.data for name, p in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Set every parameter to the number under its name in `state`; on an error nothing is changed.

        Raises:
            ArgumentError: names are missing or unexpected; the message lists them.
            OperandError: an entry is not a number.

        >>> MLP(2, [1]).load_state_dict({"layers.0.neurons.0.w.0": 1.0, "w": 2.0})
        Traceback (most recent call last):
            ...
        wengert.errors.ArgumentError: these are not the parameters of MLP(2 -> 1 linear, 3 parameters): \
2 missing (layers.0.neurons.0.w.1, layers.0.neurons.0.b), 1 unexpected (w)
        """
        named = self.named_parameters()
        names = {name for name, _ in named}
        missing = [name for name, _ in named if name not in state]
        unexpected = [str(name) for name in state if name not in names]
        if missing or unexpected:
            faults = [_listed(missing, "missing"), _listed(unexpected, "unexpected")]
            raise ArgumentError(f"these are not the parameters of {self!r}: {', '.join(filter(None, faults))}")
        numbers = []
        for name, _ in named:
            try:
                numbers.append(Value(state[name]).data)
            except OperandError as error:
                raise OperandError(f"{name}: {error}") from None
        for (_, p), number in zip(named, numbers, strict=True):
            p.data = number

    @recursive_repr()
    def __repr__(self) -> str:
        """Show the class, the shape if there is one, and the number of parameters, then the Modules in attributes."""
        count = len(self.parameters())
        shape = self._shape()
        head = f"{type(self).__name__}({shape}{', ' if shape else ''}{count} parameter{'' if count == 1 else 's'})"
        parts = {} if shape else {name: part for name, part in vars(self).items() if isinstance(part, Module)}
        lines = [f"{name}: {part!r}".replace("\n", "\n  ") for name, part in parts.items()]
        return "\n  ".join([head, *lines])

    def _shape(self) -> str:
        """Describe inputs and outputs for `repr`; empty if unknown."""
        return ""


refer(
    Module,
    {
        "forward": "call the model, model(x); in a class of your own, define __call__",
        "backward": "call it on a loss, as in losses.mse(model(x), y).backward()",
        "fit": "write wengert.fit(model, loss, X, Y)",
        "predict": "write model(x), or wengert.training.predict(model, X)",
        "summary": "print(model) shows its layers and counts its parameters",
        "compile": "write wengert.compile(model)",
        **{how: f'write wengert.checkpoint.{how}(model, "model.safetensors")' for how in ("save", "load")},
        **dict.fromkeys(("train", "eval"), "a model computes the same in training and after it; leave this out"),
        **dict.fromkeys(
            ("cpu", "cuda", "to"), "a model is on no device; wengert.fit(..., backend='xla') trains on one"
        ),
        **dict.fromkeys(("half", "float", "double"), "a parameter is a float: leave this out"),
        **dict.fromkeys(
            ("requires_grad_", "freeze", "unfreeze"), "write optimizer.freeze(part), and optimizer.unfreeze(part)"
        ),
        **dict.fromkeys(
            ("register_buffer", "buffers"), "set an attribute: numbers that are no Values are no parameters"
        ),
        **dict.fromkeys(
            ("register_parameter", "add_module", "register_module", "add_parameter"),
            "set an attribute, as in self.w = Value(2.0): it is found there",
        ),
        **dict.fromkeys(
            ("named_modules", "named_children"),
            "see its attributes, as in model.layers; model.named_parameters() has every parameter with its path",
        ),
        "apply": "write for p in model.parameters(): p.data = ...",
        **dict.fromkeys(("num_parameters", "n_params", "count_params"), "write len(model.parameters())"),
    },
    misspelled=("parameters", "zero_grad"),
)


class Neuron(Module):
    """Computes activation(w1 x1 + w2 x2 + ... + b) with the weights `w` and the bias `b`.

    Args:
        nin: the number of inputs.
        activation: "linear" for none, "relu", "tanh", "sigmoid", "gelu" or any other operation of one argument, or a
            function from Value to Value.
        bias: "zero", or "uniform" for one drawn from (-1, 1).
        weights: "uniform", drawn from (-1, 1), or "scaled", the same divided by the square root of `nin`, which keeps
            the sum about as large as one input however many there are.
        nonlin: False means linear, whatever `activation` says.
        rng: the source of the random numbers, weights first, then the bias: None for Python's module `random`, so that
            `random.seed(n)` decides them; a whole number n for `random.Random(n)`; or any object with `uniform`.

    Raises:
        ArgumentError: an argument has another value.

    >>> neuron = Neuron(2, activation="tanh")
    >>> neuron.w[0].data, neuron.w[1].data, neuron.b.data = -3.0, 1.0, 6.8813735870195432
    >>> print(f"{neuron([2.0, 0.0]):.4f}")
    0.7071
    >>> neuron([2.0])
    Traceback (most recent call last):
        ...
    wengert.errors.LengthError: expected 2 inputs, got 1
    """

    def __init__(
        self,
        nin: int,
        activation: Activation = "relu",
        *,
        bias: str = "zero",
        weights: str = "uniform",
        nonlin: bool = True,
        rng: RandomSource | int | None = None,
    ) -> None:
        self.nin: int = _count("nin", nin)
        draw = _source(rng).uniform
        scale = _choice("weights", weights, {"uniform": 1.0, "scaled": nin**-0.5})
        drawn = _choice("bias", bias, {"zero": False, "uniform": True})
        self._activate, name = _activation(activation if nonlin else "linear")
        self.activation: str = name
        self.w: list[Value] = [Value(scale * draw(-1, 1)) for _ in range(nin)]
        self.b: Value = Value(draw(-1, 1) if drawn else 0.0)

    def __call__(self, x: Sequence[Value | float]) -> Value:
        """Compute the output for one list of inputs.

        Raises:
            LengthError: there are not `nin` inputs.
            OperandError: x is not a list of numbers.
        """
        if type(x) is not list and type(x) is not tuple:
            _check_inputs(x, self.nin)
        try:
            total = dot(self.w, x, self.b)
        except (LengthError, TypeError):
            _check_inputs(x, self.nin)
            raise
        activate = self._activate
        return total if activate is None else activate(total)

    def _shape(self) -> str:
        return f"{self.nin} -> 1 {self.activation}"


class Layer(Module):
    """A layer of `nout` neurons with the same inputs.

    Args:
        nin: the number of inputs.
        nout: the number of neurons, and so of outputs.
        activation: the function of each neuron: "linear" for none, "relu", "tanh", "sigmoid" or any other operation of
            one argument, or a function from Value to Value.
        squeeze: whether a layer of one neuron returns that neuron's output itself, not a list of one.
        bias: "zero", or "uniform" for biases drawn from (-1, 1).
        weights: "uniform", drawn from (-1, 1), or "scaled", the same divided by the square root of `nin`.
        nonlin: False means linear, whatever `activation` says.
        rng: the source of the random numbers, as for a Neuron.

    >>> layer = Layer(3, 2)
    >>> layer
    Layer(3 -> 2 relu, 8 parameters)
    >>> len(layer([1.0, 2.0, 3.0]))
    2
    """

    def __init__(
        self,
        nin: int,
        nout: int,
        activation: Activation = "relu",
        *,
        squeeze: bool = True,
        bias: str = "zero",
        weights: str = "uniform",
        nonlin: bool = True,
        rng: RandomSource | int | None = None,
    ) -> None:
        self.nin: int = _count("nin", nin)
        self.nout: int = _count("nout", nout)
        self.squeeze: bool = squeeze and nout == 1
        rng = _source(rng)
        self.neurons: list[Neuron] = [
            Neuron(nin, activation=activation, bias=bias, weights=weights, nonlin=nonlin, rng=rng) for _ in range(nout)
        ]

    def __call__(self, x: Sequence[Value | float]) -> Any:
        """Compute the output of each neuron: a list, or a Value if there is one neuron and `squeeze` is True.

        Raises:
            LengthError: there are not `nin` inputs.
        """
        outputs = [neuron.__call__(x) for neuron in self.neurons]  # faster than neuron(x)
        return outputs[0] if self.squeeze else outputs

    def _shape(self) -> str:
        return f"{self.nin} -> {self.nout} {self.neurons[0].activation}"


class MLP(Module):
    """A multi-layer perceptron: layers, each applied to the outputs of the one before.

    Args:
        nin: the number of inputs.
        nouts: the number of neurons of each layer; the last is the number of outputs.
        activation: the function of every layer but the last: "relu", "tanh", "sigmoid", "linear" for none, any other
            operation of one argument, or a function from Value to Value.
        output: the function of the last layer, likewise; "relu" here gives ReLU everywhere.
        bias: "zero", or "uniform" for biases drawn from (-1, 1).
        weights: "uniform", drawn from (-1, 1), or "scaled", the same divided by the square root of the number of inputs
            of the layer.
        squeeze: whether a single output is returned as a Value itself, not as a list of one.
        rng: the source of the random numbers, which are drawn neuron by neuron, weights first: None for Python's module
            `random`, a whole number as a seed, a `random.Random`, or a generator of NumPy.

    >>> MLP(64, [32, 10])
    MLP(64 -> 32 relu -> 10 linear, 2410 parameters)
    >>> MLP(2, [4, 1], squeeze=False)([1.0, 2.0])[0]._op
    'dot'
    """

    def __init__(
        self,
        nin: int,
        nouts: Sequence[int],
        activation: Activation = "relu",
        *,
        output: Activation = "linear",
        bias: str = "zero",
        weights: str = "uniform",
        squeeze: bool = True,
        rng: RandomSource | int | None = None,
    ) -> None:
        if not isinstance(nouts, (list, tuple, range)) or not nouts:
            raise ArgumentError(f"nouts is {nouts!r}; expected the size of each layer in a list, such as [16, 1]")
        self.nin: int = nin
        self.nout: int = nouts[-1]
        pairs = list(pairwise([nin, *nouts]))
        shared: dict[str, Any] = {"bias": bias, "weights": weights, "rng": _source(rng)}
        self.layers: list[Layer] = [Layer(i, o, activation, squeeze=False, **shared) for i, o in pairs[:-1]]
        self.layers.append(Layer(*pairs[-1], output, squeeze=squeeze, **shared))

    def __call__(self, x: Sequence[Value | float]) -> Any:
        """Compute the outputs for one list of inputs: a list of Values, or a Value if there is one and `squeeze`.

        Raises:
            LengthError: there are not `nin` inputs.
        """
        outputs: Any = x
        for layer in self.layers:
            outputs = layer(outputs)
        return outputs

    def _shape(self) -> str:
        return f"{self.nin} -> " + " -> ".join(f"{layer.nout} {layer.neurons[0].activation}" for layer in self.layers)


# -- changes ----------------------------------------------------------------------------------------------------

_changes: list[object] = [None]
"""Holds a new object after each change of an attribute of any Module, so that a compiled function can check with one
comparison that no Module has changed."""
# `compiler/reach/places.py` reads it from the methods.
for _method in (Module.__setattr__, Module.__delattr__):
    vars(_method)["counter"] = _changes


# -- the module registry ----------------------------------------------------------------------------------------

_registry: WeakValueDictionary[int, Module] = WeakValueDictionary()
"""Every Module that is alive, by id (a user's class may define `==`), in the order of creation. Drawings name
parameters with it, so that a Value needs no reference to its model."""


def registered_names(values: Iterable[Value]) -> dict[Value, list[str]]:
    """Find which of some Values are parameters, with their names in the largest Module and then in the smaller ones.

    If several live models share a parameter, the largest comes first, and of two of one size the older. The model's
    class precedes the name, as in ``MLP layers.0.neurons.3.w.17``. If the Values belong to several models of one class,
    these are numbered by age, as in ``MLP#2 layers.0.neurons.3.w.17``.

    >>> model = MLP(2, [1])
    >>> b = model.layers[0].neurons[0].b
    >>> registered_names([b])[b]
    ['MLP layers.0.neurons.0.b', 'Layer neurons.0.b', 'Neuron b']
    """
    wanted = set(values)
    owned = []
    for module in list(_registry.values()):
        try:
            if wanted.isdisjoint(module.parameters()):
                continue  # saves the time to write the names of a large model
            owned.append((type(module).__name__, module.named_parameters()))
        except (WengertError, AttributeError):
            continue  # two parameters have the same name, or `__init__` is still running
    found: dict[Value, list[tuple[int, str]]] = {}
    for i in sorted(range(len(owned)), key=lambda i: -len(owned[i][1])):
        for name, parameter in owned[i][1]:
            if parameter in wanted:
                found.setdefault(parameter, []).append((i, name))
    kinds = [kind for kind, _ in owned]
    alike: dict[str, list[int]] = {}  # the largest modules, by class
    for i in sorted({places[0][0] for places in found.values()}):
        alike.setdefault(kinds[i], []).append(i)
    for several in alike.values():
        for number, i in enumerate(several, 1):
            kinds[i] += f"#{number}" * (len(several) > 1)
    return {parameter: [f"{kinds[i]} {name}" for i, name in places] for parameter, places in found.items()}


def _listed(names: list[str], fault: str) -> str:
    """Write `7 missing (a, b, c, ...)`; empty if there are no names."""
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {fault} ({shown})" if names else ""


# -- reading arguments ------------------------------------------------------------------------------------------


def _count(name: str, count: int) -> int:
    if not isinstance(count, SupportsIndex) or index(count) < 1:
        raise ArgumentError(f"{name} is {count!r}; expected an int >= 1")
    return index(count)


def _source(rng: RandomSource | int | None) -> RandomSource:
    """Return the random source; called once for a model, so that its neurons draw different numbers."""
    if isinstance(rng, SupportsIndex):
        return random.Random(index(rng))
    if not (rng is None or hasattr(rng, "uniform")):
        raise ArgumentError(f"rng is {rng!r}; expected an int, or a source of numbers such as random.Random(1)")
    return random if rng is None else rng


def _choice(name: str, key: str, choices: Mapping[str, float]) -> float:
    if key not in choices:
        raise ArgumentError(f"{name} is {key!r}; expected {' or '.join(map(repr, choices))}")
    return choices[key]


def _activation(activation: Activation) -> tuple[Callable[[Value], Value] | None, str]:
    """Return the function to call, or None for "linear", and its name."""
    if callable(activation):
        return activation, getattr(activation, "__name__", repr(activation))
    if activation == "linear":
        return None, "linear"
    row = BY_NAME.get(activation) if isinstance(activation, str) else None
    if row is None or row.arity is None or row.arity - len(row.defaults) != 1:
        known = "'linear', a function, or an operation of one argument such as 'relu', 'tanh', 'sigmoid'"
        names = ["linear", *(row.name for row in TABLE if row.arity == 1 + len(row.defaults))]
        meant = did_you_mean(activation, names) if isinstance(activation, str) else ""
        raise ArgumentError(f"activation is {activation!r}; expected {known}{meant}")
    return getattr(Value, activation), activation


def _check_inputs(x: object, nin: int) -> None:
    """Raise an error if a neuron's inputs are not a list of `nin` items."""
    if isinstance(x, (str, bytes, Mapping)) or not (hasattr(x, "__len__") and hasattr(x, "__getitem__")):
        raise OperandError(f"expected a list of {counted(nin, 'input')}, got {x!r}")
    if len(x) != nin:
        rows = len(x) > 0 and hasattr(x[0], "__len__") and not isinstance(x[0], str)
        got = f"a list of {counted(len(x), 'row')}: write [model(row) for row in rows]" if rows else len(x)
        raise LengthError(f"expected {counted(nin, 'input')}, got {got}")


if not TYPE_CHECKING:  # a type checker would take any name
    __getattr__ = answer(
        __name__,
        {
            "linear": 'Layer(nin, nout, "linear")',
            "dense": 'Layer(nin, nout, "linear")',
            "identity": 'activation="linear"',
            "sequential": "MLP(nin, [nout, nout]), or a class with __call__",
            "parameter": "wengert.Value(2.0) in an attribute of the model",
            "functional": "wengert.relu(x), wengert.softmax(values), losses.mse(p, y)",
            "mseloss": "losses.mse",
            "l1loss": "losses.mae",
            "huberloss": "losses.huber",
            "bceloss": "losses.binary_cross_entropy",
            "bcewithlogitsloss": "losses.binary_cross_entropy_with_logits",
            **dict.fromkeys(("crossentropyloss", "nllloss"), "losses.cross_entropy, which takes logits"),
            "smoothl1loss": "losses.huber",
            "kldivloss": "wengert.sum([p * (wengert.log(p) - wengert.log(q)) for p, q in zip(ps, qs)])",
            **{
                name.replace("_", ""): f'MLP(nin, [nout, nout], activation="{name}")'
                for row in TABLE
                if row.arity == 1 + len(row.defaults)
                for name in (row.name, *row.aliases)
            },
            "softmax": "wengert.softmax(values)",
            "logsoftmax": "wengert.log_softmax(values)",
            **dict.fromkeys(
                ("batchnorm", "layernorm", "instancenorm", "groupnorm", "rmsnorm"),
                "it in the model's __call__: m = wengert.mean(xs); "
                "s = (wengert.mean([(x - m) ** 2 for x in xs]) + 1e-5).sqrt(); xs = [(x - m) / s for x in xs]",
            ),
            **dict.fromkeys(
                ("dropout", "alphadropout"),
                "optim.AdamW(model, weight_decay=0.01) against overfitting; or in a loop of your own, for half of the "
                "numbers, xs = [2.0 * x if random.random() < 0.5 else 0.0 for x in xs]",
            ),
            "conv": "[wengert.dot(w, xs[i : i + len(w)]) for i in range(len(xs) - len(w) + 1)]",
            **dict.fromkeys(
                ("maxpool", "adaptivemaxpool"), "[wengert.max(xs[i : i + 2]) for i in range(0, len(xs), 2)]"
            ),
            **dict.fromkeys(
                ("avgpool", "adaptiveavgpool"), "[wengert.mean(xs[i : i + 2]) for i in range(0, len(xs), 2)]"
            ),
            "flatten": "[x for row in rows for x in row]",
            "embedding": "a list of lists of Values in an attribute of the model, and its row, self.table[i]",
            **dict.fromkeys(
                ("rnn", "rnncell", "lstm", "lstmcell", "gru", "grucell"),
                'a loop: cell = Layer(nin + n, n, "tanh"), then for x in xs: h = cell([*x, *h])',
            ),
            **dict.fromkeys(
                ("multiheadattention", "transformer", "transformerencoderlayer", "scaleddotproductattention"),
                "it in a class of your own: shares = wengert.softmax([wengert.dot(q, k) for k in ks]), "
                "then [wengert.dot(shares, column) for column in zip(*vs)]",
            ),
            **dict.fromkeys(
                ("modulelist", "parameterlist"), "a list of Modules or Values in an attribute of the model"
            ),
            **dict.fromkeys(
                ("moduledict", "parameterdict"), "a dict of Modules or Values in an attribute of the model"
            ),
            "init": 'Layer(nin, nout, weights="scaled"), or for p in model.parameters(): p.data = random.gauss(0, 0.1)',
            **dict.fromkeys(
                ("utils", "clipgradnorm", "clipgradvalue"), "optim.clip_grad_norm(model, 1.0), before optimizer.step()"
            ),
        },
    )
