"""Exports a compiled function as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch

from wengert.compiler.export.exported import Exported
from wengert.compiler.serve import Server

__all__ = ["RecordedModule"]


class RecordedModule(torch.nn.Module):
    """The function as a module: see `Compiled.to_torch`. Constants, indices and masks are its buffers."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._exported = Exported(server, "torch", {"torch": torch})
        self._mixed: dict[str, bool] = {}
        for name, numbers in self._exported.parameters.items():
            own = self._exported.own[name]
            self._mixed[name] = bool(own.any()) and not own.all()
            if own.any():
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(numbers)))
            else:
                self.register_buffer(name, torch.tensor(numbers))  # floats that the function reads
            if self._mixed[name]:
                self.register_buffer(f"{name}_own", torch.tensor(own), persistent=False)
        for number, constant in enumerate(self._exported.constants):
            self.register_buffer(f"constant_{number}", torch.tensor(constant), persistent=False)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Compute the result, or the results of a batch."""
        exported = self._exported
        like = next(self.parameters(), torch.zeros((), dtype=torch.float64))
        arrays = [
            torch.as_tensor(x, device=like.device).to(torch.int64 if n in exported.recording.extents else like.dtype)
            for n, x in enumerate(exported.arrays(args, named))
        ]
        parameters = [self._of_own(name) for name in exported.own]
        return exported.outcome(
            arrays, parameters, [getattr(self, f"constant_{n}") for n in range(len(exported.constants))]
        )

    def _of_own(self, name: str) -> Any:
        numbers = getattr(self, name)
        return torch.where(getattr(self, f"{name}_own"), numbers, numbers.detach()) if self._mixed[name] else numbers
