"""The back ends that run programs, by name. Each is imported when it makes its first kernel.

A back end is a subclass of `Kernel` in a file of its own (see `base`), and a row below. Callers look it up in
`BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert._forks import no_fork
from wengert.errors import ArgumentError, require

if TYPE_CHECKING:
    from wengert.compiler.backends.base import Kernel as Kernel
    from wengert.compiler.backends.base import all_finite as all_finite
    from wengert.compiler.backends.base import cut as cut
    from wengert.compiler.backends.base import places as places
    from wengert.compiler.backends.export import function_of as function_of
    from wengert.compiler.backends.export import source_of as source_of
    from wengert.compiler.backends.spellings import LIBRARIES as LIBRARIES
    from wengert.compiler.backends.xla import DeviceBatches as DeviceBatches
    from wengert.compiler.backends.xla import mesh_of as mesh_of
    from wengert.compiler.backends.xla import precision as precision
    from wengert.compiler.backends.xla import processes_of as processes_of
    from wengert.compiler.backends.xla import traced as traced

__all__ = ["BACKENDS", "Backend", "default_backend"]

_LATER = {  # imported on first use, as most of it needs NumPy
    "DeviceBatches": "xla", "Kernel": "base", "LIBRARIES": "spellings", "all_finite": "base", "cut": "base",
    "function_of": "export", "mesh_of": "xla", "places": "base", "precision": "xla",
    "processes_of": "xla", "source_of": "export", "traced": "xla",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_imported(_LATER[name]), name)


def _imported(name: str) -> Any:
    with no_fork:
        return import_module(f"{__name__}.{name}")


class Backend(NamedTuple):
    name: str
    kernel: Callable[[], Callable[..., Any]]  # returns its subclass of `Kernel`
    library: str  # that it needs
    extra: str  # of pyproject.toml, which installs the library
    device: bool = False  # whether it runs on accelerators: in single precision too, and many steps of `fit` at once

    def is_available(self) -> bool:
        """Return True if its library and NumPy, which every kernel's arrays need, are installed."""
        return find_spec("numpy") is not None and find_spec(self.library) is not None

    def require(self) -> None:
        """Raise an error unless it can run here.

        Raises:
            MissingExtraError: its library is not installed; the message says how to install it.
        """
        with no_fork:
            require(self.library, self.extra)
            require("numpy", self.extra)

    def typed(self, dtype: str) -> Backend:
        """Return the back end for a dtype: "float64" or, on devices, "float32".

        Raises:
            ArgumentError: it lacks this dtype.
        """
        if dtype == "float64":
            return self
        if dtype != "float32":
            raise ArgumentError(f"dtype is {dtype!r}; expected 'float64' or 'float32'")
        if not self.device:
            raise ArgumentError(f'dtype="float32" needs backend="xla": {self.name!r} computes in double precision')
        return self._replace(kernel=lambda: partial(self.kernel(), single=True))


def default_backend() -> Backend:
    """Return the back end that "auto" means: machine code if llvmlite is installed, else NumPy.

    Raises:
        MissingExtraError: NumPy is not installed either; the message says how to install it.
    """
    native = BACKENDS["native"]
    chosen = native if native.is_available() else BACKENDS["numpy"]
    chosen.require()
    return chosen


_ROWS = [
    Backend("numpy", lambda: _imported("numpy").NumPyKernel, "numpy", "array"),
    Backend("native", lambda: _imported("native.kernel").NativeKernel, "llvmlite", "native"),
    Backend("xla", lambda: _imported("xla").XLAKernel, "jax", "xla", device=True),
]
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in _ROWS}
