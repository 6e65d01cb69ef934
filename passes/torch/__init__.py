"""`sdy.torch`: PyTorch models and their optimizers, compiled and sharded by this compiler.

    step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})
    value = step(x, y)

torchax executes torch operations on JAX arrays, and on JAX tracers during tracing. torch and torchax are imported on
first use of a name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdy import extras

if TYPE_CHECKING:
    from sdy.passes.torch.inference import Forward as Forward
    from sdy.passes.torch.inference import forward as forward
    from sdy.passes.torch.training import TrainStep as TrainStep
    from sdy.passes.torch.training import train_step as train_step

_MODULES = {
    "Forward": "sdy.passes.torch.inference",
    "TrainStep": "sdy.passes.torch.training",
    "forward": "sdy.passes.torch.inference",
    "train_step": "sdy.passes.torch.training",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sdy.torch' has no attribute '{name}'")
    with extras.explain_missing_extra(f"sdy.torch.{name}"):
        import_module("torch")  # the torch extra also installs jax
        return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
