"""Write scalars, run tensors: scalar code is recorded once, lifted to an array program, and run at array speed."""

from wengert.compiler.call import gather, partials_of, scatter
from wengert.compiler.function import Compiled, compile

__all__ = ["Compiled", "compile", "gather", "partials_of", "scatter"]
