"""A function is run once and written down: what it computed, what it saw outside, what decided its branches."""

from wengert.compiler.tracing.arguments import Arguments, Form, Reader, called, examples, flatten_argument
from wengert.compiler.tracing.recorder import Recorder, Unrecordable, is_watched, recorder_of_thread
from wengert.compiler.tracing.recording import Recording, Result
from wengert.compiler.tracing.slots import slots_of
from wengert.compiler.tracing.trace import Auxiliary, main_of, numbers_in, record, slopes_of
from wengert.compiler.tracing.watch import DRAWS, PlainRun, random_state

__all__ = ["DRAWS", "Arguments", "Auxiliary", "Form", "PlainRun", "Reader", "Recorder", "Recording", "Result"]
__all__ += [
    "Unrecordable",
    "called",
    "examples",
    "flatten_argument",
    "is_watched",
    "main_of",
    "numbers_in",
    "random_state",
    "record",
]
__all__ += ["recorder_of_thread", "slopes_of", "slots_of"]
