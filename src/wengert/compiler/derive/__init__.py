"""Differentiates programs: the reverse sweep of a program is a program. The patterns of its derivatives."""

from wengert.compiler.derive.reverse import reverse
from wengert.compiler.derive.sparsity import hessian_pattern, jacobian_pattern

__all__ = ["hessian_pattern", "jacobian_pattern", "reverse"]
