"""Differentiates programs: the derivatives of a program are programs. Finds which of them are not identically 0."""

from wengert.compiler.derive.derivative import compressed, gradient, jacobian, jvp, reordered
from wengert.compiler.derive.reverse import reverse
from wengert.compiler.derive.sparsity import jacobian_pattern

__all__ = ["compressed", "gradient", "jacobian", "jacobian_pattern", "jvp"]
__all__ += ["reordered", "reverse"]
