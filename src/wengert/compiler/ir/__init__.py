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
    Kept,
    Loop,
    Program,
    ProgramError,
    Step,
    Window,
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
from wengert.compiler.ir.unroll import unrolled

__all__ = ["BATCH", "COMPARISONS", "LEAVES", "ONE", "ZERO", "Access", "Array", "Assemble", "Compute", "Expr"]
__all__ += ["Grid", "Index", "Kept", "Loop", "Program", "ProgramError", "Step", "Window", "addresses"]
__all__ += ["contiguous", "distinct", "expand", "fit"]
__all__ += ["fuse", "grid_rows", "has_mask", "is_nonnegative", "may_fold", "nested", "product_grid", "repeated"]
__all__ += ["reverse", "times", "unmask", "unrolled", "verify", "without_broadcast"]
