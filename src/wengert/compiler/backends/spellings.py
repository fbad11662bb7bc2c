"""Spells the rows of the operation table in array libraries: a table of common names, and exceptions for each library.

A row in neither is expanded by its own rule; one with a series becomes a function of arrays. A rule that computes with
floats alone, as a user's may, is called on each element, which only NumPy can do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from wengert.compiler.backends.syntax import call, fill, infix, method, negative, node, path, template
from wengert.compiler.ir import COMPARISONS, LEAVES, Expr, expand, is_nonnegative
from wengert.ops import BY_NAME, Op, interpret, namespace

__all__ = ["LIBRARIES", "Library", "by_element", "by_series", "guarded"]

NAMES = {
    **{name: name for name in (
        "exp", "log", "tanh", "abs", "sign", "exp2", "expm1", "log2", "log10", "log1p", "sqrt", "cbrt", "maximum",
        "minimum", "where", "floor", "round", "remainder", "hypot", "sin", "cos", "tan", "sinh", "cosh")},
    **{name: f"arc{name[1:]}" for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
}  # fmt: skip
FORMS = {  # of rows that are not functions, and of masked maxima and minima; x, y and z are operands
    "square": "x ** 2",
    "reciprocal": "1 / x",
    "relu": "np.maximum(x, 0)",
    "clip": "np.clip(x, y, z)",
    "stop_gradient": "x",
    "masked max": "x.max(y, where=z, initial=-np.inf)",
    "masked min": "x.min(y, where=z, initial=np.inf)",
}


def _root(x: Expr) -> Expr:
    """Return x**0.5 as a square root, which has other values at -0.0 and -inf."""
    return ("where", ("eq", x, ("const", -inf)), ("const", inf), ("sqrt", ("add", x, ("const", 0.0))))


def _with_derivatives(expr: Expr) -> Expr:
    """Write ``x`` with given derivatives: add products with 0 that only differentiation sees."""
    result: Expr = ("stop_gradient", expr[1])
    for x, slope in zip(expr[2::2], expr[3::2], strict=True):
        result = ("add", result, ("mul", ("stop_gradient", slope), ("sub", x, ("stop_gradient", x))))
    return result


@dataclass(frozen=True)
class Library:
    """How a library spells operations; the defaults are NumPy's."""

    name: str
    header: str  # its imports
    forms: dict[str, str] = field(default_factory=dict)  # exceptions to FORMS
    spellings: dict[str, str] = field(default_factory=dict)  # its names for NumPy's functions and methods
    array: str = "np.array(x)"  # a constant array of dtype y
    triangle: str = "np.tri(x, dtype=bool)"
    number: str = "x"  # a number where a function takes only arrays
    guarded: str = ""  # a choice of y, rarely, or z; if empty, always z
    turned: str = "x"  # a transposed matrix as a left factor
    usage: str = ""
    arrays_change: bool = True  # whether arrays are mutable
    loops: bool = False  # whether it has loops, as a for loop or, for immutable arrays, as a scan
    by_element: bool = False  # whether Python functions of floats can be called on each element

    def function(self, name: str) -> Any:
        return path(f"{self.name}.{self.spellings.get(name, name)}")

    def method(self, of: Any, name: str, *operands: Any, **named: Any) -> Any:
        return method(of, self.spellings.get(name, name), *operands, **named)

    def product(self, left: Any, right: Any, by_matrix: bool) -> Any:
        is_turned = by_matrix and isinstance(left, ast.Attribute)
        return infix(self.filled(self.turned, left) if is_turned else left, "@", right)

    def literal(self, c: float) -> Any:
        """Write a number; an integer without a point."""
        if c != c:
            return self.function("nan")
        if abs(c) == inf:
            return self.function("inf") if c > 0.0 else negative(self.function("inf"))
        return node(int(c) if c == int(c) and abs(c) < 1e6 and str(c) != "-0.0" else c)

    def spells(self, name: str) -> bool:
        return name != "by rule" and bool(self.form(name) or name in NAMES or BY_NAME[name].infix)

    def form(self, name: str) -> str:
        return self.forms.get(name, FORMS.get(name, ""))

    def filled(self, form: str, *operands: Any) -> Any:
        return fill(template(form), {"np": path(self.name), **dict(zip("xyz", operands, strict=False))})

    def expanded(self, expr: Expr, nonnegative: Callable[[int], bool] = lambda operand: False) -> Expr:
        """Expand the rows of an expression that the library lacks, as far as their rules allow.

        `nonnegative` returns True for operands that can only be 0, positive or nan.
        """
        forms: dict[int, list[Expr]] = {}  # by the id of a part: itself, and what it is expanded to, one after another
        signs: dict[int, bool] = {}
        results: dict[int, Expr] = {}
        stack = [expr]
        while stack:
            part = stack[-1]
            if id(part) in results or part[0] in LEAVES:
                results.setdefault(id(part), part)
                stack.pop()
                continue
            if id(part) not in forms:
                forms[id(part)] = self.forms_of(part, nonnegative, signs)
            head = forms[id(part)][-1]
            unwritten = [x for x in head[:0:-1] if id(x) not in results] if head[0] not in LEAVES else []
            if unwritten:
                stack += unwritten
                continue
            results[id(part)] = head if head[0] in LEAVES else (head[0], *[results[id(x)] for x in head[1:]])
            stack.pop()
        return results[id(expr)]

    def forms_of(self, expr: Expr, nonnegative: Callable[[int], bool], signs: dict[int, bool]) -> list[Expr]:
        """Expand a row until the library has it, or it is a leaf; its operands stay as they are. Return all forms."""
        forms = [expr]
        while expr[0] not in LEAVES:
            name = expr[0]
            longer = None
            if name == "pow" and expr[2] in (("const", 0.5), ("const", -0.5)):
                root = ("sqrt", expr[1]) if is_nonnegative(expr[1], nonnegative, signs) else _root(expr[1])
                longer = root if expr[2][1] > 0.0 else ("reciprocal", root)
            elif name == "guarded" and not self.guarded:
                longer = expr[3]
            elif name == "by rule" and self.usage:  # the library differentiates by itself
                longer = _with_derivatives(expr)
            elif name not in ("partial", "guarded") and name not in COMPARISONS and not self.spells(name):
                longer = expand(expr)
            if longer is None:
                break
            expr = longer
            forms.append(expr)
        return forms

    def spelled(self, name: str, operands: list[Any]) -> Any:
        """Write an operation or a comparison; None if it cannot be written."""
        if name in COMPARISONS:
            first = self.as_array(operands[0]) if _is_number(operands[1]) else operands[0]  # an array, not a bool
            return infix(first, name, operands[1])
        if name in ("maximum", "minimum") and _is_number(operands[0]):
            operands = operands[::-1]
        if name == "guarded":
            return self.filled(self.guarded, *operands)
        form = self.forms.get(f"{name} of a number") if _is_number(operands[-1]) else None
        form = form or self.form(name)
        if form:
            return self.filled(form, *operands)
        if name in NAMES:
            if name != "where" or all(map(_is_number, operands[1:])):
                operands = [self.as_array(x) for x in operands]
            return call(self.function(NAMES[name]), *operands)
        sign = BY_NAME[name].infix if name in BY_NAME else ""
        if sign:
            return infix(operands[0], sign, operands[1]) if len(operands) == 2 else negative(operands[0])
        return None

    def as_array(self, x: Any) -> Any:
        return self.filled(self.number, x) if _is_number(x) else x


