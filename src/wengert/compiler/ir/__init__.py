"""The compiler's intermediate representation: array programs, their expressions, and passes over them."""

from wengert.compiler.ir.expression import (
    CHEAP,
    CHOICES,
    COMPARISONS,
    FURTHER,
    LEAVES,
    ONE,
    SYMBOLS,
    ZERO,
    Expr,
    Numbering,
    compact,
    cotangents,
    expand,
    fold,
    has_mask,
    inputs,
    is_choice,
    is_nonnegative,
    may_fold,
    parts,
    rename,
    repeated,
    rewrite,
    rewrite_masks,
    tangent,
    times,
)
from wengert.compiler.ir.passes import (
    compute_once,
    drop_unread,
    fuse,
    inline,
    merge_equal_steps,
    take_factors_out,
    unmask,
)
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
    components,
    concat_ranges,
    distinct,
    fit_strides,
    grid_rows,
    nested,
    product_grid,
    without_broadcast,
)
from wengert.compiler.ir.unroll import unrolled

__all__ = ["BATCH", "CHEAP", "CHOICES", "COMPARISONS", "FURTHER", "Access", "Array", "Assemble", "Compute", "Expr"]
__all__ += ["LEAVES", "ONE", "SYMBOLS", "Grid", "Index", "Loop", "LoopOutput", "Numbering", "Program", "ProgramError"]
__all__ += ["ZERO", "Slice", "Step", "addresses", "compact", "components", "compute_once", "concat_ranges"]
__all__ += ["contiguous", "cotangents", "distinct", "drop_unread", "expand", "fit_strides", "fold", "fuse"]
__all__ += ["grid_rows", "has_mask", "inline", "inputs", "is_choice", "is_nonnegative", "may_fold", "merge_equal_steps"]
__all__ += ["nested", "parts", "product_grid", "rename", "repeated", "rewrite", "rewrite_masks", "take_factors_out"]
__all__ += ["tangent", "times", "unmask", "unrolled", "verify", "whole", "without_broadcast"]
