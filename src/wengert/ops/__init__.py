"""The operations: the table has one row for each (`table.py`), and a row is an `Op` (`op.py`)."""

from wengert.ops import coerce, ieee, implicit, shapes, table
from wengert.ops.coerce import is_number, named, positive, within
from wengert.ops.finite_differences import Slope, slopes
from wengert.ops.op import (
    AS_OPERANDS,
    BY_NAME,
    FLOATS,
    LEFT,
    METHODS,
    NONNEGATIVE,
    TABLE,
    UNARY,
    VALUES,
    Op,
    Operators,
    by_rule,
    interpret,
    namespace,
    prefer_methods,
    register,
    row,
    tell_recording,
)
from wengert.ops.table import BUILT_IN, TINY, by_hand

__all__ = ["AS_OPERANDS", "BUILT_IN", "BY_NAME", "FLOATS", "LEFT", "METHODS", "NONNEGATIVE", "TABLE", "TINY", "UNARY"]
__all__ += [
    "VALUES",
    "Op",
    "Operators",
    "Slope",
    "by_hand",
    "by_rule",
    "coerce",
    "ieee",
    "implicit",
    "interpret",
    "is_number",
    "named",
    "namespace",
]
__all__ += ["positive", "prefer_methods", "register", "row", "shapes", "slopes", "table", "tell_recording", "within"]
