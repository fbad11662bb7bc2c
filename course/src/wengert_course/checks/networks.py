"""Whether a Neuron, a Layer and an MLP are right, from the numbers that came out of them.

What a network of these parameters gives is computed here anew, in plain floats, and its gradients by differences. Where
something else was seen, the slips are put into that computation one after the other, until it gives what was seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from wengert_course.checks.exercises import alike, close, slopes
from wengert_course.checks.kit import Draw
from wengert_course.checks.network_trials import OBJECTS
from wengert_course.checks.report import FOLLOWS, MAY_FOLLOW, Verdict
from wengert_course.checks.steps import TRIALS, Seen
from wengert_course.texts import slips, texts

__all__ = ["judge"]

TEXTS = texts("networks")
ASKED: dict[str, str] = TEXTS["asked"]
"""What step 8 asks for, in the order to do it."""

SLIPS = slips(TEXTS)
"""The name of a slip: what it says, and what to write."""

Function = Callable[[float], float]
ACTIVATIONS: dict[str, Function] = {
    "tanh": math.tanh,
    "relu": lambda z: max(z, 0.0),
    "sigmoid": lambda z: 0.5 * (1.0 + math.tanh(0.5 * z)),
    "leaky relu": lambda z: max(z, 0.01 * z),
    "leaky relu of 0.1": lambda z: max(z, 0.1 * z),
    "softplus": lambda z: math.log1p(math.exp(-abs(z))) + max(z, 0.0),
    "silu": lambda z: 0.5 * z * (1.0 + math.tanh(0.5 * z)),
    "elu": lambda z: z if z > 0.0 else math.expm1(z),
    "linear": lambda z: z,
}


def _each(w: Sequence[float], x: Sequence[float], f: Function = float) -> float:
    """The sum of a function of each product, of as many as there are of both, as `zip` has it."""
    return math.fsum([f(wi * xi) for wi, xi in zip(w, x, strict=False)])


FORMS: list[tuple[str, Callable[[Sequence[float], float, Sequence[float], Function], float]]] = [
    ("", lambda w, b, x, f: f(_each(w, x) + b)),
    ("bias left out", lambda w, b, x, f: f(_each(w, x))),
    ("bias after the activation", lambda w, b, x, f: f(_each(w, x)) + b),
    ("activation of each product", lambda w, b, x, f: _each(w, x, f) + b),
    ("activation of each product", lambda w, b, x, f: f(_each(w, x, f) + b)),
    ("activation of each product", lambda w, b, x, f: _each(w, x, lambda z: f(z + b))),
    ("bias in each product", lambda w, b, x, f: f(_each(w, x, lambda z: z + b))),
    ("one product only", lambda w, b, x, f: f(w[-1] * x[-1] + b)),
    ("one product only", lambda w, b, x, f: f(w[-1] * x[-1])),
    ("one product only", lambda w, b, x, f: f(w[0] * x[0] + b)),
    ("one product only", lambda w, b, x, f: f(w[0] * x[0])),
    ("sum for product", lambda w, b, x, f: f(math.fsum([*w, *x, b]))),
    ("bias as a factor", lambda w, b, x, f: f(_each(w, x) * b)),
]
"""A neuron as it is written, with the name of its slip; the first is right."""

CHAINS = ("", "inputs to each layer", "one layer only", "one neuron only")
"""A network as it is written, likewise."""

CAUSES = {
    "plain parameters": {"plain weights", "no bias"},
    "parameters repeated": {"repeated neuron", "shared bias"},
    "parameters missing": {"bias not a parameter"},
}
"""A slip: those of which it is a consequence."""

Neuron = tuple[list[int], int | None]  # which Values are its weights, and which its bias


class _Network(NamedTuple):
    """A way to compute a network's outputs."""

    layers: list[list[Neuron]]
    functions: tuple[str, str]  # of all layers but the last, and of the last
    form: int = 0
    chain: str = ""
    place: int = 0  # of the only neuron that is returned

    def outputs(self, values: Sequence[float], x: Sequence[float]) -> list[float]:
        """What it gives for one list of inputs."""
        given = list(x)
        for i, layer in enumerate(self.layers):
            f, form = ACTIVATIONS[self.functions[i == len(self.layers) - 1]], FORMS[self.form][1]
            read = x if self.chain == "inputs to each layer" else given
            given = [form([values[k] for k in w], 0.0 if b is None else values[b], read, f) for w, b in layer]
            if self.chain == "one layer only":
                break
        return [given[self.place]] if self.chain == "one neuron only" else given

    def slopes(self, values: Sequence[float], x: Sequence[float], output: int) -> list[float]:
        """The gradient of one output by every Value, by central differences."""
        return slopes(lambda *values: self.outputs(values, x)[output], values, 1e-5)


