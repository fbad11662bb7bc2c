"""The table of operations, one row each, and what rows are: see `table.py`."""

from wengert.ops.table import BUILT_IN, BY_NAME, FLOATS, LEFT, TABLE, UNARY, VALUES, Op, register

__all__ = ["BUILT_IN", "BY_NAME", "FLOATS", "LEFT", "TABLE", "UNARY", "VALUES", "Op", "register"]
