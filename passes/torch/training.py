"""`sdy.torch.train_step`: a model of torch, its loss and its optimizer as one compiled, sharded step."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
import torch
from jax.sharding import PartitionSpec

from sdy.callables import Function
from sdy.mesh import Mesh
from sdy.passes.auto.plan import Plan
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.given_shardings import Tree
from sdy.passes.jax.jit import jit
from sdy.passes.jax.planned import Planned, choice_in
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.policy.policy import Policy
from sdy.passes.torch.model import Arrays, Model
from sdy.passes.torch.names import Given, Patterns, axes_of, shardings_of, split_alike
from sdy.passes.torch.optimizer import FunctionalOptimizer, State
from sdy.passes.torch.tensors import as_arrays, as_tensors
from sdy.passes.torch.traced_step import Arguments, Results, traced_step


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
    """A step of training `model`, compiled by this compiler for the devices of `mesh`; see `TrainStep`.

        def loss(model, x, y):
            return torch.nn.functional.cross_entropy(model(x), y)

        step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings={"*.q_proj.weight": P("model", None)})
        value = step(x, y)

    `loss(model, *batch)` computes a scalar. `shardings` are `PartitionSpec`s, or `sdy.AUTO` for what the compiler is to
    choose, by patterns of names of parameters and buffers, as in `fnmatch`. The first pattern that matches counts, and
    what none matches is whole on each device; `sdy.AUTO` alone is for all of them. What the optimizer keeps is split as
    its parameter. `batch` is a `PartitionSpec`, `sdy.AUTO` or None, for what the compiler decides, or a tuple with one
    of them for each argument of the step. `seed` is what dropout begins with, `policy` as in `sdy.jit`.

    Gradients are jax's, of the operations of torch that torchax runs on jax's arrays; the optimizer's step is torch's
    own code, traced. Learning rates are read from the optimizer before each step, so schedulers work on it; for another
    value of what else is set there, the step is compiled anew. The model and the optimizer themselves are not changed.

    Raises ValueError, naming the pattern or the parameter, for shardings that do not fit the model or the mesh, and
    NotImplementedError for a model or an optimizer that would not compute what it does in torch.
    """
    return TrainStep(Model(model), loss, optimizer, mesh, shardings, batch, seed, policy)


class TrainStep(Lowerable):
    """A step of training: called with a batch of tensors, it returns the loss before it, and keeps what it made.

    The model's tensors, `arrays`, and what the optimizer keeps, `optimizer_state`, stay on the devices, as shards. The
    first step is compiled alone, as optimizers begin with nothing; `lower`, and so `sdy.account` and `sdy.report`, are
    about all later ones.
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
        self._given = shardings_of(shardings, model.names, self._shapes, axes_of(mesh))
        self._batch, self._mesh, self._policy = batch, mesh, policy
        self._programs: dict[Any, Any] = {}
        self._count = 0
        self.arrays: Arrays = as_arrays(dict(model.tensors))
        """The model's parameters and buffers, by their first names."""
        self.optimizer_state: State = self._optimizer.state
        """What the optimizer keeps for each parameter, by its name."""

    def __repr__(self) -> str:
        return f"<sdy.torch.train_step of {type(self._model.module).__name__}, {self._count} taken>"

    def __call__(self, *batch: Any) -> jax.Array:
        """Take a step with `batch`, of tensors or arrays, and return what the loss was before it."""
        arguments = self._arguments(batch)
        results = self._program(arguments)(*arguments)
        self.arrays, self.optimizer_state = {**results.parameters, **results.others}, results.state
        self._count += 1
        self._optimizer.mark_called()
        return results.loss

    def lower(self, *batch: Any) -> Lowered:
        """The program of a step, but for the first, with batches of such types, to look at."""
        arguments = self._later(self._arguments(batch))
        return self._program(arguments).lower(*arguments)

    def plan(self, *batch: Any) -> Plan:
        """What the compiler chose for batches of such types. Raises ValueError where nothing was left to it."""
        arguments = self._later(self._arguments(batch))
        program = self._program(arguments)
        if not isinstance(program, Planned):
            raise ValueError("all shardings were given: shardings=sdy.AUTO leaves them to the compiler")
        return program.plan(*arguments)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """What `model.load_state_dict` takes: the model's tensors as they are now, copied to the host."""
        kept = self._model.module.state_dict().keys()
        return {
            name: tensor.to(self._model.tensors[first].dtype)
            for first, tensor in as_tensors(self.arrays).items()
            for name in self._model.names[first]
            if name in kept
        }

    def optimizer_state_dict(self) -> dict[str, Any]:
        """What `optimizer.load_state_dict` takes: what the optimizer keeps now, copied to the host."""
        return self._optimizer.state_dict(self.optimizer_state)

    def _arguments(self, batch: Iterable[Any]) -> Arguments:
        """The arguments of the next step."""
        trained = set(self._optimizer.trained)
        parameters = {name: array for name, array in self.arrays.items() if name in trained}
        others = {name: array for name, array in self.arrays.items() if name not in trained}
        rates, count = self._optimizer.rates, np.uint32(self._count)
        return Arguments(parameters, others, self.optimizer_state, rates, count, as_arrays(tuple(batch)))

    def _later(self, arguments: Arguments) -> Arguments:
        """`arguments` with the types of what the optimizer keeps after a step."""
        return arguments._replace(state=jax.eval_shape(self._function, *arguments).state)

    def _program(self, arguments: Arguments) -> Any:
        """The function of `sdy.jit` for such arguments."""
        key = jax.tree.structure(arguments), self._optimizer.settings
        if key not in self._programs:
            self._programs[key] = self._made(arguments)
        return self._programs[key]

    def _made(self, arguments: Arguments) -> Any:
        make = partial(jit, self._function, mesh=self._mesh, policy=self._policy, donate_argnums=(0, 1, 2))
        later = self._later(arguments)
        given = self._shardings(later)
        if choice_in(given) is None:
            return make(in_shardings=tuple(self._shardings(arguments)), out_shardings=_of_results(given))
        if jax.tree.structure(arguments) == jax.tree.structure(later):
            return make(in_shardings=tuple(given))
        chosen = Arguments(*self._program(later).shardings(*later))
        state = {name: {each: chosen.state[name][each] for each in kept} for name, kept in arguments.state.items()}
        return make(in_shardings=tuple(chosen._replace(state=state)), out_shardings=_of_results(chosen))

    def _shardings(self, arguments: Arguments) -> Arguments:
        """What is given for such arguments, as a prefix of their tree."""
        return Arguments(
            parameters={name: self._given[name] for name in arguments.parameters},
            others={name: self._given[name] for name in arguments.others},
            state={name: self._given_to_state(name, kept) for name, kept in arguments.state.items()},
            rates=PartitionSpec(),
            count=PartitionSpec(),
            batch=self._batch,
        )

    def _given_to_state(self, name: str, kept: Mapping[str, Any]) -> dict[str, Given]:
        """What is given for what the optimizer keeps for the parameter of this name."""
        shape = self._shapes[name]
        return {each: split_alike(self._given[name], shape, np.shape(array)) for each, array in kept.items()}


def _of_results(shardings: Arguments) -> Results:
    """Those of the results of a step whose arguments have `shardings`."""
    return Results(None, shardings.parameters, shardings.others, shardings.state)
