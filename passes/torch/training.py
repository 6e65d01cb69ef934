"""`sdy.torch.train_step`: a PyTorch model, its loss and its optimizer as one compiled, sharded step."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
import torch
from jax.sharding import PartitionSpec

from sdy.mesh import Mesh
from sdy.passes.auto.plan import Plan
from sdy.passes.jax.api.auto_jit import Planned, choice_in
from sdy.passes.jax.api.given_shardings import Tree
from sdy.passes.jax.api.jit import jit
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.policy import Policy
from sdy.passes.torch.model import Arrays, Model
from sdy.passes.torch.names import Patterns, ShardingSpec, axes_of, shardings_of, split_alike
from sdy.passes.torch.optimizer import FunctionalOptimizer, State
from sdy.passes.torch.tensors import as_arrays, as_tensors
from sdy.passes.torch.traced_step import Arguments, Results, traced_step
from sdy.type_helpers import Function


def train_step(
    model: torch.nn.Module,
    loss: Function[torch.Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    mesh: AnyMesh | Mesh,
    shardings: Patterns = None,
    batch: Tree = None,
    seed: int = 0,
    policy: Policy | None = None,
) -> "TrainStep":
    """Compile a training step of `model` for the devices of `mesh`; see `TrainStep`.

        def loss(model, x, y):
            return torch.nn.functional.cross_entropy(model(x), y)

        step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})
        value = step(x, y)

    JAX computes the gradients, of the torch operations that torchax runs on JAX arrays; the optimizer's step is torch's
    own code, traced. Learning rates are read from the optimizer before each step, so that schedulers work; a change of
    any other setting recompiles the step. The model and the optimizer are not modified.

    Args:
        model: The model.
        loss: `loss(model, *batch)` returns a scalar tensor.
        optimizer: The optimizer of the model's parameters.
        mesh: The mesh of devices.
        shardings: A `PartitionSpec`, or `sdy.AUTO` to let the compiler choose, by pattern of the names of parameters
            and buffers, as in `fnmatch`. The first matching pattern applies; tensors without one are replicated.
            `sdy.AUTO` alone applies to all tensors. The state of the optimizer is sharded like its parameter.
        batch: The sharding of the arguments of the step: a `PartitionSpec`, `sdy.AUTO`, or None for propagation to
            decide, or a tuple with one of them per argument.
        seed: Seed of random numbers, as for dropout.
        policy: The partitioning policy; see `sdy.jit`.

    Raises:
        ValueError: Shardings do not fit the model or the mesh; the message names the pattern or the parameter.
        NotImplementedError: The model or the optimizer would not compute the same as in torch.
    """
    return TrainStep(Model(model), loss, optimizer, mesh, shardings, batch, seed, policy)


class TrainStep(Lowerable):
    """A compiled training step: a call with a batch of tensors returns the loss and updates the state.

    The model's tensors, `arrays`, and the state of the optimizer, `optimizer_state`, stay on the devices, as shards.
    The first step is compiled separately, as optimizers start without state; `lower`, and hence `sdy.account` and
    `sdy.report`, describe all later steps.
    """

    def __init__(
        self,
        model: Model,
        loss: Function[torch.Tensor],
        optimizer: torch.optim.Optimizer,
        mesh: AnyMesh | Mesh,
        shardings: Patterns,
        batch: Tree,
        seed: int,
        policy: Policy | None,
    ) -> None:
        names = {id(tensor): name for name, tensor in model.tensors.items()}
        self._model = model
        self._optimizer = FunctionalOptimizer(optimizer, names)
        self._function = traced_step(model, loss, self._optimizer, seed)
        self._shapes = {name: tuple(tensor.shape) for name, tensor in model.tensors.items()}
        self._specs = shardings_of(shardings, model.names, self._shapes, axes_of(mesh))
        self._batch, self._mesh, self._policy = batch, mesh, policy
        self._programs: dict[Any, Any] = {}
        self._count = 0
        self.arrays: Arrays = as_arrays(dict(model.tensors))
        """The model's parameters and buffers, by their first names."""
        self.optimizer_state: State = self._optimizer.state
        """The optimizer's state of each parameter, by name."""

    def __repr__(self) -> str:
        return f"<sdy.torch.train_step of {type(self._model.module).__name__}, {self._count} taken>"

    def __call__(self, *batch: Any) -> jax.Array:
        """Take a step with `batch`, of tensors or arrays, and return the loss before the update."""
        arguments = self._arguments(batch)
        results = self._program(arguments)(*arguments)
        self.arrays, self.optimizer_state = {**results.parameters, **results.others}, results.state
        self._count += 1
        self._optimizer.mark_called()
        return results.loss

    def lower(self, *batch: Any) -> Lowered:
        """Return the lowered program of a step after the first, for batches of these types."""
        arguments = self._later(self._arguments(batch))
        return self._program(arguments).lower(*arguments)

    def plan(self, *batch: Any) -> Plan:
        """Return the plan that the compiler chose for batches of these types.

        Raises:
            ValueError: No sharding was left to the compiler.
        """
        arguments = self._later(self._arguments(batch))
        program = self._program(arguments)
        if not isinstance(program, Planned):
            raise ValueError("all shardings are given: shardings=sdy.AUTO lets the compiler choose them")
        return program.plan(*arguments)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the model's current tensors, copied to the host, for `model.load_state_dict`."""
        saved = self._model.module.state_dict().keys()
        return {
            name: tensor.to(self._model.tensors[first].dtype)
            for first, tensor in as_tensors(self.arrays).items()
            for name in self._model.names[first]
            if name in saved
        }

    def optimizer_state_dict(self) -> dict[str, Any]:
        """Return the optimizer's current state, copied to the host, for `optimizer.load_state_dict`."""
        return self._optimizer.state_dict(self.optimizer_state)

    def _arguments(self, batch: Iterable[Any]) -> Arguments:
        """Return the arguments of the next step."""
        trained = set(self._optimizer.trained)
        parameters = {name: array for name, array in self.arrays.items() if name in trained}
        others = {name: array for name, array in self.arrays.items() if name not in trained}
        rates, count = self._optimizer.rates, np.uint32(self._count)
        return Arguments(parameters, others, self.optimizer_state, rates, count, as_arrays(tuple(batch)))

    def _later(self, arguments: Arguments) -> Arguments:
        """Return `arguments` with the types of the optimizer's state after a step."""
        return arguments._replace(state=jax.eval_shape(self._function, *arguments).state)

    def _program(self, arguments: Arguments) -> Any:
        """Return the `sdy.jit` function for these arguments, memoized."""
        key = jax.tree.structure(arguments), self._optimizer.settings
        if key not in self._programs:
            self._programs[key] = self._compile(arguments)
        return self._programs[key]

    def _compile(self, arguments: Arguments) -> Any:
        compile_step = partial(jit, self._function, mesh=self._mesh, policy=self._policy, donate_argnums=(0, 1, 2))
        later = self._later(arguments)
        specs = self._shardings(later)
        if choice_in(specs) is None:
            return compile_step(in_shardings=tuple(self._shardings(arguments)), out_shardings=_result_shardings(specs))
        if jax.tree.structure(arguments) == jax.tree.structure(later):
            return compile_step(in_shardings=tuple(specs))
        planned = Arguments(*self._program(later).shardings(*later))
        state = {
            name: {each: planned.state[name][each] for each in entries} for name, entries in arguments.state.items()
        }
        return compile_step(in_shardings=tuple(planned._replace(state=state)), out_shardings=_result_shardings(planned))

    def _shardings(self, arguments: Arguments) -> Arguments:
        """Return the shardings of these arguments, as a prefix of their tree."""
        return Arguments(
            parameters={name: self._specs[name] for name in arguments.parameters},
            others={name: self._specs[name] for name in arguments.others},
            state={name: self._state_shardings(name, entries) for name, entries in arguments.state.items()},
            rates=PartitionSpec(),
            count=PartitionSpec(),
            batch=self._batch,
        )

    def _state_shardings(self, name: str, entries: Mapping[str, Any]) -> dict[str, ShardingSpec]:
        """Return the shardings of the optimizer's state of a parameter."""
        shape = self._shapes[name]
        return {each: split_alike(self._specs[name], shape, np.shape(array)) for each, array in entries.items()}


def _result_shardings(shardings: Arguments) -> Results:
    """Return the shardings of the results of a step from those of its arguments."""
    return Results(None, shardings.parameters, shardings.others, shardings.state)
