"""What runs programs: the back ends, by name, and how one is entered here. None is imported before it makes a kernel.

A back end is one file with a kind of `Kernel` (see `base`), and a row below. Whoever has a program run asks `BACKENDS`.
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
    from wengert.compiler.backends.export import function_of as function_of
    from wengert.compiler.backends.export import source_of as source_of
    from wengert.compiler.backends.spellings import LIBRARIES as LIBRARIES
    from wengert.compiler.backends.xla import precision as precision
    from wengert.compiler.backends.xla import traced as traced

__all__ = ["BACKENDS", "Backend", "default_backend", "register"]

_LATER = {  # what is imported when it is asked for: most of it needs NumPy
    "Kernel": "base", "LIBRARIES": "spellings", "all_finite": "base", "cut": "base",
    "function_of": "export", "precision": "xla", "source_of": "export", "traced": "xla",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """What is named in `_LATER`."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_imported(_LATER[name]), name)


def _imported(name: str) -> Any:
    """A module of this package, and the libraries that it needs."""
    with no_fork:
        return import_module(f"{__name__}.{name}")


class Backend(NamedTuple):
    """Something that runs programs."""

    name: str
    kernel: Callable[[], Callable[..., Any]]  # gives its kind of `Kernel`
    library: str  # that it needs
    extra: str  # of pyproject.toml that brings the library
    device: bool = False  # whether it runs on devices: there also in single precision, and many steps of `fit` at once

    def is_available(self) -> bool:
        """Whether its library is installed, and NumPy, which has the arrays of every kernel."""
        return find_spec("numpy") is not None and find_spec(self.library) is not None

    def require(self) -> None:
        """See that it can run here.

        Raises:
            MissingExtraError: its library is not installed; the message holds the command that brings it.
        """
        with no_fork:
            require(self.library, self.extra)
            require("numpy", self.extra)

    def typed(self, dtype: str) -> Backend:
        """The same for numbers of a kind: "float64" or, on devices, "float32".

        Raises:
            ArgumentError: it has no such numbers.
        """
        if dtype == "float64":
            return self
        if dtype != "float32":
            raise ArgumentError(f"dtype is {dtype!r}; expected 'float64' or 'float32'")
        if not self.device:
            raise ArgumentError(f'dtype="float32" needs backend="xla": {self.name!r} computes in double precision')
        return self._replace(kernel=lambda: partial(self.kernel(), single=True))


BACKENDS: dict[str, Backend] = {}
"""By name."""


def register(backend: Backend) -> Backend:
    """Enter a back end behind those that are there."""
    BACKENDS[backend.name] = backend
    return backend


def default_backend() -> Backend:
    """What "auto" runs programs by: machine code where llvmlite is installed, else NumPy.

    Raises:
        MissingExtraError: NumPy is not installed either; the message holds the command that brings it.
    """
    native = BACKENDS["native"]
    chosen = native if native.is_available() else BACKENDS["numpy"]
    chosen.require()
    return chosen


register(Backend("numpy", lambda: _imported("numpy").NumPyKernel, "numpy", "array"))
register(Backend("native", lambda: _imported("native.kernel").NativeKernel, "llvmlite", "native"))
register(Backend("xla", lambda: _imported("xla").XLAKernel, "jax", "xla", device=True))
