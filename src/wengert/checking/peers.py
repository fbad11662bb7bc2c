"""Computes a recorded graph in PyTorch, JAX and mpmath.

A peer library computes the instructions of a `Graph` one by one and differentiates them in its own way: PyTorch by its
`backward()`, JAX by `jax.grad`, mpmath by differences in 60 digits. For an operation that it lacks (one registered by
`wengert.op`, the node of a compiled function), Wengert's value and partial derivatives are used, so that the rest can
still be compared; the line says so.

A row is looked up by its name in the library. Rows with another name or other arguments there are listed as exceptions,
and rows that the library lacks are computed by their own rule over the library's numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from wengert.errors import require
from wengert.graph import Graph
from wengert.ops import BUILT_IN, TABLE, Op, interpret, namespace

__all__ = ["PEERS", "PeerResult", "places"]

EXTRA = "compare"
NOTHING = "no counterpart: Wengert's own value and partials are used"
Function = Callable[..., Any]


class PeerResult(NamedTuple):
    """The result of a peer library for one instruction."""

    value: Any
    grad: Any
    counterpart: str


def _run(
    graph: Graph,
    table: dict[str, Function],
    leaf: Callable[[int], Any],
    otherwise: Function,
    shift: Function = lambda place, value: value,
) -> list[Any]:
    """Compute the value of every instruction with the functions of a table; `shift` may change each."""
    values: list[Any] = []
    for place, (op, operands, _) in enumerate(graph):
        xs = [x if isinstance(x, float) else values[x] for x in operands]
        if op.arity == 0:
            value = leaf(place)
        else:
            value = table[op.name](*xs) if op.name in table else otherwise(place, xs)
        values.append(shift(place, value))
    return values


def _results(
    graph: Graph,
    numbers: Sequence[tuple[Any, Any]],
    table: dict[str, Function],
    leaf: str,
    counterpart: Callable[[int], str],
) -> list[PeerResult]:
    """Make the results from a peer's numbers, its name for leaves, and its name for each instruction."""
    names = [
        leaf if op.arity == 0 else counterpart(place) if op.name in table else NOTHING
        for place, (op, *_) in enumerate(graph)
    ]
    return [PeerResult(*both, name) for both, name in zip(numbers, names, strict=True)]


OPERATORS: dict[str, Function] = {"div": operator.truediv, "pow": operator.pow}


def _table(exceptions: dict[str, Function], find: Callable[[Op], Function | None]) -> dict[str, Function]:
    """Map each row to a library's function: an exception, what `find` finds, or else the row's own rule."""
    table: dict[str, Function] = {}
    meanings = namespace(
        lambda row: lambda *xs: table[row.name](*xs),
        _guarded_form=lambda condition, careful, plain: plain,  # as one would write it for the library
    )
    for row in [row for row in TABLE[:BUILT_IN] if row.value is not None]:
        own = interpret(row.value, meanings)
        function = (OPERATORS | exceptions).get(row.name) or (None if row.infix else find(row))
        if function or own is not row.value:  # else its value is a function of floats only
            table[row.name] = function or own
    return table


def _named(row: Op, *libraries: Any) -> Function | None:
    """Return the function with a row's name from the first library that has one."""
    return next((getattr(library, row.name) for library in libraries if hasattr(library, row.name)), None)


def _partials(graph: Graph, place: int) -> Sequence[float]:
    """Return Wengert's own partial derivatives of one instruction with respect to its operands."""
    return graph.partials[graph.starts[place] : graph.starts[place + 1]]


def _linearized(graph: Graph, constant: Function) -> Function:
    """Make a function for instructions that a library lacks: Wengert's value and partials; `constant` detaches."""

    def compute(place: int, xs: Sequence[Any]) -> Any:
        total = graph.values[place].data
        for x, slope in zip(xs, _partials(graph, place), strict=True):
            total = total if isinstance(x, float) else total + slope * (x - constant(x))
        return total

    return compute


def places(operands: Sequence[int | float]) -> str:
    """Write the operands of an instruction: #2 for instruction 2, a constant as a number."""
    return ", ".join([f"{x:g}" if isinstance(x, float) else f"#{x}" for x in operands])


# -- PyTorch ----------------------------------------------------------------------------------------------------------