def _is_number(x: Any) -> bool:
    return isinstance(x, ast.Constant) or (isinstance(x, ast.UnaryOp) and isinstance(x.operand, ast.Constant))


def by_element(name: str, operand: int | None = None) -> Any:
    """Return a row, or its partial derivative with respect to an operand, as a function of arrays: by its series, or
    called on each element.

    >>> by_element("polygamma")(0.0, np.array([1.0, 2.0])).round(4).tolist()
    [-0.5772, 0.4228]
    """
    row = BY_NAME[name]

    def partial(*xs: float) -> float:
        return float(row.partials_at(xs[0], xs[1:])[operand or 0])

    each = np.vectorize(row.value if operand is None else partial, otypes=[float])
    plain = row.series is None or operand is not None
    return each if plain else by_series(name, np, _chosen, each, {"_repeat": _repeat})


def by_series(
    name: str, xp: Any, choose: Callable[..., Any], otherwise: Callable[..., Any], own: dict[str, Any]
) -> Callable[..., Any]:
    """Return a row that has a series as a function of a library's arrays.

    Args:
        name: of the row.
        xp: the library, with NumPy's names.
        choose: the meaning of `choose` in a rule.
        otherwise: the function for orders that are arrays, as the series needs a number, and for too long series.
        own: the library's meanings of further names.
    """
    series: Any = None
    row = BY_NAME[name]

    def function(*xs: Any) -> Any:
        nonlocal series
        if not row.written_out and not all(isinstance(x, (int, float)) for x in xs[:-1]):
            return otherwise(*xs)
        if series is None:
            series = interpret(row.series, _meanings(xp, choose, own))
        with np.errstate(all="ignore"):
            try:
                return series(*xs)
            except OverflowError:  # too many terms
                return otherwise(*xs)

    return function


