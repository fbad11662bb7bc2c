"""What each operation of the table is in PyTorch, in JAX and in mpmath, and how each computes a recorded graph.

A peer takes the instructions of a `Graph` one by one, in its own arithmetic, and differentiates them by its own means:
PyTorch by its `backward()`, JAX by `jax.grad`, mpmath by differences in 60 digits. What it lacks (an operation that was
registered by `wengert.op`, the node of a compiled function) is stood in for by the value and the partial derivatives
that Wengert has, so that the rest can still be compared; the line says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert.errors import require
from wengert.graph import Graph
from wengert.ops.table import BUILT_IN

__all__ = ["PEERS", "Told", "lacking"]

EXTRA = "compare"
NOTHING = "no counterpart: Wengert's own value and partials stand in"
Function = Callable[..., Any]
Partials = dict[int, tuple[float, ...]]  # of the instructions that no peer has, by each operand


class Told(NamedTuple):
    """What a peer says of one instruction."""

    value: Any
    grad: Any
    counterpart: str


def _run(
    graph: Graph,
    table: dict[str, Function],
    leaf: Callable[[int], Any],
    stand_in: Function,
    shift: Function = lambda place, value: value,
) -> list[Any]:
    """The value of every instruction, by the functions of a table; `shift` may move each."""
    values: list[Any] = []
    for place, (op, operands, _) in enumerate(graph):
        xs = [x if isinstance(x, float) else values[x] for x in operands]
        if op.arity == 0:
            value = leaf(place)
        else:
            value = table[op.name](*xs) if op.name in table else stand_in(place, xs)
        values.append(shift(place, value))
    return values


def lacking(graph: Graph) -> list[int]:
    """The instructions that no peer has: operations of a user's own, and nodes of compiled functions."""
    return [
        place for place, (op, _, _) in enumerate(graph) if op.code >= BUILT_IN or (op.arity != 0 and op.value is None)
    ]


# -- PyTorch ----------------------------------------------------------------------------------------------------------


