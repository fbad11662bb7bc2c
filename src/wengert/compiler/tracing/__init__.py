"""A function is run once and written down: what it computed, what it saw outside, what decided its branches."""

from wengert.compiler.tracing.arguments import Arguments, Form, Reader, called, examples, flatten_argument
from wengert.compiler.tracing.closure import CapturedEnvironment
from wengert.compiler.tracing.recorder import Unrecordable, recording
from wengert.compiler.tracing.trace import AGREE, Auxiliary, Recording, numbers_in, record

__all__ = [
    "AGREE",
    "Arguments",
    "Auxiliary",
    "CapturedEnvironment",
    "Form",
    "Reader",
    "Recording",
    "Unrecordable",
    "called",
    "examples",
    "flatten_argument",
    "numbers_in",
    "record",
    "recording",
]
