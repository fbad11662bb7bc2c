"""Write scalars, run tensors: plain scalar code is recorded once, lifted to an array program, and run at array speed."""

from wengert.lifting.function import Compiled, compile

__all__ = ["Compiled", "compile"]
