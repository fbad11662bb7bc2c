"""Runs a function once and records what it computed, what it read from outside, and which branches it took."""

from wengert.compiler.trace.arguments import Arguments, Reader, StaticSpec, flatten_argument
from wengert.compiler.trace.copies import copied
from wengert.compiler.trace.derived import Derived, derived_from, largest_term
from wengert.compiler.trace.differentiate import NotDifferentiable
from wengert.compiler.trace.layout import ResultLayout, flat_result
from wengert.compiler.trace.purity import DRAWS, DrawsCheck, PurityCheck
from wengert.compiler.trace.randomness import is_alone, random_state
from wengert.compiler.trace.readers import readers_of
from wengert.compiler.trace.recorder import Undecided, Unrecordable, is_watched, operations_since, recorder_of_thread
from wengert.compiler.trace.recording import Candidate, numbers_in, primal_of, record
from wengert.compiler.trace.rows import bound_to, rows_of
from wengert.compiler.trace.specialization import Specialization, lines_apart, too_many, too_many_kinds
from wengert.compiler.trace.structure import Aux, Parts, kind_of
from wengert.compiler.trace.tracers import TooLarge, number_of

__all__ = ["DRAWS", "Arguments", "Aux", "Candidate", "Derived", "DrawsCheck", "NotDifferentiable", "PurityCheck"]
__all__ += [
    "Reader",
    "ResultLayout",
    "Specialization",
    "StaticSpec",
    "TooLarge",
    "Undecided",
    "Unrecordable",
    "bound_to",
    "copied",
    "derived_from",
]
__all__ += ["flatten_argument", "is_alone", "is_watched", "kind_of", "lines_apart", "number_of"]
__all__ += ["numbers_in", "primal_of", "random_state", "readers_of", "record", "recorder_of_thread"]
__all__ += ["Parts", "flat_result", "largest_term", "operations_since", "rows_of", "too_many", "too_many_kinds"]
