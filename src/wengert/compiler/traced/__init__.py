"""Numbers and arrays that record what is computed from them, and the choices that they meet."""

from wengert.compiler.traced.arrays import TracedArray, presented
from wengert.compiler.traced.comparisons import HOLDS
from wengert.compiler.traced.recorder import (
    PATHS,
    SWITCHES,
    Guard,
    Mixed,
    Opaque,
    Recorder,
    Undecided,
    Unrecordable,
    is_watched,
    operations_since,
    recorder_of_thread,
    tracing,
    unwatched,
    watching,
)
from wengert.compiler.traced.standins import STANDINS, ModuleView
from wengert.compiler.traced.tracers import (
    EXACT,
    FINITE,
    FLOATS,
    Bool,
    Integer,
    Nesting,
    Number,
    Pending,
    TooLarge,
    as_operand,
    concrete,
    converted,
    is_traced,
    number_of,
    recorded,
    values_in,
)

__all__ = ["EXACT", "FINITE", "FLOATS", "HOLDS", "PATHS", "STANDINS", "SWITCHES", "Bool", "Guard"]
__all__ += ["Integer", "Mixed", "ModuleView", "Nesting", "Number", "Opaque", "Pending", "Recorder", "TooLarge"]
__all__ += ["TracedArray", "Undecided", "Unrecordable", "as_operand", "concrete", "converted", "is_traced"]
__all__ += ["is_watched", "number_of", "operations_since", "presented", "recorded", "recorder_of_thread", "tracing"]
__all__ += ["unwatched", "values_in", "watching"]
