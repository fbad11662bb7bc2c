"""Optimizers: SGD, Adam and AdamW, the only writers of parameters.

An optimizer is told once which parameters are its own. After each backward pass `step()` moves them by their
gradients, and `zero_grad()` clears those for the next. The formulas are PyTorch's.

    >>> from wengert.engine import Value
    >>> x = Value(5.0)
    >>> optimizer = SGD([x], lr=0.25)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (x * x).backward()
    ...     optimizer.step()
    >>> x.data
    0.625

A learning rate may be a function of the step, counted from 0: `SGD(parameters, lambda k: 1.0 - 0.009 * k)`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.ops import ieee, positive, within
from wengert.ops.ieee import Array, Nodes, cython
from wengert.parameters import HasParameters, Parameters, leaves, listed

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["SGD", "Adam", "AdamW", "HasParameters", "Optimizer", "Parameters", "Rate", "clip_grad_norm"]

Rate = float | Callable[[int], float]
OVERRIDABLE = {"_rule", "_update", "lr", "step", "zero_grad"}  # with each of these a subclass has a say in a step
Number = float  # under this name Cython leaves the check of an argument, and the message, to us


class Optimizer:
    """What SGD, Adam and AdamW share: whose parameters, at what rate, which of them are frozen.

    To write another, derive, and say in `_rule` how a parameter moves; or move all of them in `_update`.

    Args:
        parameters: leaf Values, or a Module. One that is listed twice is one parameter.
        lr: the learning rate, or a function that gives it for each step (0, 1, 2, ...).
        *state: the name of each number that is kept of every parameter from step to step; it begins as 0.

    Raises:
        ArgumentError: there are no parameters, or a hyperparameter is out of its range.
        OperandError: a parameter is not a leaf Value.
    """

    _settings: tuple[str, ...] = ("steps",)  # the attributes that `repr` shows: of a subclass, its hyperparameters

    def __init_subclass__(cls, **named: Any) -> None:
        """A subclass with a rule of its own has no loop, unless it says one: that of its base has another rule."""
        super().__init_subclass__(**named)
        if "_rule" in vars(cls) and "_loop" not in vars(cls):
            cls._loop = Optimizer._loop  # type: ignore[method-assign]

    def __init__(self, parameters: Parameters, lr: Rate, *state: str) -> None:
        self.parameters: list[Value] = leaves(parameters)
        if not self.parameters:
            raise ArgumentError("there are no parameters to optimize")
        self.steps: int = 0
        self._places = {p: i for i, p in enumerate(self.parameters)}
        self._active: list[Value | None] = list(self.parameters)  # None where one is frozen
        self._frozen: int = 0  # how many are
        self._state: dict[str, array[float]] = {n: array("d", bytes(8 * len(self.parameters))) for n in state}
        self.lr = lr

    @property
    def lr(self) -> float:
        """The learning rate of the next step. Set it to a number or to a function of the step."""
        if not callable(self._lr):
            return self._lr
        return within(f"the learning rate of step {self.steps}", self._lr(self.steps), 0.0, math.inf)

    @lr.setter
    def lr(self, rate: Rate) -> None:
        self._lr = rate if callable(rate) else within("lr", rate, 0.0, math.inf)

    @property
    def trainable(self) -> list[Value]:
        """The parameters that `step` moves: all that are not frozen."""
        return [p for p in self._active if p is not None]

    def step(self) -> None:
        """Move every parameter that is not frozen by its gradient."""
        self._update(self.lr)
        self.steps += 1

    def zero_grad(self) -> None:
        """Set the gradient of every parameter to 0, as before each new backward pass."""
        _zero(self.parameters)

    def freeze(self, *parameters: Value | Parameters) -> None:
        """Leave these out of every step from now on, together with their momentum and their age.

        Args:
            parameters: Values, lists of them, Modules.

        Raises:
            ArgumentError: one is not among this optimizer's parameters; then none is frozen.

        >>> w, b = Value(1.0), Value(0.0)
        >>> optimizer = SGD([w, b], lr=0.1)
        >>> optimizer.freeze(b)
        >>> (2.0 * w + b).backward()
        >>> optimizer.step()
        >>> w.data, b.data
        (0.8, 0.0)
        """
        for i in self._found(parameters):
            self._frozen += self._active[i] is not None
            self._active[i] = None

    def unfreeze(self, *parameters: Value | Parameters) -> None:
        """Take these into every step again, with the momentum and the age they had.

        Raises:
            ArgumentError: one is not among this optimizer's parameters; then none is unfrozen.
        """
        for i in self._found(parameters):
            self._frozen -= self._active[i] is None
            self._active[i] = self.parameters[i]

    def state_dict(self) -> dict[str, Any]:
        """What the steps so far have left here, as plain lists: training resumes from it to the last bit.

        What was passed to the optimizer (hyperparameters, which parameters are frozen) is not part of it.
        """
        return {"algorithm": type(self).__name__, "steps": self.steps, **{n: list(x) for n, x in self._state.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` of such an optimizer gave, or change nothing at all.

        Raises:
            ArgumentError: it is another algorithm's, or one for another number of parameters.
        """
        expected = ["algorithm", "steps", *self._state]
        if sorted(state) != sorted(expected) or state["algorithm"] != type(self).__name__:
            raise ArgumentError(f"not a state of {type(self).__name__}: expected {expected}, got {sorted(state)}")
        try:
            loaded = {name: array("d", state[name]) for name in self._state}
            steps = int(state["steps"])
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"not a state of {type(self).__name__}: {error}") from None
        for name, numbers in loaded.items():
            if len(numbers) != len(self.parameters):
                raise ArgumentError(f"{name} is of {len(numbers)} parameters; there are {len(self.parameters)}")
            if name in ("age", "square") and any(number < 0.0 for number in numbers):
                raise ArgumentError(f"{name} holds a negative number")
        if steps < 0 or steps != state["steps"]:
            raise ArgumentError(f"steps is {state['steps']}; expected a whole number from 0 up")
        self._state.update(loaded)
        self.steps = steps

    def __repr__(self) -> str:
        settings = [f", {name}={getattr(self, name)}" for name in self._settings]
        rate = getattr(self._lr, "__name__", self._lr)
        return f"{type(self).__name__}({len(self.parameters)} parameters, lr={rate}{''.join(settings)})"

    def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        """The update rule: what becomes of a parameter `x` of gradient `g`, and then of its state, as new numbers.

        These are floats, or NumPy arrays of the numbers of all parameters: arithmetic serves both, and `ieee.root`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it moves parameters")

    def _factors(self, lr: float, age: float) -> tuple[float, ...]:
        """What a rule of ours, `_moved`, takes where each parameter makes its step of this number, counted from 1."""
        return (lr,)

    def _update(self, lr: float) -> None:
        """Move the parameters in `self._active` by the rule."""
        for name, numbers in self._state.items():
            if len(numbers) != len(self._active):
                raise ArgumentError(f"{name} is of {len(numbers)} parameters; there are {len(self._active)}")
        loop: UpdateLoop | None = self._loop(self._state)
        if loop is not None:
            loop.move(self._active, None, None, lr)
            return
        columns = [*self._state.values()]
        for i, p in enumerate(self._active):
            if p is not None:
                p.data, *state = self._rule(lr, p.data, p.grad, *[column[i] for column in columns])
                for column, number in zip(columns, state, strict=True):
                    column[i] = number

    def _loop(self, state: Mapping[str, Any]) -> Any:
        """The rule in a `UpdateLoop`, with this state; None if there is none."""
        return None

    def _takes_arrays(self) -> bool:
        """Whether `_step_arrays` does now what `step` does: nothing is frozen, and no subclass has a say in it."""
        overrides = [OVERRIDABLE & vars(owner).keys() for owner in (self, *type(self).__mro__)]
        # A rule that overrides another may call it, and compiled that takes floats alone.
        own = next(filter(None, overrides)) == {"_rule"} and sum("_rule" in names for names in overrides) == 2
        return own and not self._frozen and not callable(self._lr)  # which may look at everything

    def _step_arrays(self, numbers: Any, gradients: Any, state: dict[str, Any]) -> None:
        """As `step`, with the same bits, for a loop that keeps in NumPy arrays what else is in Values and `_state`."""
        lr = self.lr
        loop: UpdateLoop | None = self._loop(state) if ieee.COMPILED else None
        if loop is not None:
            loop.move(None, numbers, gradients, lr)
        else:
            moved, *changed = self._rule(lr, numbers, gradients, *state.values())
            changes = dict(zip(state, changed, strict=True))
            # From here on nothing is called, so Ctrl-C cannot come between the parameters, the state and the count.
            numbers[...] = moved
            state |= changes
        self.steps += 1

    def _found(self, items: Iterable[Value | Parameters]) -> list[int]:
        """Where these stand in `self.parameters`."""
        values = [p for item in items for p in ([item] if isinstance(item, Value) else listed(item))]
        if other := [p for p in values if p not in self._places]:
            raise ArgumentError(f"{other[0]!r} is not a parameter of this optimizer")
        return [self._places[p] for p in values]


class SGD(Optimizer):
    """Stochastic gradient descent: velocity = momentum * velocity + gradient; parameter -= lr * velocity.

    Args:
        parameters: leaf Values, or a Module.
        lr: the learning rate, or a function that gives it for each step (0, 1, 2, ...).
        momentum: the share of the velocity that is kept from step to step, from 0 to below 1.
        nesterov: move by gradient + momentum * velocity: Nesterov's momentum. It needs momentum.
        weight_decay: added to the gradient, times the parameter.

    Raises:
        ArgumentError: a hyperparameter is out of its range.

    >>> SGD([Value(1.0)], lr=1.5, momentum=1.0)
    Traceback (most recent call last):
        ...
    wengert.errors.ArgumentError: momentum is 1.0; expected a number from 0.0 to below 1.0
    """

    _settings = ("momentum", "nesterov", "weight_decay")

    def __init__(
        self,
        parameters: Parameters,
        lr: Rate | None = None,  # required: the message below says so in both engines
        *,
        momentum: Number = 0.0,
        nesterov: bool = False,
        weight_decay: Number = 0.0,
    ) -> None:
        if lr is None:
            raise ArgumentError("lr is missing, the learning rate: SGD(model.parameters(), lr=0.05)")
        super().__init__(parameters, lr, "velocity")
        self.momentum: float = within("momentum", momentum, 0.0, 1.0)
        self.weight_decay: float = within("weight_decay", weight_decay, 0.0, math.inf)
        self.nesterov: bool = nesterov
        if nesterov and momentum == 0.0:
            raise ArgumentError("nesterov needs a momentum above 0")

    def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        return self._moved((lr,), x, g, *state)

    def _moved(self, factors: Sequence[Any], x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        return tuple(_sgd(x, g, state[0], factors[0], self.momentum, self.nesterov, self.weight_decay))

    def _loop(self, state: Mapping[str, Any]) -> Any:
        return _SGDLoop(state["velocity"], self.momentum, self.nesterov, self.weight_decay)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015): each parameter moves by its mean gradient over the root of its mean square.

    Both means fade exponentially and are corrected for having started at 0; weight decay is added to the
    gradient.

    Args:
        parameters: leaf Values, or a Module.
        lr: the learning rate, or a function that gives it for each step (0, 1, 2, ...).
        betas: how much of the mean and of the mean square is kept from step to step, each from 0 to below 1.
        eps: added to the root, so that nothing is divided by 0.
        weight_decay: added to the gradient, times the parameter.

    Raises:
        ArgumentError: a hyperparameter is out of its range.

    >>> x = Value(1.0)
    >>> optimizer = Adam([x], lr=0.1)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> print(f"{x:.6f}")                                          # the first step is lr, whatever the gradient
    0.900000
    """

    _settings = ("betas", "eps", "weight_decay")
    _decoupled = False

    def __init__(
        self,
        parameters: Parameters,
        lr: Rate = 1e-3,
        *,
        betas: Sequence[float] = (0.9, 0.999),
        eps: Number = 1e-8,
        weight_decay: Number = 0.0,
    ) -> None:
        super().__init__(parameters, lr, "age", "mean", "square")
        if len(betas) != 2:
            raise ArgumentError(f"betas is {betas!r}; expected two numbers")
        self.betas: Sequence[float] = tuple([within(f"betas[{i}]", b, 0.0, 1.0) for i, b in enumerate(betas)])
        self.eps: float = positive("eps", eps)
        self.weight_decay: float = within("weight_decay", weight_decay, 0.0, math.inf)

    def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        age = state[0] + 1.0  # of each parameter; in an array they are all the same
        return self._moved(self._factors(lr, age if isinstance(age, float) else age.item(0)), x, g, *state)

    def _factors(self, lr: float, age: float) -> tuple[float, ...]:
        rate, scale = _corrections(age, lr, self.betas[0], self.betas[1])
        return lr, rate, scale

    def _moved(self, factors: Sequence[Any], x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        (lr, rate, scale), (age, mean, square), (beta1, beta2) = factors, state, self.betas
        decay, apart = self.weight_decay, self._decoupled
        x, mean, square = _adam(x, g, mean, square, rate, scale, lr, beta1, beta2, self.eps, decay, apart)
        return x, age + 1.0, mean, square

    def _loop(self, state: Mapping[str, Any]) -> Any:
        kept = state["age"], state["mean"], state["square"]
        return _AdamLoop(kept, self.betas, self.eps, self.weight_decay, self._decoupled)

    def _takes_arrays(self) -> bool:
        age = self._state["age"]
        return super()._takes_arrays() and bytes(age) == bytes(age[:1]) * len(age)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): parameter *= 1 - lr * weight_decay.

    The decay is taken off the parameter itself, not added to the gradient, so the means do not see it.
    Arguments and errors are Adam's; here weight_decay is 0.01 unless given.

    >>> x = Value(1.0)
    >>> AdamW([x], lr=0.1, weight_decay=0.5).step()                # no gradient: only the decay is left
    >>> x.data
    0.95
    """

    _decoupled = True

    def __init__(
        self,
        parameters: Parameters,
        lr: Rate = 1e-3,
        *,
        betas: Sequence[float] = (0.9, 0.999),
        eps: Number = 1e-8,
        weight_decay: Number = 0.01,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, eps=eps, weight_decay=weight_decay)


def clip_grad_norm(parameters: Parameters, max_norm: Number) -> float:
    """Scale the gradients down together so that their norm is at most max_norm; returns what it was.

    The factor is PyTorch's, max_norm / (norm + 1e-6). If the norm is not finite nothing is scaled, as no
    factor would help: look at what is returned.

    Raises:
        ArgumentError: max_norm is not a positive number.

    >>> x, y = Value(1.0), Value(1.0)
    >>> (3.0 * x + 4.0 * y).backward()
    >>> clip_grad_norm([x, y], 1.0)
    5.0
    >>> print(f"{x.grad:.4f} {y.grad:.4f}")
    0.6000 0.8000
    """
    positive("max_norm", max_norm)
    values = leaves(parameters)
    norm = math.hypot(*[p.grad for p in values])  # hypot squares nothing that could overflow
    factor = max_norm / (norm + 1e-6)
    if factor < 1.0 and norm < math.inf:
        _scale(values, factor)
    return norm


# -- the update rules: of one parameter, or of NumPy arrays of all. Compiled, the numbers are C's ------------------


def _sgd(x: Any, g: Any, velocity: Any, lr: float, momentum: float, nesterov: bool, weight_decay: float) -> Any:
    g = g + weight_decay * x
    if momentum:
        velocity = momentum * velocity + g
        g = g + momentum * velocity if nesterov else velocity
    return x - lr * g, velocity


def _adam(
    x: Any, g: Any, mean: Any, square: Any, rate: float, scale: float, lr: float,
    beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
) -> Any:  # fmt: skip
    if decoupled:
        x = x * (1.0 - lr * weight_decay)
    else:
        g = g + weight_decay * x
    mean = beta1 * mean + (1.0 - beta1) * g
    square = beta2 * square + (1.0 - beta2) * (g * g)
    return x - rate * mean / (ieee.root(square) * scale + eps), mean, square


def _corrections(age: float, lr: float, beta1: float, beta2: float) -> Any:
    """The learning rate, and a factor for the root, with which it does not show that Adam's means began at 0."""
    return lr / (1.0 - ieee.power(beta1, age)), 1.0 / ieee.sqrt(1.0 - ieee.power(beta2, age))