def _torch_table(torch: Any) -> dict[str, Function]:
    def tensor(x: Any) -> Any:
        return x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.float64)

    def of_tensors(function: Function) -> Function:
        return lambda *xs: function(*map(tensor, xs))

    def of_many(function: Function) -> Function:
        return lambda *xs: function(torch.stack([tensor(x) for x in xs]))

    def find(row: Op) -> Function | None:
        functional = [torch.nn.functional] if row.arity == 1 else []  # with more, some take no tensors
        function = _named(row, torch, *functional)
        return function and (of_many(function) if row.arity is None else of_tensors(function))

    exceptions = {
        "where": of_tensors(lambda c, x, y: torch.where(c.detach() != 0, x, y)),
        "stop_gradient": of_tensors(lambda x: x.detach().requires_grad_()),
        "cbrt": of_tensors(lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3)),
        "gaussian": of_tensors(lambda x: torch.exp(-x * x)),
        "normal_cdf": of_tensors(torch.special.ndtr),
        "normal_ppf": of_tensors(torch.special.ndtri),
        "entr": of_tensors(torch.special.entr),
        "xlog1py": of_tensors(torch.special.xlog1py),
        "gammainc": of_tensors(torch.special.gammainc),
        "gammaincc": of_tensors(torch.special.gammaincc),
        "gamma_pdf": of_tensors(lambda a, x: torch.exp(torch.xlogy(a - 1, x) - x - torch.lgamma(a))),
        "beta_pdf": of_tensors(
            lambda a, b, x: torch.exp(torch.xlogy(a - 1, x) + torch.xlogy(b - 1, 1 - x) - _log_beta(torch.lgamma, a, b))
        ),
        "normal_pdf": of_tensors(lambda x: torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
        "polygamma": lambda n, x: torch.polygamma(int(n), tensor(x)),
        "norm": of_many(torch.linalg.vector_norm),
        "max": of_many(torch.amax),
        "min": of_many(torch.amin),
        "logsumexp": of_many(lambda xs: torch.logsumexp(xs, 0)),
        "dot": lambda *xs: _dot(torch, *map(tensor, xs)),
    }
    return _table(exceptions, find)


def _log_beta(lgamma: Function, a: Any, b: Any) -> Any:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _dot(library: Any, *operands: Any) -> Any:
    """Compute the row dot, whose operands are w1 w2 ... x1 x2 ... bias."""
    half = len(operands) // 2
    if not half:
        return +operands[-1]
    return library.dot(library.stack(operands[:half]), library.stack(operands[half:-1])) + operands[-1]


