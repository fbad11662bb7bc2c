"""The compiler's intermediate representation: array programs, their expressions, and passes over them."""

from wengert.compiler.ir.expression import (
    COMPARISONS,
    LEAVES,
    ONE,
    ZERO,
    Expr,
    cotangents,
    expand,
    has_mask,
    inputs,
    is_nonnegative,
    may_fold,
    rename,
    repeated,
    rewrite,
    times,
)
from wengert.compiler.ir.passes import fuse, take_factors_out, unmask
from wengert.compiler.ir.program import (
    BATCH,
    Access,
    Array,
    Assemble,
    Compute,
    Index,
    Loop,
    LoopOutput,
    Program,
    ProgramError,
    Slice,
    Step,
    contiguous,
    verify,
    whole,
)
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

__all__ = ["BATCH", "COMPARISONS", "LEAVES", "ONE", "ZERO", "Access", "Array", "Assemble", "Compute", "Expr", "Grid"]
__all__ += ["Index", "Loop", "LoopOutput", "Program", "ProgramError", "Slice", "Step", "addresses", "contiguous"]
__all__ += ["cotangents", "distinct", "expand", "fit", "fuse", "grid_rows", "has_mask", "inputs", "is_nonnegative"]
__all__ += ["may_fold", "nested", "product_grid", "rename", "repeated", "rewrite", "take_factors_out", "times"]
__all__ += ["unmask", "unrolled", "verify", "whole", "without_broadcast"]
