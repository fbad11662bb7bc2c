"""Records a run on traced numbers, and makes of it a candidate, then a specialization: an array program with guards."""

from wengert.compiler.record.derived import Derived, derived_from, largest_number
from wengert.compiler.record.differentiate import NotDifferentiable
from wengert.compiler.record.floats import MARK
from wengert.compiler.record.layout import ResultLayout, flat_result
from wengert.compiler.record.recording import Candidate, numbers_in, primal_of, record
from wengert.compiler.record.specialization import Specialization, lines_apart, too_many, too_many_kinds
from wengert.compiler.record.structure import Aux, Parts, kind_of

__all__ = ["MARK", "Aux", "Candidate", "Derived", "NotDifferentiable", "Parts", "ResultLayout"]
__all__ += ["Specialization", "derived_from", "flat_result", "kind_of", "largest_number", "lines_apart", "numbers_in"]
__all__ += ["primal_of", "record", "too_many", "too_many_kinds"]