class _Probe(NamedTuple):
    """One call: what went in, and what came out."""

    x: list[float]
    values: list[float]
    form: int
    outputs: list[float]
    gradients: list[list[float]]

    def fits(self, network: _Network) -> bool:
        """Whether a network gives these outputs."""
        return alike(network.outputs(self.values, self.x), self.outputs)


class _Object:
    """What was told of one object."""

    def __init__(self, name: str, plain: float = 0, values: Sequence[Sequence[float]] = ()) -> None:
        self.name, self.plain = name, plain
        nin, nouts = (*OBJECTS[name], 1)[:2]
        self.sizes: list[int] = [nin, *(nouts if isinstance(nouts, list) else [nouts])]  # inputs, then each layer's
        self.nins = [nin for nin, nout in zip(self.sizes, self.sizes[1:], strict=False) for _ in range(nout)]
        self.places = [(owner, within) for owner, within, _, _ in values]
        self.data = [data for _, _, data, _ in values]
        self.leaves = [leaf == 1 for *_, leaf in values]
        self.neurons = self._neurons("own")

    def _neurons(self, bias: str) -> list[Neuron]:
        """Its neurons: each has a list of weights, and a bias of its own, or at an end of that list, or none."""
        found: dict[float, tuple[dict[float, list[int]], list[int]]] = {}
        for k, (owner, within) in enumerate(self.places):
            lists, single = found.setdefault(owner, ({}, []))
            single.append(k) if within == owner else lists.setdefault(within, []).append(k)
        made: list[Neuron] = []
        for lists, single in found.values():
            if lists:
                w, *more = lists.values()
                own = (w, next(iter([*single, *[k for part in more for k in part]]), None))
                made.append({"own": own, "last": (w[:-1], w[-1]), "first": (w[1:], w[0])}[bias])
        return made

    def networks(self, known: int) -> Iterator[_Network]:
        """The ways to write the network, the right one first; `known` is the form of a neuron that was found before."""
        deep = len(self.sizes) > 2
        pairs = [(f, f) for f in ACTIVATIONS] + [(f, g) for f, g in product(ACTIVATIONS, repeat=2) if f != g and deep]
        readings, sizes = [], self.sizes[1:]
        for bias in ("own", "last", "first"):
            neurons = self._neurons(bias)
            if len(neurons) == len(sizes) < sum(sizes):  # each neuron is there several times
                neurons = [one for one, size in zip(neurons, sizes, strict=True) for _ in range(size)]
            if len(neurons) >= sum(sizes):
                rest = iter(neurons)
                readings.append([[next(rest) for _ in range(size)] for size in sizes])
        for chain in CHAINS if deep else ("", "one neuron only"):
            others = [form for form in range(len(FORMS)) if form != known and not chain]
            for form, functions, layers in product([known, *others], pairs, readings):
                for place in (0, -1) if chain == "one neuron only" else (0,):
                    yield _Network(layers, functions, form, chain, place)

    def probes(self, told: Sequence[Any], numbers: Draw) -> list[_Probe]:
        """The calls, and what went in."""
        found = []
        for outcome in told:
            x, values = ([numbers.small() for _ in range(n)] for n in (self.sizes[0], len(self.data)))
            found.append(_Probe(x, values, *outcome))
        return found


