"""A step of an optimizer of torch as a function of arrays: torch's own code, traced."""

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import jax
import torch

from sdy.passes.torch.environment import environment
from sdy.passes.torch.scalars_mode import ScalarsMode
from sdy.passes.torch.tensors import as_arrays, as_tensors, as_traced

_RATE = "lr"
"""What schedulers change from step to step; it is an argument of the program."""

_WAYS_TO_RUN = {"foreach": False, "fused": None, "capturable": False, "differentiable": False}
"""What torch can be told of how a step runs, which says nothing of what it computes."""

_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
"""Where an optimizer keeps what is to be called around its step."""

_WAS_CALLED = "_opt_called"
"""What schedulers look for in an optimizer, to warn where they are called before it."""

State = dict[str, dict[str, Any]]
"""What an optimizer keeps for each parameter: by the parameter's name, then by what the optimizer calls it."""


class FunctionalOptimizer:
    """An optimizer, whose parameters are known by `names`, which has them by their `id`.

    Raises ValueError for a parameter that has no name, which the model does not have then, and NotImplementedError for
    hooks around a step, which no compiled program runs, and for an optimizer that computes the loss again in a step.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> None:
        self._optimizer = optimizer
        self._names = names
        for parameter in self._parameters():
            if id(parameter) not in names:
                shape = tuple(parameter.shape)
                raise ValueError(f"the optimizer has a parameter of shape {shape} that the model does not have")
        if any(vars(optimizer).get(hooks) for hooks in _HOOKS):
            raise NotImplementedError("the optimizer has hooks around its step, which is compiled: remove them")
        closure = signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is Parameter.empty:
            raise NotImplementedError(
                f"a step of torch.optim.{type(optimizer).__name__} computes the loss several times: "
                "take an optimizer such as AdamW or SGD"
            )

    @property
    def trained(self) -> list[str]:
        """The names of the parameters that it changes."""
        return [self._names[id(parameter)] for parameter in self._parameters() if parameter.requires_grad]

    @property
    def rates(self) -> list[float]:
        """The learning rate of each group, as it is now."""
        return [float(group[_RATE]) for group in self._optimizer.param_groups]

    @property
    def settings(self) -> str:
        """All else that is set now, for which a program is compiled."""
        groups = self._optimizer.param_groups
        return repr([{name: group[name] for name in group if name not in ("params", _RATE)} for group in groups])

    @property
    def state(self) -> State:
        """What it keeps now, as arrays on the host."""
        state = self._optimizer.state
        return {self._names[id(parameter)]: as_arrays(dict(kept)) for parameter, kept in state.items()}

    def state_dict(self, state: State) -> dict[str, Any]:
        """`state` and what is set now, in the form that `torch.optim.Optimizer.load_state_dict` takes."""
        numbers = {self._names[id(parameter)]: index for index, parameter in enumerate(self._parameters())}
        kept = {numbers[name]: as_tensors(tensors) for name, tensors in state.items()}
        return {**self._optimizer.state_dict(), "state": kept}

    def mark_called(self) -> None:
        """Let schedulers know that there was a step."""
        vars(self._optimizer)[_WAS_CALLED] = True

    def update(
        self,
        parameters: Mapping[str, jax.Array],
        gradients: Mapping[str, jax.Array],
        state: State,
        rates: Sequence[jax.Array],
    ) -> tuple[dict[str, jax.Array], State]:
        """The next `parameters` and `state`, as jax traces them; what has no gradient is as before.

        Raises NotImplementedError for an optimizer whose step depends on the values of tensors.
        """
        traced = as_traced(dict(parameters))
        for name, gradient in gradients.items():
            traced[name].grad = as_traced(gradient)
        optimizer = copy.copy(self._optimizer)
        optimizer.param_groups = [
            self._group(group, traced, rate) for group, rate in zip(optimizer.param_groups, rates, strict=True)
        ]
        optimizer.state = defaultdict(dict, {traced[name]: as_traced(kept) for name, kept in state.items()})
        try:
            with environment(), ScalarsMode(), torch.no_grad():
                optimizer.step()
        except jax.errors.ConcretizationTypeError as problem:
            kind = type(self._optimizer).__name__
            raise NotImplementedError(
                f"a step of torch.optim.{kind} depends on values of tensors, which a compiled step has not yet: "
                "take an optimizer such as AdamW or SGD"
            ) from problem
        names = {id(tensor): name for name, tensor in traced.items()}
        after = {names[id(tensor)]: as_arrays(kept) for tensor, kept in optimizer.state.items()}
        return _like(parameters, as_arrays(traced)), {name: _like(state.get(name, {}), after[name]) for name in after}

    def _group(self, group: Mapping[str, Any], traced: Mapping[str, Any], rate: jax.Array) -> dict[str, Any]:
        tensors = [traced[name] for name in map(self._names.__getitem__, map(id, group["params"])) if name in traced]
        ways = {name: way for name, way in _WAYS_TO_RUN.items() if name in group}
        return {**group, **ways, "params": tensors, _RATE: as_traced(rate)}

    def _parameters(self) -> Iterator[torch.Tensor]:
        return (parameter for group in self._optimizer.param_groups for parameter in group["params"])


def _like(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """`after` with the element types from `before`, which in torch a number beside a tensor does not change."""
    return {name: array.astype(before[name].dtype) if name in before else array for name, array in after.items()}
