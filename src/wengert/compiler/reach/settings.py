"""Settings outside of a function that decide how libraries compute: the context of `decimal`, and `numpy.seterr`."""

from __future__ import annotations

import decimal
import sys
from typing import Any

import numpy as np

__all__ = ["NUMPY_ERRORS", "decimal_context", "numpy_errors"]

# The context variable that holds what `np.geterr` says; None if this NumPy has it elsewhere.
NUMPY_ERRORS: Any = getattr(sys.modules.get("numpy._core.umath"), "_extobj_contextvar", None)


def decimal_context() -> tuple[Any, ...]:
    """Return what decides how decimal numbers are computed."""
    now = decimal.getcontext()
    traps = tuple([bool(trap) for trap in now.traps.values()])
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, traps


def numpy_errors() -> tuple[str, ...]:
    """Return the errors of floats of which NumPy does more than to ignore them or to warn."""
    return tuple([error for error, how in np.geterr().items() if how not in ("ignore", "warn")])