def _torch_table(torch: Any) -> dict[str, Function]:
    functional = torch.nn.functional

    def tensor(x: Any) -> Any:
        return x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.float64)

    def of_tensors(function: Function) -> Function:
        return lambda *xs: function(*map(tensor, xs))

    def of_many(function: Function) -> Function:
        return lambda *xs: function(torch.stack([tensor(x) for x in xs]))

    names = "relu exp log tanh abs sign minimum maximum exp2 expm1 log2 log10 log1p sqrt square reciprocal sin cos tan"
    names += " asin acos atan atan2 sinh cosh asinh acosh atanh hypot sigmoid erf erfc lgamma digamma"
    table = {name: of_tensors(getattr(torch, name)) for name in names.split()}
    table |= {name: of_tensors(getattr(functional, name)) for name in ("logsigmoid", "softplus", "gelu", "silu")}
    table |= _arithmetic()
    many = {"sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "max": torch.amax, "min": torch.amin}
    table |= {name: of_many(function) for name, function in many.items()}
    return table | {
        "where": of_tensors(lambda c, x, y: torch.where(c.detach() != 0, x, y)),
        "clip": of_tensors(torch.clamp),
        "stop_gradient": of_tensors(lambda x: x.detach().requires_grad_()),
        "cbrt": of_tensors(lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3)),
        "leaky_relu": of_tensors(lambda x, slope: torch.where(x > 0, x, slope * x)),
        "elu": of_tensors(lambda x, alpha: torch.where(x > 0, x, alpha * torch.expm1(x))),
        "gaussian": of_tensors(lambda x: torch.exp(-x * x)),
        "normal_cdf": of_tensors(torch.special.ndtr),
        "normal_pdf": of_tensors(lambda x: torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
        "polygamma": lambda n, x: torch.polygamma(int(n), tensor(x)),
        "logsumexp": of_many(lambda xs: torch.logsumexp(xs, 0)),
        "dot": lambda *xs: _dot(torch.dot, torch.stack, *map(tensor, xs)),
    }


def _arithmetic() -> dict[str, Function]:
    """The operators, which every peer takes as Python writes them."""
    return {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "pow": lambda x, y: x**y,
        "neg": lambda x: -x,
    }


def _dot(product: Function, stack: Function, *operands: Any) -> Any:
    """The row dot: w1 w2 ... x1 x2 ... bias."""
    half = len(operands) // 2
    if not half:
        return +operands[-1]
    return product(stack(operands[:half]), stack(operands[half:-1])) + operands[-1]


def by_torch(graph: Graph, partials: Partials) -> tuple[str, list[Told]]:
    """The graph on PyTorch: tensors of no dimension, in double precision."""
    torch = require("torch", EXTRA)

    def leaf(place: int) -> Any:
        return torch.tensor(graph.values[place].data, dtype=torch.float64, requires_grad=True)

    def stand_in(place: int, xs: Sequence[Any]) -> Any:
        total = torch.tensor(graph.values[place].data, dtype=torch.float64)
        for x, slope in zip(xs, partials[place], strict=True):
            if isinstance(x, torch.Tensor):
                total = total + slope * (x - x.detach())
        return total

    with torch.enable_grad():
        values = _run(graph, _torch_table(torch), leaf, stand_in)
        functions = [value.grad_fn for value in values]  # kept, so that each stays the object that it is
        for value in values:
            if value.requires_grad:
                value.retain_grad()
        root = values[graph.outputs[0]]
        if root.requires_grad:
            root.backward()
    lines = {
        id(thing): place
        for place, both in enumerate(zip(functions, values, strict=True))
        for thing in both
        if thing is not None
    }
    told = []
    for place, value in enumerate(values):
        grad = 0.0 if value.grad is None else value.grad.item()
        if graph[place].op.arity == 0:
            name = "leaf (AccumulateGrad)"
        elif place in partials:
            name = NOTHING
        else:
            name = _named_by_torch(functions[place], lines)
        told.append(Told(value.item(), grad, name))
    return f"torch {torch.__version__}", told


def _named_by_torch(own: Any, lines: dict[int, int]) -> str:
    """A `grad_fn` with its `next_functions`, which are other lines or further functions."""
    if own is None:
        return "detached: no grad_fn"

    def line(function: Any) -> str:
        if function is None:
            return "constant"
        place = lines.get(id(function), lines.get(id(getattr(function, "variable", None))))
        return f"#{place}" if place is not None else shown(function)

    def shown(function: Any) -> str:
        return f"{function.name()}({', '.join([line(after) for after, _ in function.next_functions])})"

    return shown(own)


# -- JAX --------------------------------------------------------------------------------------------------------------


def _jax_table(jax: Any) -> dict[str, Function]:
    jnp, special = jax.numpy, require("jax.scipy.special", EXTRA)

    def of_many(function: Function) -> Function:
        return lambda *xs: function(jnp.stack([jnp.asarray(x) for x in xs]))

    names = "exp log tanh abs sign minimum maximum exp2 expm1 log2 log10 log1p sqrt cbrt square reciprocal sin cos tan"
    names += " sinh cosh hypot"
    table = {name: getattr(jnp, name) for name in names.split()}
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
        table[name] = getattr(jnp, name.replace("a", "arc", 1))
    of_nn = ("relu", "sigmoid", "softplus", "silu", "elu", "leaky_relu")
    table |= {name: getattr(jax.nn, name) for name in of_nn}
    table |= {name: getattr(special, name) for name in ("erf", "erfc", "digamma")} | _arithmetic()
    many = {"sum": jnp.sum, "mean": jnp.mean, "prod": jnp.prod, "max": jnp.max, "min": jnp.min}
    table |= {name: of_many(function) for name, function in many.items()}
    return table | {
        "atan2": jnp.arctan2,
        "where": lambda c, x, y: jnp.where(jax.lax.stop_gradient(c) != 0, x, y),
        "clip": jnp.clip,
        "stop_gradient": jax.lax.stop_gradient,
        "logsigmoid": jax.nn.log_sigmoid,
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "gaussian": lambda x: jnp.exp(-x * x),
        "normal_cdf": special.ndtr,
        "normal_pdf": lambda x: jnp.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        "lgamma": special.gammaln,
        "polygamma": lambda n, x: special.polygamma(jnp.asarray(jax.lax.stop_gradient(n)).astype(int), x),
        "logsumexp": of_many(special.logsumexp),
        "dot": lambda *xs: _dot(jnp.dot, jnp.stack, *[jnp.asarray(x) for x in xs]),
    }


def by_jax(graph: Graph, partials: Partials) -> tuple[str, list[Told]]:
    """The graph on JAX, in double precision. What is added to each line, 0, has the gradient of that line."""
    jax = require("jax", EXTRA)
    switch = jax.enable_x64 if hasattr(jax, "enable_x64") else require("jax.experimental", EXTRA).enable_x64
    with switch(True):
        table = _jax_table(jax)

        def values(moves: Any) -> list[Any]:
            def stand_in(place: int, xs: Sequence[Any]) -> Any:
                total = graph.values[place].data
                for x, slope in zip(xs, partials[place], strict=True):
                    total = total + slope * (x - jax.lax.stop_gradient(x))
                return total

            return _run(
                graph,
                table,
                lambda place: graph.values[place].data,
                stand_in,
                lambda place, value: value + moves[place],
            )

        still = [jax.numpy.float64(0.0)] * len(graph)
        numbers = values(still)
        grads = jax.grad(lambda moves: values(moves)[graph.outputs[0]])(still)
        told = []
        for place, (op, operands, _) in enumerate(graph):
            if op.arity == 0:
                name = "leaf (an argument)"
            elif place in partials:
                name = NOTHING
            else:
                xs = [x if isinstance(x, float) else numbers[x] for x in operands]
                own = ", ".join(dict.fromkeys(_primitives(jax.make_jaxpr(table[op.name])(*xs).jaxpr)))
                name = f"{own or 'nothing'} of ({_places(operands)})"
            told.append(Told(float(numbers[place]), float(grads[place]), name))
    return f"jax {jax.__version__}", told


def _primitives(jaxpr: Any) -> list[str]:
    """The names of the primitives in a jaxpr, also in the functions that it calls; not of what only changes a type."""
    names: list[str] = []
    for equation in jaxpr.eqns:
        inner = [x for x in equation.params.values() if hasattr(x, "eqns") or hasattr(x, "jaxpr")]
        if inner:
            for x in inner:
                names += _primitives(getattr(x, "jaxpr", x))
        elif equation.primitive.name not in ("convert_element_type", "broadcast_in_dim"):
            names.append(equation.primitive.name)
    return names


def _places(operands: Sequence[int | float]) -> str:
    return ", ".join([f"{x:g}" if isinstance(x, float) else f"#{x}" for x in operands])


# -- mpmath -----------------------------------------------------------------------------------------------------------


def _mpmath_table(mp: Any) -> dict[str, Function]:
    half = mp.mpf(1) / 2

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + mp.exp(-x))

    same = "exp log tanh sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh sqrt expm1 log10 log1p hypot"
    same += " erf erfc digamma"
    table = {name: getattr(mp, name) for name in same.split()} | _arithmetic()
    return table | {
        "abs": abs,
        "sign": mp.sign,
        "relu": lambda x: x if x > 0 else mp.mpf(0),
        "minimum": min,
        "maximum": max,
        "where": lambda c, x, y: x if c else y,
        "clip": lambda x, low, high: min(max(x, low), high),
        "stop_gradient": lambda x: +x,
        "exp2": lambda x: mp.mpf(2) ** x,
        "log2": lambda x: mp.log(x) / mp.log(2),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "square": lambda x: x * x,
        "reciprocal": lambda x: 1 / x,
        "sigmoid": sigmoid,
        "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)),
        "softplus": lambda x: mp.log1p(mp.exp(x)),
        "leaky_relu": lambda x, slope: x if x > 0 else slope * x,
        "elu": lambda x, alpha: x if x > 0 else alpha * mp.expm1(x),
        "gelu": lambda x: x * half * mp.erfc(-x / mp.sqrt(2)),
        "silu": lambda x: x * sigmoid(x),
        "gaussian": lambda x: mp.exp(-x * x),
        "normal_cdf": mp.ncdf,
        "normal_pdf": mp.npdf,
        "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
        "polygamma": lambda n, x: _psi(mp, n, x),
        "sum": lambda *xs: mp.fsum(xs),
        "mean": lambda *xs: mp.fsum(xs) / len(xs),
        "prod": lambda *xs: mp.fprod(xs),
        "max": max,
        "min": min,
        "logsumexp": lambda *xs: max(xs) + mp.log(mp.fsum([mp.exp(x - max(xs)) for x in xs])),
        "dot": lambda *xs: _dot(mp.fdot, list, *xs),
    }