# -- the loops: over Values, and over arrays; compiled, they are C ------------------------------------------------


def _zero(parameters: Nodes) -> None:
    for i in range(len(parameters)):
        p = ieee.at(parameters, i, Value)
        if ieee.held(p):
            p._grad = 0.0


def _scale(parameters: Nodes, factor: float) -> None:
    for i in range(len(parameters)):
        p = ieee.at(parameters, i, Value)
        if ieee.held(p):
            p._grad *= factor


@cython.cclass
class UpdateLoop:
    """An update rule in a loop, with the settings and the state of now."""

    def move(self, parameters: Nodes | None, x: Array, g: Array, lr: float) -> None:
        """Move all `parameters` that are not None, or else the numbers `x` by the gradients `g`."""


@cython.cclass
class _SGDLoop(UpdateLoop):
    """That of SGD."""

    def __init__(self, velocity: Array, momentum: float, nesterov: bool, weight_decay: float) -> None:
        self.velocity, self.momentum, self.nesterov, self.weight_decay = velocity, momentum, nesterov, weight_decay

    def move(self, parameters: Nodes | None, x: Array, g: Array, lr: float) -> None:
        """See there."""
        velocity, momentum, nesterov, decay = self.velocity, self.momentum, self.nesterov, self.weight_decay
        if parameters is None:
            for i in range(min(len(x), len(g), len(velocity))):
                x[i], velocity[i] = _sgd(x[i], g[i], velocity[i], lr, momentum, nesterov, decay)
            return
        for i in range(min(len(parameters), len(velocity))):  # the settings may have been numbers that run any code
            p = ieee.at(parameters, i, Value)
            if ieee.held(p):
                p._data, velocity[i] = _sgd(p._data, p._grad, velocity[i], lr, momentum, nesterov, decay)


