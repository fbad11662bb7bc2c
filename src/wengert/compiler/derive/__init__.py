"""Differentiates programs: the derivatives of a program are programs. Finds which of them are not identically 0."""

from wengert.compiler.derive.derivative import compressed, gradient, jacobian, joined, jvp, reordered, vjp
from wengert.compiler.derive.reverse import reverse
from wengert.compiler.derive.sparsity import jacobian_pattern

__all__ = ["compressed", "gradient", "jacobian", "jacobian_pattern", "joined", "jvp", "reordered", "reverse", "vjp"]