class _Networks(Verdict):
    """What is known of the networks so far."""

    step, words = 8, SLIPS
    form: int = 0  # of a neuron, as it was found
    bent: bool = False  # whether the MLP has an activation
    start: _Object | None = None  # the largest object, as it was made

    def error(self, row: str, outcome: Seen) -> str:
        """The slip of an error that ended the trial, where it does not follow from something wrong above."""
        if self.spoilt:
            return MAY_FOLLOW
        ends = {"timeout": "does not end", "died": "ends the process"}.get(outcome.kind, "raises an error")
        zero = "'int' and" in outcome.says and "+" in outcome.says
        told = {"ends": ends}
        return self.find("sum from zero" if zero else "error", row, told=told, where=outcome.place, what=outcome.says)

    def calls(self, row: str, one: _Object, probes: Sequence[_Probe], outcome: Seen) -> None:
        """The structure, the outputs and the gradients of one object."""
        remark, cut = self.structure(row, one), ""
        held = remark not in ("plain weights", "no bias")
        if probes and held:
            remark = self.outputs(row, one, probes[0]) or remark
        if not probes or probes[0].form > 1 or not held:
            return self.row(row, "wrong", remark=remark or self.error(row, outcome))
        network = next((network for network in one.networks(self.form) if all(p.fits(network) for p in probes)), None)
        if network is None:
            alike = len(probes[0].outputs) == one.sizes[-1]
            if not remark and not self.spoilt:
                remark = self.find("unknown" if alike else "number of outputs", row)
            return self.row(row, "wrong", remark=remark or MAY_FOLLOW)
        if network.functions[0] == "linear":
            self.find("no activation", row)
        self.bent |= len(one.sizes) > 2 and network.functions[0] != "linear"
        right = network._replace(form=0, chain="")
        for slip in filter(None, (FORMS[network.form][0], network.chain)):
            at = next((p for p in probes if not p.fits(right)), probes[0])
            should = right.outputs(at.values, at.x)[0]
            remark = self.find(slip, row, what=f"{row}(x)", where=f"x = {at.x}", expected=should, got=at.outputs[0])
        self.form = network.form
        cut = self.gradients(row, network, probes)
        if outcome.kind:
            return self.row(row, "wrong", remark=self.error(row, outcome))
        return self.row(row, "wrong" if remark else "ok", "wrong" if cut else "ok", remark or cut)

    def structure(self, row: str, one: _Object) -> str:
        """Which neurons there are, with how many weights; the slip, if one shows."""
        neurons, lengths = one.neurons, [len(w) for w, _ in one.neurons]
        if not neurons:
            return self.find("plain weights", row) if one.plain else ""
        if all(b is None and n <= nin for (_, b), n, nin in zip(neurons, lengths, one.nins, strict=False)):
            return self.find("no bias", row)
        if len(neurons) < len(one.nins) and lengths == one.sizes[:-1]:
            expected, got = float(len(one.nins)), float(len(neurons))
            return self.find("repeated neuron", row, what=f"the neurons of {row}", expected=expected, got=got)
        if neurons[0][1] is not None and any(b is None for _, b in neurons):
            return self.find("shared bias", row)
        if len(neurons) != len(one.nins):
            return self.find("number of neurons", row)
        for (_, b), n, nin in zip(neurons, lengths, one.nins, strict=True):
            if n != nin and not (b is None and n == nin + 1):
                return self.find("number of weights", row, told={"nin": nin, "has": n})
        return ""

    def outputs(self, row: str, one: _Object, first: _Probe) -> str:
        """Whether what came back are Values; the slip, if they are not."""
        if first.form == 2:
            lost = one.name.startswith("MLP") and alike(first.outputs, first.x)
            return self.find("layer's output lost" if lost else "plain result", row)
        if first.form < 2 and not (one.name == "Neuron" and first.form == 1):
            return ""
        slip = "nothing returned" if first.form == 3 else "no Value returned"
        return MAY_FOLLOW if self.spoilt else self.find(slip, row)

    def gradients(self, row: str, network: _Network, probes: Sequence[_Probe]) -> str:
        """The gradients against differences; the slip, if one shows."""
        pairs = [(network.slopes(p.values, p.x, i), p.gradients[i]) for p in probes for i in range(len(p.outputs))]
        off = {k: (r[k], g[k]) for r, g in pairs for k in range(len(r)) if not close(r[k], g[k], 1e-4, 1e-4)}
        cut = {k for k in off if all(got[k] == 0.0 for _, got in pairs)}
        if not off:
            return ""
        for k, (right, got) in off.items():
            if k not in cut:
                return self.find("gradients", row, what="the gradient of a parameter", expected=right, got=got)
        biases = {b for layer in network.layers for _, b in layer}
        which = "the biases" if cut <= biases else "the weights" if not cut & biases else "the parameters"
        if which == "the parameters" and not cut & {k for w, b in network.layers[-1] for k in (*w, b)}:
            which = "the layers before the last"
        return self.find("graph cut", row, told={"which": which})

    def parameters(self, row: str, one: _Object, outcome: Seen) -> None:
        """What parameters() gives: each parameter once."""
        if outcome.kind:
            return self.row(row, "wrong", remark=self.error(row, outcome))
        kind, same, items = outcome.numbers[1]
        expected = sum([nin + 1 for nin in one.nins])
        biases = {b for _, b in one.neurons if b is not None}
        missing = ({k for w, _ in one.neurons for k in w} | biases) - set(items)
        slips = {
            "nothing returned": kind == 0,
            "nested parameters": kind == 2,
            "plain parameters": -2 in items,
            "parameters made anew": -1 in items and not same,
            "parameters repeated": any(times > 1 for k, times in Counter(items).items() if k >= 0),
            "bias not a parameter": missing and missing <= biases,
            "parameters missing": missing,
            "number of parameters": len(items) != expected,
        }
        slip = next((slip for slip, there in slips.items() if there), "")
        if not slip:
            if not all(one.leaves[k] for k in items if k >= 0):
                self.find("parameter computed", row, note=True)
            return self.row(row)
        causes = {slip, *CAUSES.get(slip, ())}
        if any(map(self.has, causes)) or (slip == "number of parameters" and self.spoilt):
            return self.row(row, "wrong", remark=FOLLOWS)
        self.find(slip, row, what="their number", expected=float(expected), got=float(len(items)))
        return self.row(row, "wrong", remark=slip)

    def at_the_start(self) -> None:
        """The numbers with which the largest object there is was made."""
        one, row = self.start, "the weights at the start"
        if one is None or not one.neurons:
            return
        weights = [tuple(one.data[k] for k in w) for w, _ in one.neurons]
        numbers = [number for w in weights for number in w]
        slip = "equal weights" if len(set(numbers)) == 1 < len(numbers) else ""
        slip = slip or ("neurons alike" if len(set(weights)) < len(weights) else "")
        self.row(row, "wrong" if slip else "ok", remark=self.find(slip, row) if slip else "")
        if not slip and len(numbers) > 20 and (min(numbers) >= 0.0 or max(numbers) <= 0.0):
            self.find("one-sided weights", row, note=True)


