"""Optimizers: SGD, Adam and AdamW.

An optimizer gets the parameters once. After each backward pass `step()` updates them from their gradients, and
`zero_grad()` clears the gradients for the next. The formulas are PyTorch's.

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
from typing import TYPE_CHECKING, Any, Literal, Self

from wengert.engine import Value
from wengert.errors import ArgumentError, answer, counted, no_none, refer, unknown_keyword
from wengert.ops import ieee, positive, within
from wengert.ops.ieee import Array, Nodes, cython
from wengert.parameters import HasParameters, Parameters, leaves, listed

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["SGD", "Adam", "AdamW", "HasParameters", "Optimizer", "Parameters", "Rate", "clip_grad_norm"]

Rate = float | Callable[[int], float]
OVERRIDABLE = {"_rule", "_update", "lr", "step", "zero_grad"}  # a subclass that overrides one of these changes a step
ELSEWHERE: dict[str, str] = {  # parameters of other libraries' optimizers
    **{
        name: f"write {ours} for {name}"
        for ours, names in {
            "parameters": ("params", "model", "model_parameters"),
            "lr": ("learning_rate", "alpha", "eta", "step_size", "lrate"),
            "eps": ("epsilon",),
            "weight_decay": ("decay", "l2"),
        }.items()
        for name in names
    },
    **dict.fromkeys(("beta1", "beta2", "b1", "b2"), "write betas=(0.9, 0.999)"),
    "maximize": "minimize -loss instead",
    "amsgrad": "leave it out, and lower lr if the steps do not settle",
    **dict.fromkeys(("foreach", "fused", "capturable", "differentiable"), "leave it out: the update is one loop in C"),
}
Number = float  # unlike `float`, Cython does not check this annotation, so that our own check and message apply


class Optimizer:
    """The base class of SGD, Adam and AdamW: it has the parameters, the learning rate, and which ones are frozen.

    To write your own optimizer, derive from it and define the update of one parameter in `_rule`, or of all in
    `_update`.

    Args:
        parameters: leaf Values, or a Module. Duplicates count once.
        lr: the learning rate, or a function from the step (0, 1, 2, ...) to it.
        *state: names of numbers to keep for every parameter from step to step; they start at 0.

    Raises:
        ArgumentError: there are no parameters, or a hyperparameter is out of range.
        OperandError: a parameter is not a leaf Value.
    """

    _settings: tuple[str, ...] = ("steps",)  # attributes that `repr` shows; in subclasses the hyperparameters

    def __new__(cls, *arguments: Any, **named: Any) -> Self:  # noqa: D102  (the reference would show it of an optimizer)
        for name in named:
            if name != "lr" and name not in cls._settings:
                _check_keyword(cls, name)
        return super().__new__(cls)

    def __init_subclass__(cls, **named: Any) -> None:
        """Remove the inherited `_loop` from a subclass that defines another `_rule`, since it has the base's rule."""
        super().__init_subclass__(**named)
        if "_rule" in vars(cls) and "_loop" not in vars(cls):
            cls._loop = Optimizer._loop  # type: ignore[method-assign]

    def __init__(self, parameters: Parameters, lr: Rate, *state: str) -> None:
        self.parameters: list[Value] = leaves(parameters)
        if not self.parameters:
            raise ArgumentError("there are no parameters to optimize: pass a Module or leaf Values")
        self.steps: int = 0
        self._places = {p: i for i, p in enumerate(self.parameters)}
        self._active: list[Value | None] = list(self.parameters)  # None where one is frozen
        self._frozen: int = 0  # the number of frozen ones
        self._state: dict[str, array[float]] = {n: array("d", bytes(8 * len(self.parameters))) for n in state}
        self.lr = lr

    @property
    def lr(self) -> float:
        """The learning rate of the next step. It can be set to a number or to a function of the step."""
        if not callable(self._lr):
            return self._lr
        return within(f"the learning rate of step {self.steps}", self._lr(self.steps), 0.0, math.inf)

    @lr.setter
    def lr(self, rate: Rate) -> None:
        self._lr = rate if callable(rate) else within("lr", rate, 0.0, math.inf)

    @property
    def trainable(self) -> list[Value]:
        """The parameters that `step` updates: all that are not frozen."""
        return [p for p in self._active if p is not None]

    def step(self) -> None:
        """Update every parameter that is not frozen from its gradient."""
        self._update(self.lr)
        self.steps += 1

    def zero_grad(self, set_to_none: Literal[False] = False) -> None:
        """Set the gradient of every parameter to 0, before the next backward pass.

        Raises:
            KeywordError: `set_to_none`, a parameter of PyTorch's, is True: here a gradient is always a number.
        """
        if set_to_none:
            raise no_none()
        _zero(self.parameters)

    def freeze(self, *parameters: Value | Parameters) -> None:
        """Exclude parameters from the following steps; their momentum and age stay as they are.

        Args:
            parameters: Values, lists of Values, Modules.

        Raises:
            ArgumentError: one is not a parameter of this optimizer; then none is frozen.

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
        """Include parameters in the following steps again, with the momentum and age they had.

        Raises:
            ArgumentError: one is not a parameter of this optimizer; then none is unfrozen.
        """
        for i in self._found(parameters):
            self._frozen -= self._active[i] is None
            self._active[i] = self.parameters[i]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimizer as plain lists, from which training resumes bit for bit.

        Hyperparameters, and which parameters are frozen, are not part of it.
        """
        return {"algorithm": type(self).__name__, "steps": self.steps, **{n: list(x) for n, x in self._state.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`; on an error nothing is changed.

        Raises:
            ArgumentError: the state is of another algorithm, or of another number of parameters.
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
                raise ArgumentError(f"{name} is for {counted(len(numbers), 'parameter')}, not {len(self.parameters)}")
            if name in ("age", "square") and any(number < 0.0 for number in numbers):
                raise ArgumentError(f"{name} has a negative number")
        if steps < 0 or steps != state["steps"]:
            raise ArgumentError(f"steps is {state['steps']}; expected an int >= 0")
        self._state.update(loaded)
        self.steps = steps

    def __repr__(self) -> str:
        settings = [f", {name}={getattr(self, name)}" for name in self._settings]
        rate = getattr(self._lr, "__name__", self._lr)
        return f"{type(self).__name__}({counted(len(self.parameters), 'parameter')}, lr={rate}{''.join(settings)})"

    def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        """Return the new value of a parameter `x` with gradient `g`, followed by the new values of its state.

        These are floats, or NumPy arrays over all parameters: use arithmetic and `ieee.root`, which work on both.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither _rule nor _update")

    def _factors(self, lr: float, age: float) -> tuple[float, ...]:
        """Return the factors of the update rule at a parameter's step number `age`, counted from 1."""
        return (lr,)

    def _update(self, lr: float) -> None:
        """Update the parameters in `self._active` by the rule."""
        for name, numbers in self._state.items():
            if len(numbers) != len(self._active):
                raise ArgumentError(f"{name} is for {counted(len(numbers), 'parameter')}, not {len(self._active)}")
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
        """Return an `UpdateLoop` with the rule and this state, or None."""
        return None

    def _takes_arrays(self) -> bool:
        """Return True if `_step_arrays` does what `step` does: nothing is frozen, and no subclass overrides a step."""
        overrides = [OVERRIDABLE & vars(owner).keys() for owner in (self, *type(self).__mro__)]
        # `Optimizer` defines a rule, and one subclass. That of a further one may call it, which takes floats alone.
        own = next(filter(None, overrides)) == {"_rule"} and sum("_rule" in names for names in overrides) == 2
        return own and not self._frozen and not callable(self._lr)  # a callable rate could read the parameters

    def _step_arrays(self, numbers: Any, gradients: Any, state: dict[str, Any]) -> None:
        """Do a `step`, with the same bits, on NumPy arrays of the numbers, gradients and state of all parameters."""
        lr = self.lr
        loop: UpdateLoop | None = self._loop(state) if ieee.COMPILED else None
        if loop is not None:
            loop.move(None, numbers, gradients, lr)
        else:
            moved, *changed = self._rule(lr, numbers, gradients, *state.values())
            changes = dict(zip(state, changed, strict=True))
            # No calls from here on, so that Ctrl-C cannot leave parameters, state and count inconsistent.
            numbers[...] = moved
            state |= changes
        self.steps += 1

    def _found(self, items: Iterable[Value | Parameters]) -> list[int]:
        """Return the indices of these in `self.parameters`."""
        values = [p for item in items for p in ([item] if isinstance(item, Value) else listed(item))]
        if other := [p for p in values if p not in self._places]:
            raise ArgumentError(f"{other[0]!r} is not a parameter of this optimizer")
        return [self._places[p] for p in values]


def _check_keyword(cls: type[Optimizer], name: str) -> None:
    """Raise a KeywordError if the `__init__` of a class is one of those below, and has no parameter of this name."""
    home: Any = next(base for base in cls.__mro__ if "__init__" in vars(base))
    known = ["parameters", "lr", *(() if home is Optimizer else home._settings)]
    if home.__module__ == __name__ and name not in known:  # not the user's
        raise unknown_keyword(cls.__name__, name, known, ELSEWHERE)


class SGD(Optimizer):
    """Stochastic gradient descent: velocity = momentum * velocity + gradient; parameter -= lr * velocity.

    Args:
        parameters: leaf Values, or a Module.
        lr: the learning rate, or a function from the step (0, 1, 2, ...) to it.
        momentum: the factor of the previous velocity, from 0 to below 1.
        nesterov: use Nesterov's momentum, which moves by gradient + momentum * velocity; needs momentum > 0.
        weight_decay: times the parameter, it is added to the gradient.

    Raises:
        ArgumentError: a hyperparameter is out of range.

    >>> SGD([Value(1.0)], lr=1.5, momentum=1.0)
    Traceback (most recent call last):
        ...
    wengert.errors.ArgumentError: momentum is 1.0; expected a number >= 0.0 and < 1.0
    """

    _settings = ("momentum", "nesterov", "weight_decay")

    def __init__(
        self,
        parameters: Parameters,
        lr: Rate | None = None,  # required: both engines raise the error below
        *,
        momentum: Number = 0.0,
        nesterov: bool = False,
        weight_decay: Number = 0.0,
    ) -> None:
        if lr is None:
            raise ArgumentError("lr, the learning rate, is missing: write SGD(model.parameters(), lr=0.05)")
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
    """Adam (Kingma and Ba 2015): a parameter moves by lr * mean gradient / sqrt(mean squared gradient).

    Both means are exponential averages with bias correction; weight decay is added to the gradient.

    Args:
        parameters: leaf Values, or a Module.
        lr: the learning rate, or a function from the step (0, 1, 2, ...) to it.
        betas: the decay rates of the two means, each from 0 to below 1.
        eps: added to the root, to avoid a division by 0.
        weight_decay: times the parameter, it is added to the gradient.

    Raises:
        ArgumentError: a hyperparameter is out of range.

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
        age = state[0] + 1.0  # in an array all items are equal: see `_takes_arrays`
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

    The decay is applied to the parameter and not to the gradient, so it does not enter the means. Arguments and errors
    are Adam's, but weight_decay is 0.01 by default.

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
    """Scale all gradients by one factor so that their norm is at most max_norm; return the norm before.

    The factor is PyTorch's, max_norm / (norm + 1e-6). If the norm is not finite, nothing is scaled, as no factor would
    help: check the result.

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
    norm = math.hypot(*[p.grad for p in values])  # hypot does not overflow
    factor = max_norm / (norm + 1e-6)
    if factor < 1.0 and norm < math.inf:
        _scale(values, factor)
    return norm


# -- the update rules: for one parameter, or for NumPy arrays of all; compiled, they compute with C numbers ------


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
    """Return the learning rate and the root's factor with the bias corrections of Adam's two means."""
    return lr / (1.0 - ieee.power(beta1, age)), 1.0 / ieee.sqrt(1.0 - ieee.power(beta2, age))


# -- the loops: over Values and over arrays; compiled, they are C loops -------------------------------------------


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
    """An update rule in a loop, with its settings and its state."""

    def move(self, parameters: Nodes | None, x: Array, g: Array, lr: float) -> None:
        """Update the `parameters` that are not None; if `parameters` is None, the numbers `x` with gradients `g`."""


@cython.cclass
class _SGDLoop(UpdateLoop):
    def __init__(self, velocity: Array, momentum: float, nesterov: bool, weight_decay: float) -> None:
        self.velocity, self.momentum, self.nesterov, self.weight_decay = velocity, momentum, nesterov, weight_decay

    def move(self, parameters: Nodes | None, x: Array, g: Array, lr: float) -> None:
        velocity, momentum, nesterov, decay = self.velocity, self.momentum, self.nesterov, self.weight_decay
        if parameters is None and not momentum:  # so that C takes several at a time
            for i in range(min(len(x), len(g))):
                x[i], _ = _sgd(x[i], g[i], 0.0, lr, 0.0, False, decay)
            return
        if parameters is None:
            for i in range(min(len(x), len(g), len(velocity))):
                x[i], velocity[i] = _sgd(x[i], g[i], velocity[i], lr, momentum, nesterov, decay)
            return
        for i in range(min(len(parameters), len(velocity))):  # reading the settings may have run any code
            p = ieee.at(parameters, i, Value)
            if ieee.held(p):
                p._data, velocity[i] = _sgd(p._data, p._grad, velocity[i], lr, momentum, nesterov, decay)


@cython.cclass
class _AdamLoop(UpdateLoop):
    def __init__(self, state: Any, betas: Any, eps: float, weight_decay: float, decoupled: bool) -> None:
        (self.age, self.mean, self.square), (self.beta1, self.beta2) = state, betas
        self.eps, self.weight_decay, self.decoupled = eps, weight_decay, decoupled

    def move(self, parameters: Nodes | None, x: Array, g: Array, lr: float) -> None:
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
        corrected = rate = scale = math.nan  # `corrected` is the age of rate and scale, usually that of all parameters
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


_RATE = "it has one learning rate, optimizer.lr, which may be a function of the step"
refer(
    Optimizer,
    {
        **dict.fromkeys(("param_groups", "add_param_group"), f"{_RATE}; for two rates, make two optimizers"),
        "learning_rate": _RATE,
        "params": "write optimizer.parameters",
        "state": "write optimizer.state_dict()",
        **dict.fromkeys(
            ("apply_gradients", "minimize", "update", "backward"), "write loss.backward(), then optimizer.step()"
        ),
        "defaults": "print(optimizer) shows its settings",
    },
    misspelled=("zero_grad",),
)
if not TYPE_CHECKING:  # a type checker would take any name
    __getattr__ = answer(
        __name__,
        {
            **dict.fromkeys(
                ("lrscheduler", "steplr", "exponentiallr", "lambdalr", "cosineannealinglr", "onecyclelr"),
                "a function of the step as lr, as in SGD(model, lambda k: 0.99**k)",
            ),
            "momentum": "SGD(model, 0.1, momentum=0.9)",
            **dict.fromkeys(("nesterov", "nag"), "SGD(model, 0.1, momentum=0.9, nesterov=True)"),
            **dict.fromkeys(
                ("rmsprop", "adadelta"),
                "Adam(model, 0.01, betas=(0.0, 0.99)), which is RMSprop with its bias corrected; "
                "or a class derived from Optimizer, with its own _rule",
            ),
            **dict.fromkeys(("nadam", "radam", "adamax", "sparseadam", "adamw8bit"), "Adam(model, 0.001)"),
            **dict.fromkeys(
                ("adagrad", "asgd", "rprop", "lion", "muon", "lamb", "lars", "adafactor"),
                "Adam(model, 0.001); or a class derived from Optimizer, with its own _rule",
            ),
            **dict.fromkeys(
                ("lbfgs", "bfgs"),
                'scipy.optimize.minimize(wengert.value_and_grad(f), x0, jac=True, method="L-BFGS-B")',
            ),
            **dict.fromkeys(("clipgradnorm", "clipgradvalue"), "clip_grad_norm(model, 1.0), before optimizer.step()"),
        },
    )
