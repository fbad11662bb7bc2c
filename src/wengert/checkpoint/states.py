"""The content of a checkpoint: the parameters of a model, and the state of a run to resume."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from types import NoneType
from typing import Any, Protocol

from wengert.checkpoint import safetensors
from wengert.engine import Value
from wengert.errors import ArgumentError, CheckpointError
from wengert.ops import named
from wengert.optim import Optimizer
from wengert.training import History, is_first

__all__ = ["HasNamedParameters", "HasState", "load", "save"]

Groups = dict[str, tuple[list[int], list[Value]]]  # tensor name -> shape, parameters

SPARE_HEADER = 1_000_000  # a header may have this many bytes more than four times the model's own
LONGEST = 1 << 22  # the largest number of epochs of a history
WORDS = 624  # the state of random.Random: this many words of 32 bits, the index of the next one,
NORMAL = "rng.normal"  # and the second of two normal numbers, which are drawn together
STATES = {"optimizer": "state of an optimizer", "history": "history", "rng": "state of random numbers"}  # in messages


class HasNamedParameters(Protocol):
    """A Module, or any object with a method `named_parameters`."""

    def named_parameters(self) -> list[tuple[str, Value]]:
        """Return every parameter with its name, such as `layers.0.neurons.3.w.17`."""


class HasState(Protocol):
    """A random number generator: the module `random`, or a `random.Random`."""

    def getstate(self) -> tuple[Any, ...]:
        """Return the state of the generator."""

    def setstate(self, state: tuple[Any, ...], /) -> None:
        """Restore a state."""


def save(
    model: HasNamedParameters,
    path: safetensors.Path,
    *,
    optimizer: Optimizer | None = None,
    history: History | None = None,
    rng: HasState | None = None,
) -> None:
    """Write a model's parameters, and the other arguments, to a file, atomically.

    The file is written under another name in the same folder, flushed to the disk, and only then renamed. A save that
    fails or is killed at any point leaves the old file at `path` unchanged. (If it is killed, a temporary file
    `.NAME.*.tmp` may remain beside it, which is never read.) After `jax.distributed.initialize` only the first process
    writes.

    Args:
        model: the model.
        path: the file.
        optimizer: an optimizer, whose state is saved: momentum, means, count of steps. Hyperparameters, and which
            parameters are frozen, are not part of it.
        history: the History of the run so far.
        rng: a random number generator, whose state is saved: the module `random`, or a `random.Random`.

    Raises:
        CheckpointError: the file cannot be written, or two tensors would have the same name; the message has the cause.
        ArgumentError: an argument has another type, or the state of `optimizer` or `rng` cannot be saved.
    """
    parts = _parts(optimizer, history, rng)
    content = {
        name: safetensors.Tensor(shape, array("d", [p.data for p in ps]))
        for name, (shape, ps) in _groups(model).items()
    }
    metadata: dict[str, str] = {}
    if optimizer is not None:
        content["optimizer.places"] = _listed(_places(model, optimizer))
    if history is not None and len(history) > LONGEST:
        raise CheckpointError(f"the history has {len(history)} epochs; at most {LONGEST} can be saved")
    for part, thing in parts.items():
        _add(part, thing.state_dict(), content, metadata)
    if is_first():
        safetensors.write(path, content, metadata)


def load(
    model: HasNamedParameters,
    path: safetensors.Path,
    *,
    optimizer: Optimizer | None = None,
    history: History | None = None,
    rng: HasState | None = None,
) -> None:
    """Set a model's parameters, and the state of the other arguments, from a file; on an error nothing is changed.

    Args:
        model: a model of the same structure as the saved one.
        path: the file.
        optimizer: an optimizer of the same class as the saved one, with the same parameters in the same order.
        history: set to the saved History.
        rng: set to the saved state of the random numbers.

    Raises:
        CheckpointError: the file cannot be read, is damaged or not a checkpoint, is of another model, or was saved
            without one of the arguments; the message has the cause.
        ArgumentError: an argument has another type.
    """
    parts = _parts(optimizer, history, rng)
    groups = _groups(model)
    model_shapes = {name: shape for name, (shape, _) in groups.items()}

    def select(shapes: dict[str, list[int]], metadata: dict[str, str]) -> list[str]:
        """Check that the file fits the model, and return the names of the tensors to read."""
        _compare("another model's parameters", model_shapes, _under("model.", shapes))
        wanted = [*groups]
        for part, thing in parts.items():
            wanted += _checked(part, thing, _under(f"{part}.", shapes), metadata)
        return wanted

    longest = SPARE_HEADER + 4 * safetensors.header_size(model_shapes)
    numbers, metadata = safetensors.read(path, longest, select)
    done: list[tuple[Any, Any]] = []  # the objects that have been loaded, with their states before
    try:
        if optimizer is not None and [*numbers.pop("optimizer.places")] != _places(model, optimizer):
            raise CheckpointError("the optimizer has other parameters than the saved one, or in another order")
        for part, thing in parts.items():
            _restore(part, thing, numbers, metadata, done)
    except (CheckpointError, ArgumentError) as error:
        for thing, before in done:
            thing.load_state_dict(before)
        raise CheckpointError(f"{path}: {error}") from error.__cause__
    for name, (_, parameters) in groups.items():
        for p, number in zip(parameters, numbers[name], strict=True):
            p.data = number


def _parts(optimizer: object, history: object, rng: Any) -> dict[str, Any]:
    """Return the objects to save or load beside the model, each with a state."""
    if not isinstance(optimizer, (Optimizer, NoneType)):
        raise ArgumentError(f"optimizer is {named(optimizer)}; expected an Optimizer, such as Adam(model)")
    if not isinstance(history, (History, NoneType)):
        raise ArgumentError(f"history is {named(history)}; expected a History")
    given = {"optimizer": optimizer, "history": history, "rng": None if rng is None else _Generator(rng)}
    return {part: thing for part, thing in given.items() if thing is not None}


# -- parameters -------------------------------------------------------------------------------------------------------


def _groups(model: HasNamedParameters) -> Groups:
    """Group parameters into tensors: p.0, p.1, ... of one list together, any other one alone."""
    if isinstance(model, type) or not hasattr(model, "named_parameters"):
        raise ArgumentError(f"model is {named(model)}; expected a Module, or an object with named_parameters()")
    lists: dict[str, list[Value]] = {}
    singles: Groups = {}
    for name, p in model.named_parameters():
        parent, _, last = name.rpartition(".")
        if parent and last == str(len(lists.get(parent, ()))):
            lists.setdefault(parent, []).append(p)
        elif f"model.{name}" in singles:
            raise CheckpointError(f"two parameters are both named {name!r}: rename one of them")
        else:
            singles[f"model.{name}"] = ([], [p])
    for name in lists:
        if f"model.{name}" in singles:
            raise CheckpointError(f"a list and a parameter are both named {name!r}: rename one of them")
    return {**{f"model.{name}": ([len(ps)], ps) for name, ps in lists.items()}, **singles}


def _listed(numbers: list[float] | array[float]) -> safetensors.Tensor:
    return safetensors.Tensor([len(numbers)], array("d", numbers))


def _under(prefix: str, shapes: Mapping[str, list[int]]) -> dict[str, list[int]]:
    return {name: shape for name, shape in shapes.items() if name.startswith(prefix)}


def _compare(what: str, expected: Mapping[str, list[int]], found: Mapping[str, list[int]]) -> None:
    """Raise a CheckpointError if the names or shapes of tensors differ."""
    reshaped = [name for name, shape in expected.items() if found.get(name, shape) != shape]
    faults = [
        safetensors.some("missing", [name for name in expected if name not in found]),
        safetensors.some("unexpected", [name for name in found if name not in expected]),
        safetensors.some("of another shape", [f"{name} {found[name]}, expected {expected[name]}" for name in reshaped]),
    ]
    if any(faults):
        raise CheckpointError(f"the file has {what}: {'; '.join(filter(None, faults))}")


# -- the state of an optimizer, of a history --------------------------------------------------------------------------


def _places(model: HasNamedParameters, optimizer: Optimizer) -> list[float]:
    """Return the index of each parameter of the optimizer in the model; -1 if it is not in the model."""
    places = {p: float(i) for i, (_, p) in enumerate(model.named_parameters())}
    return [places.get(p, -1.0) for p in optimizer.parameters]


def _add(
    prefix: str, state: Mapping[str, Any], content: dict[str, safetensors.Tensor], metadata: dict[str, str]
) -> None:
    """Add a state to the content of a file: strings to the metadata, numbers and lists of numbers as tensors."""
    for key, part in state.items():
        name = f"{prefix}.{key}"
        if isinstance(part, str):
            metadata[name] = part
            continue
        try:
            is_list = isinstance(part, (list, array))
            content[name] = _listed(part) if is_list else safetensors.Tensor([], array("d", [part]))
        except (TypeError, OverflowError):
            raise ArgumentError(
                f"the {prefix}'s {key} is {part!r:.40}; only numbers and strings can be saved"
            ) from None


def _checked(part: str, thing: Any, found: dict[str, list[int]], metadata: dict[str, str]) -> list[str]:
    """Check that a saved state fits, and return the names of its tensors."""
    if not found:
        raise CheckpointError(f"the file has no {STATES[part]}: it was saved without {part}=")
    own: dict[str, safetensors.Tensor] = {}
    state = thing.state_dict()
    if part == "optimizer":
        algorithm = metadata.get("optimizer.algorithm")
        if algorithm != state["algorithm"]:
            raise CheckpointError(
                f"the file has the state of the optimizer {algorithm!r:.40}, not of {state['algorithm']!r}"
            )
        own["optimizer.places"] = _listed([0.0] * len(thing.parameters))
    _add(part, state, own, {})
    expected = {name: tensor.shape for name, tensor in own.items()}
    if part == "rng":
        expected[NORMAL] = [0] if found.get(NORMAL) == [0] else [1]
    if part == "history":  # of any length
        _compare("no history", {name: [] for name in own}, {name: [] for name in found})
        for name, shape in found.items():
            if len(shape) != len(expected[name]) or shape > [LONGEST]:
                raise CheckpointError(f"the file has no history: {name} has the shape {shape}")
    else:
        _compare("the state of another optimizer" if part == "optimizer" else f"no {STATES[part]}", expected, found)
    return [*own]


def _restore(
    prefix: str, thing: Any, numbers: Mapping[str, array[float]], metadata: Mapping[str, str], done: list[Any]
) -> None:
    """Restore the state of an optimizer, a history or random numbers; append its state before to `done`."""
    before = thing.state_dict()
    state: dict[str, Any] = {}
    for key, part in before.items():
        name = f"{prefix}.{key}"
        if isinstance(part, str):
            if name not in metadata:
                raise CheckpointError(f"damaged: {name} is missing")
            state[key] = metadata[name]
        else:
            state[key] = [*numbers[name]] if isinstance(part, (list, array)) else numbers[name][0]
    thing.load_state_dict(state)
    done.append((thing, before))


# -- the state of random numbers --------------------------------------------------------------------------------------


class _Generator:
    """A random number generator with `state_dict`: the words with the index of the next one, and a normal number that
    has been drawn already.
    """

    def __init__(self, rng: HasState) -> None:
        self.rng = rng
        self.state_dict()  # raises an error before anything is read or written

    def state_dict(self) -> dict[str, list[float]]:
        try:
            version, words, normal = self.rng.getstate()
            if version == 3 and len(words) == WORDS + 1:
                return {"words": [float(word) for word in words], "normal": [] if normal is None else [normal]}
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            pass
        raise ArgumentError(f"rng is {self.rng!r:.60}; expected the module random or a random.Random")

    def load_state_dict(self, state: dict[str, list[float]]) -> None:
        """Restore a state, after a check of its numbers."""
        words, normal = state["words"], state["normal"]
        if not all(0.0 <= word < 2.0**32 and word.is_integer() for word in words) or not words[WORDS] <= WORDS:
            raise CheckpointError("damaged: the state of random numbers is invalid")
        self.rng.setstate((3, tuple([int(word) for word in words]), normal[0] if normal else None))
