"""`sdy.torch.forward`: a PyTorch model as one compiled, sharded program."""

from typing import Any

import jax
import torch

from sdy.mesh import Mesh
from sdy.passes.jax.api.given_shardings import Tree
from sdy.passes.jax.api.jit import jit
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.policy import Policy
from sdy.passes.torch.model import Arrays, Model
from sdy.passes.torch.names import Patterns, axes_of, shardings_of
from sdy.passes.torch.tensors import as_arrays


def forward(
    model: torch.nn.Module,
    *,
    mesh: AnyMesh | Mesh,
    shardings: Patterns = None,
    batch: Tree = None,
    policy: Policy | None = None,
) -> "Forward":
    """Compile `model` as a function of its arguments for the devices of `mesh`.

        scores = sdy.torch.forward(model.eval(), mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})(x)

    Arguments of the function are tensors or arrays, its results JAX arrays on the devices.

    Args:
        model: A model in evaluation mode.
        mesh: The mesh of devices.
        shardings: Shardings of parameters and buffers by name pattern; see `train_step`.
        batch: Shardings of the arguments; see `train_step`.
        policy: The partitioning policy; see `sdy.jit`.

    Raises:
        NotImplementedError: The model is in training mode, and would draw random numbers or change its buffers; or the
            model is not supported, as in `train_step`.
        ValueError: Shardings do not fit the model or the mesh.
    """
    if model.training:
        raise NotImplementedError(
            "the model is in training mode: call model.eval() first, or use sdy.torch.train_step to train it"
        )
    return Forward(Model(model), mesh, shardings, batch, policy)


class Forward(Lowerable):
    """A compiled model; its tensors, `arrays`, are copied when it is created."""

    def __init__(
        self, model: Model, mesh: AnyMesh | Mesh, shardings: Patterns, batch: Tree, policy: Policy | None
    ) -> None:
        shapes = {name: tuple(tensor.shape) for name, tensor in model.tensors.items()}
        by_tensor = shardings_of(shardings, model.names, shapes, axes_of(mesh))
        self._model = model
        self._program = jit(_traced(model), mesh=mesh, in_shardings=(by_tensor, batch), policy=policy)
        self.arrays: Arrays = as_arrays(dict(model.tensors))
        """The model's parameters and buffers, by their first names."""

    def __repr__(self) -> str:
        return f"<sdy.torch.forward of {type(self._model.module).__name__}>"

    def __call__(self, *batch: Any) -> Any:
        return self._program(self.arrays, as_arrays(batch))

    def lower(self, *batch: Any) -> Lowered:
        """Return the lowered program for arguments of these types: tensors, arrays or `jax.ShapeDtypeStruct`s."""
        return self._program.lower(self.arrays, as_arrays(batch))


def _traced(model: Model) -> Any:
    def apply(module: torch.nn.Module, *batch: Any) -> Any:
        return module(*batch)

    def forward(tensors: Arrays, batch: Any) -> Any:
        return model.call(apply, tensors, batch, jax.random.key(0)).value

    return forward
