"""The arguments of a call: read into arrays, described by a signature, one example at a time."""

from wengert.compiler.arguments.arguments import Arguments, ArraySpec, Reader, Signature, StaticSpec, flatten_argument
from wengert.compiler.arguments.copies import copied
from wengert.compiler.arguments.readers import readers_of
from wengert.compiler.arguments.rows import bound_to, rows_of

__all__ = ["Arguments", "ArraySpec", "Reader", "Signature", "StaticSpec", "bound_to", "copied", "flatten_argument"]
__all__ += ["readers_of", "rows_of"]