def _at_kinks(mp: Any) -> dict[str, Function]:
    """The partial derivatives of what has kinks or steps, where a difference would take both sides; ties share."""

    def greatest(*xs: Any) -> list[Any]:
        return [mp.mpf(x == max(xs)) / xs.count(max(xs)) for x in xs]

    def least(*xs: Any) -> list[Any]:
        return greatest(*[-x for x in xs])

    return {
        "abs": lambda x: [mp.sign(x)],
        "sign": lambda x: [0],
        "relu": lambda x: [int(x > 0)],
        "stop_gradient": lambda x: [0],
        "minimum": least,
        "maximum": greatest,
        "min": least,
        "max": greatest,
        "where": lambda c, x, y: [0, int(bool(c)), int(not c)],
        "clip": lambda x, low, high: [int(low <= x <= high), int(x < low < high), int(x > high or low > high)],
        "leaky_relu": lambda x, slope: [1, 0] if x > 0 else [slope, x],
        "elu": lambda x, alpha: [1, 0] if x > 0 else [alpha * mp.exp(x), mp.expm1(x)],
        "polygamma": lambda n, x: [mp.nan, _real(mp, _psi, mp, n + 1, x)],
    }


def _psi(mp: Any, n: Any, x: Any) -> Any:
    """polygamma, which mpmath has for whole orders."""
    return mp.psi(int(n), x) if mp.isint(n) and n >= 0 else mp.nan


