"""What code says: its bytecode, which code is followed, how objects are told apart, what to write instead."""

from wengert.compiler.code.advice import BY_NAME, BY_TYPE, effect_of_call, instead_of, place_of
from wengert.compiler.code.bytecode import (
    REPLACED,
    FreeVariable,
    asks_class,
    bytecode_of,
    computing,
    constants_of,
    names_of,
    observes_bools,
    tells_numbers,
    tells_objects,
)
from wengert.compiler.code.keys import DEPTH, PARTS, Itself, key_of, objects_in, parts_of_key
from wengert.compiler.code.known import (
    IMMUTABLE,
    LRU_CACHE,
    PLAIN,
    SIGNATURES,
    is_derivable,
    is_known,
    is_python,
    is_standard,
)

__all__ = ["BY_NAME", "BY_TYPE", "DEPTH", "IMMUTABLE", "LRU_CACHE", "PARTS", "PLAIN", "REPLACED", "SIGNATURES"]
__all__ += ["FreeVariable", "Itself", "asks_class", "bytecode_of", "computing", "constants_of", "effect_of_call"]
__all__ += ["instead_of", "is_derivable", "is_known", "is_python", "is_standard", "key_of", "names_of", "objects_in"]
__all__ += ["observes_bools", "parts_of_key", "place_of", "tells_numbers", "tells_objects"]
