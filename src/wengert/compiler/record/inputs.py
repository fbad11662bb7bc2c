"""The arguments of a recorded run: a node for each of their numbers, and what the function gets in its place."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.compiler.arguments import Arguments, ArraySpec
from wengert.compiler.traced import Bool, Integer, Mixed, Number, Recorder, presented
from wengert.engine import Value

__all__ = ["Inputs"]


class Inputs:
    """The inputs of one recorded run.

    Args:
        recorder: the recorder of the run.
        arguments: the arguments of the call.
        integers: other integers in place of those that were passed.
        fixed: True to make integers part of the specialization where they choose an item.
        given: by name Values that are the nodes of an input.
        for_values: the names of inputs in place of Values: see `Number`.

    Attributes:
        nodes: the nodes of each input, in its shape.
        of_values: the names of the inputs that consist of Values.
        integers: the integers among the arguments, in order.
        mixed: by name the inputs whose numbers may be ints or floats.
    """

    def __init__(
        self, recorder: Recorder, arguments: Arguments, integers: Sequence[int], fixed: bool,
        given: Mapping[str, Sequence[Value]], for_values: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.nodes: dict[str, Any] = {}
        self.of_values: list[str] = []
        self.integers: list[Integer] = []
        self.mixed: dict[str, Mixed] = {}
        self._recorder: Recorder = recorder
        self._names: Sequence[str] = arguments.signature.names
        self._distinguished: set[int] | None = arguments.distinguished()
        self._others: Any = iter(integers)
        self._fixed: bool = fixed
        self._given: Mapping[str, Sequence[Value]] = given
        self._for_values: Collection[str] = for_values

    def proxy(self, leaf: ArraySpec, array: Any) -> Any:
        """Return what the function gets for the next input: a number, or an array of these."""
        proxies: Any = np.empty(leaf.shape, dtype=object)
        name = self._names[len(self.nodes)]
        flat = np.asarray(array, dtype=object).reshape(-1).tolist() if leaf.shape else [array]
        self.nodes[name] = np.empty(leaf.shape, dtype=object)
        nodes, tracers = self.nodes[name].reshape(-1), proxies.reshape(-1)
        for place, x in enumerate(flat):
            own = self._given[name][place] if name in self._given else None
            nodes[place], tracers[place] = self._input(leaf, name, x, own)
        if leaf.kind == "v":
            self.of_values.append(name)
        else:
            self._recorder.plain.update(map(id, nodes))
        if leaf.is_scalar:
            return proxies.item()
        if np.ndarray in leaf.held:
            proxies = presented(proxies)
            proxies.of_argument = True
        return proxies

    def _input(self, leaf: ArraySpec, name: str, x: Any, own: Value | None) -> tuple[Value, Any]:
        """Return the node for one number of an argument, which may be its `own`, and its proxy."""
        recorder = self._recorder
        if leaf.kind == "v":
            node = Value(x._data)
            recorder.arguments[id(node)] = node
            if self._distinguished is not None and id(x) not in self._distinguished:
                recorder.listed.add(id(node))
            return node, node
        number = leaf.number(next(self._others, int(x)) if leaf.kind == "i" else x)
        node = Value(float(number)) if own is None else own
        if leaf.kind == "i":
            self.integers.append(Integer(recorder, number, node, name, self._fixed))
            return node, self.integers[-1]
        if leaf.kind == "b":
            outcome = Bool(recorder, number, node)
            return node, outcome.concrete() if recorder.observes_bools else outcome
        proxy = Number(recorder, number, node)
        proxy.for_value = name in self._for_values
        if leaf.is_mixed:
            proxy.doubt = self.mixed.setdefault(name, Mixed(recorder, math.prod(leaf.shape)))
            recorder.type_uncertain = True
        return node, proxy

    @property
    def every(self) -> list[Any]:
        """The nodes of all inputs, in order."""
        return [x for nodes in self.nodes.values() for x in nodes.reshape(-1)]

    @property
    def names(self) -> dict[int, str]:
        """The name of each node, by its identity."""
        return {
            id(node): f"{name}[{', '.join(map(str, place))}]" if place else name
            for name, nodes in self.nodes.items()
            for place, node in np.ndenumerate(nodes)
        }

    @property
    def indices(self) -> list[str]:
        """The names of the inputs that consist of integers."""
        nodes = {id(integer._node) for integer in self.integers}
        return [name for name, array in self.nodes.items() if array.size and id(array.flat[0]) in nodes]
