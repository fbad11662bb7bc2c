"""A compiled function as a module of PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from wengert.compiler.exported import Exported
from wengert.compiler.runtime import Runtime

__all__ = ["RecordedModule"]


class RecordedModule(torch.nn.Module):
    """The function, called with its arguments: see `Compiled.to_torch`. What it holds beside the parameters, places and
    masks, are buffers, and go with it to another device.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._made = Exported(runtime, "torch", {"torch": torch})
        self._mixed: dict[str, bool] = {}
        for name, numbers in self._made.parameters.items():
            own = self._made.own[name]
            self._mixed[name] = bool(own.any()) and not own.all()
            if own.any():
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(numbers)))
            else:
                self.register_buffer(name, torch.tensor(numbers))  # floats that are read outside
            if self._mixed[name]:
                self.register_buffer(f"{name}_own", torch.tensor(own), persistent=False)
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
        parameters = [self._of_own(name) for name in made.own]
        return made.outcome(arrays, parameters, [getattr(self, f"constant_{n}") for n in range(len(made.constants))])

    def _of_own(self, name: str) -> Any:
        """A parameter, of which floats that were read outside get no derivative."""
        numbers = getattr(self, name)
        return torch.where(getattr(self, f"{name}_own"), numbers, numbers.detach()) if self._mixed[name] else numbers
