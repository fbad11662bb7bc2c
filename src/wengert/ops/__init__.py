"""The table of operations, one row each, and what rows are: see `table.py`."""

from wengert.ops.op import (
    AS_OPERANDS,
    BY_NAME,
    FLOATS,
    LEFT,
    NONNEGATIVE,
    TABLE,
    UNARY,
    VALUES,
    Op,
    interpret,
    namespace,
    register,
)
from wengert.ops.table import BUILT_IN

__all__ = ["AS_OPERANDS", "BUILT_IN", "BY_NAME", "FLOATS", "LEFT", "NONNEGATIVE", "TABLE", "UNARY", "VALUES", "Op"]
__all__ += ["interpret", "namespace", "register"]
