"""Wengert: write scalars, run tensors. A scalar autograd engine that you can read in an evening.

>>> from wengert import Value
>>> x = Value(3.0)
>>> y = (x * x + 2).log()
>>> y.backward()
>>> f"{x.grad:.6f}"
'0.545455'

Functions with the name of a Python builtin (abs, max, min, pow, round, sum) are available as `wengert.max` and so on,
but not through ``from wengert import *``.
"""

from wengert import _loader

_loader.install()

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert import data, errors, functions, losses, nn, node, optim
from wengert.functions import *  # noqa: F403  (every row of the table)
from wengert.functions import abs as abs, max as max, min as min, pow as pow, round as round, sum as sum
from wengert._forks import no_fork as _no_fork
from wengert.engine import Value, dot
from wengert.graph import Graph
from wengert.handmade import Handmade as _Handmade  # noqa: F401  (Value(data, children, op) makes one)
from wengert.modes import no_grad

if TYPE_CHECKING:  # the table below, for type checkers and editors
    from wengert import checkpoint
    from wengert.compiler.function import compile as compile
    from wengert.compiler.sparse import sparsity
    from wengert.training.fit import History, fit
    from wengert.checking.anomalies import detect_anomaly, strict
    from wengert.checking.gradients import check_gradients
    from wengert.derivatives.grad import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
    from wengert.derivatives.roots import fixed_point, root
    from wengert.diagnosis import diagnose
    from wengert.interpolation import Table, interp
    from wengert.linalg import det, inv, solve
    from wengert.checking.compare import compare
    from wengert.view.graph.draw import draw, draw_dot
    from wengert.view.explain import explain
    from wengert.view.graph.tree import tree
    from wengert.view.steps.steps import steps

_loader.show_source(Value.backward)
node.supply(  # loaded when they are called
    bundle=lambda *shown: import_module("wengert.view.graph.draw").bundle(*shown),
    of_numpy=lambda *call: import_module("wengert.interpolation").of_numpy(*call),
)

__version__ = "0.1.0"

__all__ = ["Graph", "History", "Value", "__version__", "dot", "fit", "no_grad"]
__all__ += ["Table", "det", "interp", "inv", "solve"]
__all__ += ["checkpoint", "data", "errors", "losses", "nn", "optim"]
__all__ += ["check_gradients", "compare", "detect_anomaly", "diagnose", "draw", "draw_dot", "explain", "fixed_point"]
__all__ += ["grad", "hessian", "hvp", "jacobian", "jvp", "root", "sparsity", "steps", "strict", "tree"]
__all__ += ["value_and_grad", "vjp"]
__all__ += functions.__all__

_LATER = {  # imported at their first use, so that a program that only computes starts sooner
    "compiler.function": ("compile",),
    "compiler.sparse": ("sparsity",),
    "training.fit": ("History", "fit"),
    "checking.anomalies": ("detect_anomaly", "strict"),
    "checking.gradients": ("check_gradients",),
    "derivatives.grad": ("grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"),
    "derivatives.roots": ("fixed_point", "root"),
    "diagnosis": ("diagnose",),
    "checking.compare": ("compare",),
    "interpolation": ("Table", "interp"),
    "linalg": ("det", "inv", "solve"),
    "view.graph.draw": ("draw", "draw_dot"),
    "view.explain": ("explain",),
    "view.graph.tree": ("tree",),
    "view.steps.steps": ("steps",),
}


_HOMES = (  # the modules in which a missing name is looked up, for the error message
    *("nn", "losses", "optim", "data", "training", "checkpoint", "diagnosis", "derivatives.grad"),
    *("checking.gradients", "checking.compare"),
    *("checking.anomalies", "graph", "errors"),
    *("view.plots", "view.graph.draw", "view.steps", "view.explain", "view.text"),
)


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            with _no_fork:
                return globals().setdefault(name, getattr(import_module(f"wengert.{module}"), name))
    if not name.startswith("_"):
        try:
            return import_module(f"wengert.{name}")
        except ImportError as error:
            for room in _packages(name):
                return globals().setdefault(name, room.load())
            why = "" if isinstance(error, ModuleNotFoundError) and error.name == f"wengert.{name}" else f": {error}"
            raise AttributeError(f"module 'wengert' has no attribute {name!r}{why}") from None
    raise AttributeError(f"module 'wengert' has no attribute {name!r}")


