"""`sdy.torch`: models of torch, with their optimizers, compiled and sharded by this compiler.

    step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})
    value = step(x, y)

torchax runs the operations of torch on jax's arrays, and so on jax's tracers. Neither it nor torch is loaded before one
of these names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdy import extras

if TYPE_CHECKING:
    from sdy.passes.torch.inference import Forward as Forward
    from sdy.passes.torch.inference import forward as forward
    from sdy.passes.torch.training import TrainStep as TrainStep
    from sdy.passes.torch.training import train_step as train_step

_HOMES = {
    "Forward": "sdy.passes.torch.inference",
    "TrainStep": "sdy.passes.torch.training",
    "forward": "sdy.passes.torch.inference",
    "train_step": "sdy.passes.torch.training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sdy.torch' has no attribute '{name}'")
    with extras.explain_missing_extra(f"sdy.torch.{name}"):
        import_module("torch")  # whose extra brings jax, too
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
