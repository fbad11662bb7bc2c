"""Who takes part, and what is measured."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["BARS", "BYTES", "IMPORT", "IMPORTS", "PEERS", "WORKLOADS", "Bar", "Peer"]


@dataclass(frozen=True)
class Peer:
    """One row of the tables.

    Attributes:
        key: its name on the command line.
        module: its module in `benchmarks.peers`.
        environment: set for its process.
        title: how tables call it; the module's `TITLE` unless it runs in two ways.
    """

    key: str
    module: str
    title: str
    environment: dict[str, str] = field(default_factory=dict)


INTERPRETED = {"WENGERT_INTERPRETED": "1"}

PEERS = (
    Peer("wengert", "wengert_unchanged", "**Wengert**, program unchanged"),
    Peer("wengert-mlp", "wengert_library", "**Wengert**, its own MLP, dot and optimizer"),
    Peer("interpreted", "wengert_unchanged", "Wengert interpreted, program unchanged", INTERPRETED),
    Peer("interpreted-mlp", "wengert_library", "Wengert interpreted, its own MLP, dot and optimizer", INTERPRETED),
    Peer("micrograd", "micrograd_engine", "micrograd 0.1.0"),
    Peer("micrograd-rust", "micrograd_rust_engine", "micrograd-rust 0.1.0"),
    Peer("plain", "plain_python", "plain Python Value with slots"),
    Peer("torch-scalars", "torch_scalars", "PyTorch, 0-d tensors"),
    Peer("torch", "torch_tensors", "PyTorch, nn.Linear"),
    Peer("autograd", "hips_autograd", "HIPS autograd, arrays"),
    Peer("casadi", "casadi_sx", "CasADi SX"),
    Peer("jax", "jax_tensors", "jax.jit, arrays"),
    Peer("numpy", "numpy_by_hand", "NumPy by hand"),
    Peer("c", "plain_c", "plain C, no graph (the limit)"),
)

WORKLOADS = {
    "expression": "the expression of micrograd's README and its gradients",
    "tiny": "MLP(3, [4, 4, 1]) of tanh neurons, 4 points: a training step",
    "moons": "MLP(2, [16, 16, 1]), 100 points, hinge loss and squares of the parameters: a training step",
    "digits": "64-32-10, softmax cross-entropy, batch 64: a training step",
    "mnist-size": "784-128-10, softmax cross-entropy, batch 64: a training step",
    "names": "one-layer GPT, 4,192 parameters, one name, Adam: a training step",
    "import": "the import statement in a fresh process, less the start of Python",
}


IMPORTS = {  # the statement whose time is the start-up of each
    "wengert": "import wengert",
    "interpreted": "import wengert",
    "micrograd": "import micrograd.engine",
    "micrograd-rust": "import micrograd_rust",
    "torch": "import torch",
    "autograd": "import autograd.numpy",
    "casadi": "import casadi",
    "jax": "import jax.numpy",
    "numpy": "import numpy",
}


@dataclass(frozen=True)
class Bar:
    """What must be reached: `of` takes at least `ratio` times as long as `who` on the workload."""

    workload: str
    who: str
    of: str
    ratio: float


BARS = (
    Bar("moons", "wengert", "micrograd", 130),
    Bar("moons", "wengert", "micrograd-rust", 4),
    Bar("moons", "wengert-mlp", "micrograd", 370),
    Bar("expression", "wengert", "micrograd", 25),
    Bar("moons", "interpreted", "micrograd", 11),
    Bar("names", "wengert", "plain", 25),
    Bar("names", "wengert-mlp", "plain", 25),
)

IMPORT = 0.050  # seconds that `import wengert` may take
BYTES = 80  # that a node may take, as the process's memory shows
