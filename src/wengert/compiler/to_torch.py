"""A compiled function as a module of PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from wengert.compiler.dispatch import Runtime
from wengert.compiler.exported import Exported

__all__ = ["RecordedModule"]


class RecordedModule(torch.nn.Module):
    """The function, called with its arguments: see `Compiled.to_torch`. What it holds beside the parameters, places and
    masks, are buffers, and go with it to another device.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._made = Exported(runtime, "torch", {"torch": torch})
        for name, numbers in self._made.parameters.items():
            if self._made.own[name].any():
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(numbers)))
            else:
                self.register_buffer(name, torch.tensor(numbers))  # floats that are read outside
        for number, constant in enumerate(self._made.constants):
            self.register_buffer(f"constant_{number}", torch.tensor(constant), persistent=False)

    def forward(self, *args: Any, **named: Any) -> Any:
        """The result, or for a batch those of its examples."""
        made = self._made
        like = next(self.parameters(), torch.zeros((), dtype=torch.float64))
        arrays = [
            torch.as_tensor(x, device=like.device).to(torch.int64 if n in made.recording.extents else like.dtype)
            for n, x in enumerate(made.arrays(args, named))
        ]
        parameters = []
        for name, own in made.own.items():
            numbers = getattr(self, name)
            mixed = own.any() and not own.all()
            parameters.append(torch.where(torch.as_tensor(own), numbers, numbers.detach()) if mixed else numbers)
        return made.outcome(arrays, parameters, [getattr(self, f"constant_{n}") for n in range(len(made.constants))])
