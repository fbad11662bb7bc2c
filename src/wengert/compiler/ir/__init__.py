"""The program of arrays: its steps, its reverse, its expressions."""

from wengert.compiler.ir.expression import (
    COMPARISONS,
    LEAVES,
    ONE,
    ZERO,
    Expr,
    expand,
    has_mask,
    is_nonnegative,
    may_fold,
    repeated,
    times,
)
from wengert.compiler.ir.passes import fuse, unmask
from wengert.compiler.ir.program import (
    BATCH,
    Access,
    Array,
    Assemble,
    Compute,
    Index,
    Program,
    ProgramError,
    contiguous,
    verify,
)
from wengert.compiler.ir.reverse import reverse
from wengert.compiler.ir.strides import (
    Grid,
    addresses,
    distinct,
    fit,
    grid_rows,
    nested,
    product_grid,
    without_broadcast,
)

__all__ = ["BATCH", "COMPARISONS", "LEAVES", "ONE", "ZERO", "Access", "Array", "Assemble", "Compute", "Expr"]
__all__ += ["Grid", "Index", "Program", "ProgramError", "addresses", "contiguous", "distinct", "expand", "fit"]
__all__ += ["fuse", "grid_rows", "has_mask", "is_nonnegative", "may_fold", "nested", "product_grid", "repeated"]
__all__ += ["reverse", "times", "unmask", "verify", "without_broadcast"]
