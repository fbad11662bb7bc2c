"""Who takes part, and what is measured."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "BARS",
    "BYTES",
    "IMPORT",
    "IMPORTS",
    "LIFT",
    "LIFTS",
    "LIMITS",
    "PEERS",
    "WORKLOADS",
    "Bar",
    "Limit",
    "Peer",
]


@dataclass(frozen=True)
class Peer:
    """One row of the tables.

    Attributes:
        key: its name on the command line.
        module: its module in `benchmarks.peers`.
        environment: set for its process.
        title: how tables call it; the module's `TITLE` unless it runs in two ways.
        kernel: whether a step is timed without its update: the loss and its gradient in arrays, and nothing else.
    """

    key: str
    module: str
    title: str
    environment: dict[str, str] = field(default_factory=dict)
    kernel: bool = False


INTERPRETED = {"WENGERT_INTERPRETED": "1"}

PEERS = (
    Peer("wengert", "wengert_unchanged", "**Wengert**, program unchanged"),
    Peer("wengert-mlp", "wengert_library", "**Wengert**, its own MLP, dot and optimizer"),
    Peer("compiled", "wengert_compiled", "**Wengert**, compiled loss"),
    Peer("kernel", "wengert_compiled", "Wengert, compiled loss, without update", kernel=True),
    Peer("kernel-numpy", "wengert_compiled", "Wengert, the same in NumPy", {"WENGERT_BACKEND": "numpy"}, kernel=True),
    Peer("interpreted", "wengert_unchanged", "Wengert interpreted, program unchanged", INTERPRETED),
    Peer("interpreted-mlp", "wengert_library", "Wengert interpreted, its own MLP, dot and optimizer", INTERPRETED),
    Peer("micrograd", "micrograd_engine", "micrograd 0.1.0"),
    Peer("micrograd-rust", "micrograd_rust_engine", "micrograd-rust 0.1.0"),
    Peer("plain", "plain_python", "plain Python Value with slots"),
    Peer("torch-scalars", "torch_scalars", "PyTorch, 0-d tensors"),
    Peer("torch", "torch_tensors", "PyTorch, nn.Linear"),
    Peer("torch-kernel", "torch_tensors", "PyTorch, nn.Linear, without update", kernel=True),
    Peer("autograd", "hips_autograd", "HIPS autograd, arrays"),
    Peer("casadi", "casadi_sx", "CasADi SX"),
    Peer("jax", "jax_tensors", "jax.jit, arrays"),
    Peer("numpy", "numpy_by_hand", "NumPy by hand"),
    Peer("numpy-kernel", "numpy_by_hand", "NumPy by hand, without update", kernel=True),
    Peer("c", "plain_c", "plain C, no graph"),
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


@dataclass(frozen=True)
class Limit:
    """What must be reached: `who` takes at most `ratio` times as long as `of` on the workload."""

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

LIMITS = (
    # kernel on kernel: loss and gradient, nobody's update
    *[Limit(name, "kernel", "numpy-kernel", 1.1) for name in ("moons", "digits", "mnist-size")],
    Limit("names", "kernel", "numpy-kernel", 1.4),
    *[Limit(name, "kernel", "torch-kernel", 1.0) for name in ("moons", "digits", "mnist-size", "names")],
    # whole step on whole step, each with its own optimizer (`mnist-size`: a bar of the native back end)
    *[Limit(name, "compiled", "torch", 1.0) for name in ("moons", "digits", "names")],
    # with the objects around the kernel: parameters gathered, gradients handed out, the optimizer
    *[Limit(name, "compiled", "numpy", 1.0) for name in ("tiny", "moons", "digits", "names")],
    Limit("mnist-size", "compiled", "numpy", 2.5),
)

LIFTS = {  # what is recorded and lifted, by growing number of nodes
    "moons": "one example of `moons`, with the squares of its parameters",
    "digits": "one example of `digits`",
    "names": "a name of 7 letters in `names`",
    "mnist-size": "one example of `mnist-size`",
    "mnist-size x 5": "five examples of `mnist-size`, in a loop",
}
LIFT = 1.5e-6  # seconds a node that recording and lifting may take

IMPORT = 0.050  # seconds that `import wengert` may take
BYTES = 80  # that a node may take, as the process's memory shows