def _meanings(xp: Any, choose: Callable[..., Any], further: dict[str, Any]) -> dict[str, Any]:
    own = {"div": xp.divide, "pow": xp.power, **{name: getattr(xp, spelling) for name, spelling in NAMES.items()}}

    def of_row(row: Op) -> Any:
        return own.get(row.name) or (lambda *xs: interpret(row.series or row.value, meanings)(*xs))

    meanings = namespace(of_row, choose=choose, **further)
    return meanings


def _repeat(again: Callable[..., Any], state: Sequence[Any], xs: Sequence[Any], most: int) -> list[Any]:
    """Repeat a step of a search, for those examples that it goes on for."""
    shape = np.broadcast_shapes(*map(np.shape, (*state, *xs)))
    ends = [np.array(np.broadcast_to(x, shape), float).reshape(-1) for x in state]
    going, now, given = np.arange(len(ends[0])), ends, [np.broadcast_to(x, shape).reshape(-1) for x in xs]
    for left in range(most - 1, -1, -1):
        now = again(now, given)
        active = now[0] > 0.0
        if not left or 2 * np.count_nonzero(active) <= len(active):  # leave out those that have ended
            for end, x in zip(ends, now, strict=True):
                end[going] = x
            going, now, given = going[active], [x[active] for x in now], [x[active] for x in given]
        if not len(going):
            break
    return [end.reshape(shape) for end in ends]