def _real(mp: Any, function: Function, *xs: Any) -> Any:
    """The value of a function as a real number; nan where it has none."""
    try:
        number = mp.mpmathify(function(*xs))
    except (ArithmeticError, ValueError, TypeError):
        return mp.nan
    return mp.nan if isinstance(number, mp.mpc) else number


def by_mpmath(graph: Graph, partials: Partials) -> tuple[str, list[Told]]:
    """The graph in 60 digits: each partial derivative by differences of the value, then the chain rule."""
    mpmath = require("mpmath", EXTRA)
    mp = mpmath.mp
    with mp.workdps(60):
        table, kinks = _mpmath_table(mp), _at_kinks(mp)
        exact = {name: lambda *xs, f=function: _real(mp, f, *map(mp.mpf, xs)) for name, function in table.items()}
        values = _run(
            graph,
            exact,
            lambda place: mp.mpf(graph.values[place].data),
            lambda place, xs: mp.mpf(graph.values[place].data),
        )
        grads = [mp.mpf(0)] * len(graph)
        grads[graph.outputs[0]] = mp.mpf(1)
        told = [Told(None, None, "")] * len(graph)
        for place in range(len(graph) - 1, -1, -1):
            op, operands, _ = graph[place]
            xs = [mp.mpf(x) if isinstance(x, float) else values[x] for x in operands]
            if place in partials:
                slopes: Sequence[Any] = partials[place]
            elif op.name in kinks:
                slopes = kinks[op.name](*xs)
            else:
                slopes = [_slope(mp, table[op.name], xs, i) for i in range(len(xs))]
            for x, slope in zip(operands, slopes, strict=True):
                if not isinstance(x, float):
                    grads[x] += slope * grads[place]
            name = NOTHING if place in partials else f"{op.name} of ({_places(operands)})"
            told[place] = Told(values[place], grads[place], "leaf" if op.arity == 0 else name)
    return f"mpmath {mpmath.__version__}", told


def _slope(mp: Any, function: Function, xs: list[Any], place: int) -> Any:
    """The partial derivative by one operand; its step is relative, so that tiny operands keep their sign."""
    x = xs[place]

    def along(t: Any) -> Any:
        return function(*xs[:place], x * t if x else t, *xs[place + 1 :])

    return _real(mp, lambda: mp.diff(along, 1) / x if x else mp.diff(along, 0))


PEERS: dict[str, Callable[[Graph, Partials], tuple[str, list[Told]]]] = {
    "torch": by_torch,
    "jax": by_jax,
    "mpmath": by_mpmath,
}
"""What can be compared with: each takes a graph, and says its version and what it has for each line."""