def judge(seen: Mapping[str, Seen], seed: int) -> Verdict:
    """The table of step 8, what is wrong, and what is not there yet."""
    state = _Networks()
    for trial in [trial for trial in TRIALS.values() if trial.step == 8]:
        outcome, name = seen.get(trial.id), trial.id.removesuffix(".parameters()")
        if outcome is None or outcome.kind == "not tried":
            state.row(trial.row, "", state="not tried")
        elif outcome.kind.endswith("absent"):
            asked = max([key for key in ASKED if outcome.says.endswith(key)], key=len, default="")
            says = ASKED.get(asked, outcome.says)
            state.not_yet(trial.row, "" if any(one.says == says for one in state.later) else says)
        else:
            one = _Object(name, *(outcome.numbers or ((),))[0])
            state.start = one if state.start is None or len(one.data) > len(state.start.data) else state.start
            if name == trial.id:
                state.calls(trial.row, one, one.probes(outcome.numbers[1:], Draw(seed, name)), outcome)
            else:
                state.parameters(trial.row, one, outcome)
    linear = next((finding for finding in state.findings if finding.slip == "no activation"), None)
    if linear is not None and state.bent:  # it stands between the layers, which is as good
        state.findings.remove(linear)
    elif linear is not None:
        for i, row in enumerate(state.rows):
            if row.name in linear.rows:
                state.rows[i] = replace(row, values="wrong", state="wrong", remark="no activation")
    state.at_the_start()
    return state
