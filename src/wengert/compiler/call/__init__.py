"""Serves the calls of compiled functions, from the arguments to the result."""

from wengert.compiler.call.argument_reader import ArgumentReader, reference_to
from wengert.compiler.call.callpath import CacheEntry, Call, CallPath
from wengert.compiler.call.captures import (
    KINDS,
    MISSING,
    BulkNumbers,
    Captures,
    Items,
    Place,
    PlaceGroup,
    attributes_of,
    dict_of,
    look,
    same,
)
from wengert.compiler.call.executable import EVERY, Executable, Workspace, partition_by_guards
from wengert.compiler.call.fused import are_near, gather, partials_of, scatter
from wengert.compiler.call.memory import is_exact

__all__ = ["EVERY", "KINDS", "MISSING", "ArgumentReader", "BulkNumbers", "CacheEntry", "Call", "CallPath"]
__all__ += ["Captures", "Executable", "Items", "Place", "PlaceGroup", "Workspace", "are_near", "attributes_of"]
__all__ += ["dict_of", "gather", "is_exact", "look", "partials_of", "partition_by_guards", "reference_to", "same"]
__all__ += ["scatter"]
