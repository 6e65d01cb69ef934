"""`sdy.torch.forward`: what a model of torch computes, as one compiled, sharded program."""

from typing import Any

import jax
import torch

from sdy.mesh import Mesh
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.given_shardings import Tree
from sdy.passes.jax.jit import jit
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.policy.policy import Policy
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
    """`model` as a function of its arguments, compiled by this compiler for the devices of `mesh`.

        scores = sdy.torch.forward(model.eval(), mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})(x)

    `shardings`, `batch` and `policy` are as in `train_step`. Arguments are tensors or arrays, the results jax's arrays
    on the devices. Raises what `train_step` does of a model, and NotImplementedError for one in training, which would
    draw random numbers or change what it keeps.
    """
    if model.training:
        raise NotImplementedError(
            "the model is in training: model.eval() before, or sdy.torch.train_step, which trains"
        )
    return Forward(Model(model), mesh, shardings, batch, policy)


class Forward(Lowerable):
    """What a model computes of its arguments; its tensors, `arrays`, stay as they were when this was made."""

    def __init__(
        self, model: Model, mesh: AnyMesh | Mesh, shardings: Patterns, batch: Tree, policy: Policy | None
    ) -> None:
        shapes = {name: tuple(tensor.shape) for name, tensor in model.tensors.items()}
        given = shardings_of(shardings, model.names, shapes, axes_of(mesh))
        self._model = model
        self._program = jit(_traced(model), mesh=mesh, in_shardings=(given, batch), policy=policy)
        self.arrays: Arrays = as_arrays(dict(model.tensors))
        """The model's parameters and buffers, by their first names."""

    def __repr__(self) -> str:
        return f"<sdy.torch.forward of {type(self._model.module).__name__}>"

    def __call__(self, *batch: Any) -> Any:
        return self._program(self.arrays, as_arrays(batch))

    def lower(self, *batch: Any) -> Lowered:
        """The program for arguments of these types, tensors, arrays or `jax.ShapeDtypeStruct`s, to look at."""
        return self._program.lower(self.arrays, as_arrays(batch))


def _traced(model: Model) -> Any:
    def computed(module: torch.nn.Module, *batch: Any) -> Any:
        return module(*batch)

    def forward(tensors: Arrays, batch: Any) -> Any:
        return model.call(computed, tensors, batch, jax.random.key(0)).value

    return forward
