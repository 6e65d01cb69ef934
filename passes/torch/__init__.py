"""`sdy.torch`: PyTorch models and their optimizers, compiled and sharded by this compiler.

    step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})
    value = step(x, y)

torchax executes torch operations on JAX arrays, and on JAX tracers during tracing. torch and torchax are imported on
first use of a name.
"""

from typing import TYPE_CHECKING

from sdy.lazy_names import lazy_names

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

# The torch extra also installs jax, which a missing torch would otherwise be reported as.
__getattr__, __dir__ = lazy_names("sdy.torch", globals(), _MODULES, needs="torch")