def _chosen(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    """Choose elementwise, without computing a branch that no element needs."""
    if np.all(condition):
        return x()
    return np.where(condition, x(), y()) if np.any(condition) else y()


def guarded(condition: Any, careful: Callable[[], Any], plain: Any) -> Any:
    """Choose elementwise between `careful()`, which is rarely needed, and `plain`."""
    return np.where(condition, careful(), plain) if np.any(condition) else plain


LIBRARIES = {
    "numpy": Library("np", "import numpy as np", loops=True, by_element=True),
    "torch": Library(
        "torch",
        "import torch",
        {
            "relu": "torch.relu(x)",
            "clip": "",  # by its rule: one of its bounds may be a number, and the other none
            "stop_gradient": "x.detach()",
            "masked max": "torch.where(z, x, -torch.inf).amax(y)",
            "masked min": "torch.where(z, x, torch.inf).amin(y)",
            "maximum of a number": "torch.clamp(x, min=y)",
            "minimum of a number": "torch.clamp(x, max=y)",
            "cbrt": "torch.sign(x) * torch.abs(x) ** (1 / 3)",
            "sigmoid": "torch.sigmoid(x)",
            "erf": "torch.erf(x)",
            "erfc": "torch.erfc(x)",
            "normal_cdf": "torch.special.ndtr(x)",
            "normal_ppf": "torch.special.ndtri(x)",
            "gammainc": "torch.special.gammainc(torch.as_tensor(x, dtype=torch.float64), y)",
            "gammaincc": "torch.special.gammaincc(torch.as_tensor(x, dtype=torch.float64), y)",
            "gamma_pdf": "torch.exp(torch.xlogy(x - 1, y) - y - torch.lgamma(torch.as_tensor(x, dtype=torch.float64)))",
            "beta_pdf": (
                "torch.exp(torch.xlogy(x - 1, z) + torch.xlogy(y - 1, 1 - z) + torch.lgamma(torch.as_tensor(x + y,"
                " dtype=torch.float64)) - torch.lgamma(torch.as_tensor(x, dtype=torch.float64))"
                " - torch.lgamma(torch.as_tensor(y, dtype=torch.float64)))"
            ),
            "j0": (  # PyTorch does not differentiate its Bessel functions
                "torch.special.bessel_j0(x).detach() - torch.special.bessel_j1(x).detach() * (x - x.detach())"
            ),
            "j1": (
                "torch.special.bessel_j1(x).detach() + torch.where(x == 0, 0.5, torch.special.bessel_j0(x)"
                " - torch.special.bessel_j1(x) / x).detach() * (x - x.detach())"
            ),
            "normal_pdf": "torch.exp(-x ** 2 / 2) / (2 * torch.pi) ** 0.5",
            "gaussian": "torch.exp(-x ** 2)",
            "lgamma": "torch.lgamma(x)",
            "xlogy": "torch.xlogy(x, y)",
            "xlog1py": "torch.special.xlog1py(x, y)",
            "entr": "torch.special.entr(x)",
            "sinc": "torch.sinc(x)",
            "polygamma": "torch.polygamma(x, y)",
        },
        {"transpose": "permute", "max": "amax", "min": "amin", "concatenate": "cat", "array": "stack"},
        array="torch.tensor(x, dtype=y)",
        triangle="torch.ones(x, x).tril().bool()",
        number="torch.tensor(x, dtype=torch.float64)",
        usage="The arguments are float64 tensors (indices: int64); its gradients are PyTorch's own: call .backward().",
    ),
    "jax": Library(
        "jnp",
        'import jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)',
        {
            "stop_gradient": "jax.lax.stop_gradient(x)",
            "erf": "jax.scipy.special.erf(x)",
            "erfc": "jax.scipy.special.erfc(x)",
            "normal_cdf": "jax.scipy.special.ndtr(x)",
            "normal_ppf": "jax.scipy.special.ndtri(x)",
            "gammainc": "jax.scipy.special.gammainc(x, y)",
            "gammaincc": "jax.scipy.special.gammaincc(x, y)",
            "gamma_pdf": "jax.scipy.stats.gamma.pdf(y, x)",
            "betainc": "jax.scipy.special.betainc(x, y, z)",
            "beta_pdf": "jax.scipy.stats.beta.pdf(z, x, y)",
            "normal_pdf": "jax.scipy.stats.norm.pdf(x)",
            "gaussian": "jnp.exp(-x ** 2)",
            "lgamma": "jax.scipy.special.gammaln(x)",
            "xlogy": "jax.scipy.special.xlogy(x, y)",
            "xlog1py": "jax.scipy.special.xlog1py(x, y)",
            "entr": "jax.scipy.special.entr(x)",
            "sinc": "jnp.sinc(x)",
            "polygamma": "jax.scipy.special.polygamma(x, y)",
        },
        usage="Its gradients are JAX's own: jax.grad({name}, argnums=...), and jax.jit.",
        arrays_change=False,
        loops=True,
    ),
}