def by_torch(graph: Graph) -> tuple[str, list[PeerResult]]:
    """Compute the graph in PyTorch, on 0-dimensional tensors in double precision."""
    torch = require("torch", EXTRA)
    table = _torch_table(torch)

    leaf = partial(torch.tensor, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        values = _run(graph, table, lambda place: leaf(graph.values[place].data), _linearized(graph, torch.detach))
        functions = [value.grad_fn for value in values]  # kept alive, so that their ids stay unique
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
    numbers = [(value.item(), 0.0 if value.grad is None else value.grad.item()) for value in values]
    told = _results(
        graph, numbers, table, "leaf (AccumulateGrad)", lambda place: _named_by_torch(functions[place], lines)
    )
    return f"torch {torch.__version__}", told


def _named_by_torch(own: Any, lines: dict[int, int]) -> str:
    """Write a `grad_fn` with its `next_functions`, which are other lines or further functions."""
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

    def find(row: Op) -> Function | None:
        function = _named(row, jnp, jax.nn, special)
        return of_many(function) if function and row.arity is None else function

    exceptions = {
        "where": lambda c, x, y: jnp.where(jax.lax.stop_gradient(c) != 0, x, y),
        "stop_gradient": jax.lax.stop_gradient,
        "logsigmoid": jax.nn.log_sigmoid,
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "gaussian": lambda x: jnp.exp(-x * x),
        "normal_cdf": special.ndtr,
        "normal_ppf": special.ndtri,
        "gamma_pdf": lambda a, x: jnp.exp(special.xlogy(a - 1, x) - x - special.gammaln(a)),
        "beta_pdf": lambda a, b, x: jnp.exp(
            special.xlogy(a - 1, x) + special.xlogy(b - 1, 1 - x) - _log_beta(special.gammaln, a, b)
        ),
        "normal_pdf": lambda x: jnp.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        "lgamma": special.gammaln,
        "polygamma": lambda n, x: special.polygamma(jnp.asarray(jax.lax.stop_gradient(n)).astype(int), x),
        "norm": of_many(jnp.linalg.norm),
        "dot": lambda *xs: _dot(jnp, *[jnp.asarray(x) for x in xs]),
    }
    return _table(exceptions, find)


def by_jax(graph: Graph) -> tuple[str, list[PeerResult]]:
    """Compute the graph in JAX, in double precision. A 0 is added to each line; its gradient is that of the line."""
    jax = require("jax", EXTRA)
    switch = jax.enable_x64 if hasattr(jax, "enable_x64") else require("jax.experimental", EXTRA).enable_x64
    with switch(True):
        table = _jax_table(jax)

        def values(moves: Any) -> list[Any]:
            return _run(
                graph,
                table,
                lambda place: graph.values[place].data,
                _linearized(graph, jax.lax.stop_gradient),
                lambda place, value: value + moves[place],
            )

        still = [jax.numpy.float64(0.0)] * len(graph)
        numbers = values(still)
        grads = jax.grad(lambda moves: values(moves)[graph.outputs[0]])(still)

        def primitives(place: int) -> str:
            op, operands, _ = graph[place]
            xs = [x if isinstance(x, float) else numbers[x] for x in operands]
            own = ", ".join(dict.fromkeys(_primitives(jax.make_jaxpr(table[op.name])(*xs).jaxpr)))
            return f"{own or 'nothing'} of ({places(operands)})"

        both = [(float(number), float(grad)) for number, grad in zip(numbers, grads, strict=True)]
        return f"jax {jax.__version__}", _results(graph, both, table, "leaf (an argument)", primitives)


def _primitives(jaxpr: Any) -> list[str]:
    """List the primitives in a jaxpr and in the functions it calls, without conversions of types and broadcasts."""
    names: list[str] = []
    for equation in jaxpr.eqns:
        inner = [x for x in equation.params.values() if hasattr(x, "eqns") or hasattr(x, "jaxpr")]
        if inner:
            for x in inner:
                names += _primitives(getattr(x, "jaxpr", x))
        elif equation.primitive.name not in ("convert_element_type", "broadcast_in_dim"):
            names.append(equation.primitive.name)
    return names


# -- mpmath -----------------------------------------------------------------------------------------------------------


def _mpmath_table(mp: Any) -> dict[str, Function]:
    exceptions = {
        "abs": abs,
        "exp2": lambda x: mp.mpf(2) ** x,
        "log2": lambda x: mp.log(x) / mp.log(2),
        "round": mp.nint,
        "remainder": lambda x, y: x % y if y else mp.nan,
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "gaussian": lambda x: mp.exp(-x * x),
        "normal_cdf": mp.ncdf,
        "normal_ppf": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
        "sinc": mp.sincpi,
        "norm": lambda *xs: mp.norm(xs),
        "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        "gammaincc": lambda a, x: mp.gammainc(a, x, regularized=True),
        "gamma_pdf": lambda a, x: x ** (a - 1) * mp.exp(-x) / mp.gamma(a),
        "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        "beta_pdf": lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
        "normal_pdf": mp.npdf,
        "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
        "polygamma": lambda n, x: mp.psi(int(n), x) if mp.isint(n) and n >= 0 else mp.nan,  # integer orders only
    }
    return _table(exceptions, lambda row: _named(row, mp))


def _real(mp: Any, function: Function, *xs: Any) -> Any:
    """Return the value of a function as a real number; nan if it has none."""
    try:
        number = mp.mpmathify(function(*xs))
    except (ArithmeticError, ValueError, TypeError):
        return mp.nan
    return mp.nan if isinstance(number, mp.mpc) else number


def by_mpmath(graph: Graph) -> tuple[str, list[PeerResult]]:
    """Compute the graph in 60 digits: partial derivatives from finite differences, then the chain rule."""
    mpmath = require("mpmath", EXTRA)
    mp = mpmath.mp
    with mp.workdps(60):
        table = _mpmath_table(mp)
        exact = {name: lambda *xs, f=function: _real(mp, f, *map(mp.mpf, xs)) for name, function in table.items()}
        values = _run(
            graph,
            exact,
            lambda place: mp.mpf(graph.values[place].data),
            lambda place, xs: mp.mpf(graph.values[place].data),
        )
        grads = [mp.mpf(0)] * len(graph)
        grads[graph.outputs[0]] = mp.mpf(1)
        for place in range(len(graph) - 1, -1, -1):
            op, operands, _ = graph[place]
            xs = [mp.mpf(x) if isinstance(x, float) else values[x] for x in operands]
            if op.name not in table:
                slopes: Sequence[Any] = _partials(graph, place)
            elif op.name == "stop_gradient" or op.kink_distance(operands, xs) == 0.0:
                slopes = op.partials_at(values[place], xs)  # a difference would mix both sides
            else:
                slopes = [_slope(mp, table[op.name], xs, i) for i in range(len(xs))]
            for x, slope in zip(operands, slopes, strict=True):
                if not isinstance(x, float):
                    grads[x] += slope * grads[place]
        both = list(zip(values, grads, strict=True))
        told = _results(
            graph, both, table, "leaf", lambda place: f"{graph[place].op.name} of ({places(graph[place].operands)})"
        )
    return f"mpmath {mpmath.__version__}", told


def _slope(mp: Any, function: Function, xs: list[Any], place: int) -> Any:
    """Return the partial derivative with respect to one operand; a relative step keeps the sign of tiny operands."""
    x = xs[place]

    def along(t: Any) -> Any:
        return function(*xs[:place], x * t if x else t, *xs[place + 1 :])

    return _real(mp, lambda: mp.diff(along, 1) / x if x else mp.diff(along, 0))


PEERS: dict[str, Callable[[Graph], tuple[str, list[PeerResult]]]] = {
    "torch": by_torch,
    "jax": by_jax,
    "mpmath": by_mpmath,
}
"""The peer libraries: each takes a graph and returns its version and its result for each line."""
