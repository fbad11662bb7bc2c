"""Write scalars, run tensors: scalar code is recorded once, lifted to an array program, and run at array speed."""

from wengert.compiler.function import Compiled, compile
from wengert.compiler.fused import gather, partials_of, scatter

__all__ = ["Compiled", "compile", "gather", "partials_of", "scatter"]
