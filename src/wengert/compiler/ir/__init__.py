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
    distinct,
    fit,
    grid_rows,
    nested,
    product_grid,
    ranges,
    without_broadcast,
)
from wengert.compiler.ir.unroll import unrolled

__all__ = ["BATCH", "CHEAP", "CHOICES", "COMPARISONS", "FURTHER", "LEAVES", "ONE", "SYMBOLS", "ZERO", "Access"]
__all__ += ["Array", "Assemble", "Compute", "Expr", "Grid", "Index", "Loop", "LoopOutput", "Numbering", "Program"]
__all__ += ["ProgramError", "Slice", "Step", "addresses", "compact", "components", "compute_once", "contiguous"]
__all__ += ["cotangents", "distinct", "drop_unread", "expand", "fit", "fold", "fuse", "grid_rows", "has_mask", "inline"]
__all__ += ["inputs", "is_nonnegative", "may_fold", "merge_equal_steps", "nested", "parts", "product_grid", "ranges"]
__all__ += [
    "rename",
    "repeated",
    "rewrite",
    "rewrite_masks",
    "take_factors_out",
    "tangent",
    "times",
    "unmask",
    "unrolled",
]
__all__ += ["verify", "whole", "without_broadcast"]