@cython.cclass
class _AdamLoop(UpdateLoop):
    """That of Adam and AdamW."""

    def __init__(self, state: Any, betas: Any, eps: float, weight_decay: float, decoupled: bool) -> None:
        (self.age, self.mean, self.square), (self.beta1, self.beta2) = state, betas
        self.eps, self.weight_decay, self.decoupled = eps, weight_decay, decoupled

    def move(self, parameters: Nodes | None, x: Array, g: Array, lr: float) -> None:
        """See there."""
        age, mean, square, b1, b2 = self.age, self.mean, self.square, self.beta1, self.beta2
        eps, decay, apart = self.eps, self.weight_decay, self.decoupled
        if parameters is None:
            rate, scale = _corrections(age[0] + 1.0, lr, b1, b2)
            for i in range(min(len(x), len(g), len(age), len(mean), len(square))):
                age[i] += 1.0
                x[i], mean[i], square[i] = _adam(
                    x[i], g[i], mean[i], square[i], rate, scale, lr, b1, b2, eps, decay, apart
                )
            return
        corrected = rate = scale = math.nan  # the age that the two others are for: most often that of all parameters
        for i in range(min(len(parameters), len(age), len(mean), len(square))):
            p = ieee.at(parameters, i, Value)
            if ieee.held(p):
                age[i] += 1.0
                if age[i] != corrected:
                    corrected = age[i]
                    rate, scale = _corrections(corrected, lr, b1, b2)
                p._data, mean[i], square[i] = _adam(
                    p._data, p._grad, mean[i], square[i], rate, scale, lr, b1, b2, eps, decay, apart
                )
