"""Who owns what: the modules that are alive, so that a drawing can name a parameter by the model that it belongs to.

A Module enters itself here when it is made, and leaves when nothing else refers to it. Nothing is written on a Value,
so computing costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from wengert.errors import WengertError

__all__ = ["enter", "parameters"]

_alive: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""By identity, not by equality: a user's class may define `==`. Dictionaries keep the order of entry."""


def enter(owner: Any) -> None:
    """Remember an object that has `named_parameters()`, as long as it lives."""
    _alive[id(owner)] = owner


def parameters(among: Iterable[Any]) -> dict[Any, list[str]]:
    """Which of some Values are parameters, and their names: in the largest owner first, then in those inside of that.

    A parameter of several models that are alive is named by the largest of them, and by the older of two that are
    equally large. Before the name stands the kind of the model, as in ``MLP layers.0.neurons.3.w.17``.

    >>> from wengert.nn import MLP
    >>> model = MLP(2, [1])
    >>> b = model.layers[0].neurons[0].b
    >>> parameters([b])[b]
    ['MLP layers.0.neurons.0.b', 'Layer neurons.0.b', 'Neuron b']
    """
    wanted = set(among)
    owned = []
    for owner in list(_alive.values()):
        try:
            if wanted.isdisjoint(owner.parameters()):
                continue  # perhaps a large one, whose names would take long to write
            owned.append((type(owner).__name__, owner.named_parameters()))
        except (WengertError, AttributeError):
            continue  # two parameters of one name, or an object that is not yet complete
    owned.sort(key=lambda pair: -len(pair[1]))
    names: dict[Any, list[str]] = {}
    for kind, named in owned:
        for name, parameter in named:
            if parameter not in wanted:
                continue
            names.setdefault(parameter, []).append(f"{kind} {name}")
    return names