def _packages(name: str) -> Iterable[Any]:
    """Return the entry points with which other distributions, such as the course, offer a module of this name."""
    from importlib.metadata import entry_points  # rarely needed, and a third of the time of `import wengert`

    return entry_points(group="wengert.packages", name=name)


_WRITTEN = {  # what other libraries call it, and what is written here
    **dict.fromkeys(("Tensor", "Variable", "tensor"), "wengert.Value(2.0), or a list of them"),
    **dict.fromkeys(("array", "asarray", "ones", "zeros"), "a list of numbers or of Values"),
    **dict.fromkeys(("manual_seed", "rand", "randn"), "random.seed(1337) and random.gauss(0, 1), of Python's random"),
    "autograd": "y.backward(), or wengert.grad(f)",
    "backward": "y.backward()",
    **dict.fromkeys(("inference_mode", "set_grad_enabled"), "with wengert.no_grad():"),
    "enable_grad": "it outside of wengert.no_grad(), where every Value has a gradient",
    "numpy": "import numpy as np, whose arrays of objects hold Values",
    "random": "import random, or rng = numpy.random.default_rng()",
    "ndarray": "list[wengert.Value]",
    **dict.fromkeys(("float32", "float64", "dtype"), "wengert.Value(2.0), which is a float of 64 bits"),
    **dict.fromkeys(("device", "cuda"), "wengert.compile(f, backend='xla'), to run f on a device"),
    **dict.fromkeys(("elementwise_grad", "egrad"), "wengert.compile(wengert.grad(f)).map(X)"),
    **dict.fromkeys(("arange", "linspace"), "[0.1 * i for i in range(10)]"),
    "einsum": "wengert.dot(ws, xs), or wengert.matmul(a, b)",
    "lax": "if, for and while of Python, which wengert.compile follows",
    "functional": "wengert.relu(x), wengert.softmax(values), losses.mse(p, y)",
    **dict.fromkeys(("logsoftmax", "LogSoftmax"), "wengert.log_softmax(values)"),
    "custom_vjp": 'wengert.op("name", value=..., partials=...)',
    "gradcheck": "wengert.check_gradients(f, x)",
    "jit": "wengert.compile(f)",
    "vmap": "wengert.compile(f).map(X)",
    "jacfwd": "wengert.jacobian(f)",
    "jacrev": "wengert.jacobian(f)",
}


class _Signpost:
    """The last import finder: it tells ``from wengert import MLP`` that MLP is in wengert.nn."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        """Raise an ImportError that names the module that has this name, if one does."""
        package, _, name = fullname.rpartition(".")
        if package == "wengert" and name in __dir__():  # `lazy from wengert import fit` asks for a module first
            return
        if fullname == "wengert.course":
            if not _packages(name):
                raise ImportError(errors.NEEDS_COURSE)
            if sys.version_info < (3, 15):  # since then it may be a lazy import from wengert, which asks here first
                raise ImportError("write from wengert import course")
            return
        for module in _HOMES if package == "wengert" else ():
            if name in import_module(f"wengert.{module}").__all__:
                raise ImportError(f"{name} is in wengert.{module}: write from wengert.{module} import {name}")
        if package == "wengert" and name in _WRITTEN:
            raise ImportError(f"here, write {_WRITTEN[name]}")
        if package == "wengert" and (close := errors.did_you_mean(name, __dir__())):
            raise ImportError(f"there is no {name} in wengert{close}")


sys.meta_path.append(_Signpost)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "compile"})
