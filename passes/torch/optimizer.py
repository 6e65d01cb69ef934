"""A step of a torch optimizer as a function of arrays: torch's own code, traced."""

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import jax
import torch

from sdy.passes.torch.modes import ScalarsMode
from sdy.passes.torch.tensors import as_arrays, as_tensors, as_traced, environment

_RATE = "lr"
"""The learning rate, which schedulers change between steps; an argument of the program."""

_IMPLEMENTATION_OPTIONS = {"foreach": False, "fused": None, "capturable": False, "differentiable": False}
"""torch's options for the implementation of a step, with values that do not change its result."""

_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
"""Attributes in which an optimizer stores hooks around its step."""

_WAS_CALLED = "_opt_called"
"""Attribute by which schedulers check that the optimizer was called before them."""

State = dict[str, dict[str, Any]]
"""State of an optimizer: by the parameter's name, then by the optimizer's name of the entry."""


class FunctionalOptimizer:
    """An optimizer as a function of arrays.

    Args:
        optimizer: The optimizer.
        names: The names of the model's parameters, by their `id`.

    Raises:
        ValueError: The optimizer has a parameter that the model does not have.
        NotImplementedError: The optimizer has hooks around its step, which cannot be compiled, or evaluates the loss
            several times per step.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> None:
        self._optimizer = optimizer
        self._names = names
        for parameter in self._parameters():
            if id(parameter) not in names:
                shape = tuple(parameter.shape)
                raise ValueError(f"the optimizer has a parameter of shape {shape} that the model does not have")
        if any(vars(optimizer).get(hooks) for hooks in _HOOKS):
            raise NotImplementedError("the optimizer has hooks around its step, which cannot be compiled: remove them")
        closure = signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is Parameter.empty:
            raise NotImplementedError(
                f"a step of torch.optim.{type(optimizer).__name__} evaluates the loss several times: "
                "use an optimizer such as AdamW or SGD"
            )

    @property
    def trained(self) -> list[str]:
        """The names of the parameters that it updates."""
        return [self._names[id(parameter)] for parameter in self._parameters() if parameter.requires_grad]

    @property
    def rates(self) -> list[float]:
        """The current learning rate of each group."""
        return [float(group[_RATE]) for group in self._optimizer.param_groups]

    @property
    def settings(self) -> str:
        """All other current settings, which are constants of a compiled program."""
        groups = self._optimizer.param_groups
        return repr([{name: group[name] for name in group if name not in ("params", _RATE)} for group in groups])

    @property
    def state(self) -> State:
        """The current state, as arrays on the host."""
        state = self._optimizer.state
        return {self._names[id(parameter)]: as_arrays(dict(entries)) for parameter, entries in state.items()}

    def state_dict(self, state: State) -> dict[str, Any]:
        """Return `state` and the current settings in the form that `torch.optim.Optimizer.load_state_dict` accepts."""
        numbers = {self._names[id(parameter)]: index for index, parameter in enumerate(self._parameters())}
        by_number = {numbers[name]: as_tensors(tensors) for name, tensors in state.items()}
        return {**self._optimizer.state_dict(), "state": by_number}

    def mark_called(self) -> None:
        """Mark that the optimizer was called, for schedulers that check it."""
        vars(self._optimizer)[_WAS_CALLED] = True

    def update(
        self,
        parameters: Mapping[str, jax.Array],
        gradients: Mapping[str, jax.Array],
        state: State,
        rates: Sequence[jax.Array],
    ) -> tuple[dict[str, jax.Array], State]:
        """Trace one step.

        Parameters without a gradient, and their state, do not change.

        Args:
            parameters: The parameters, as tracers.
            gradients: The gradients of the parameters that the loss uses.
            state: The state of the optimizer.
            rates: The learning rate of each group.

        Returns:
            The updated parameters and state.

        Raises:
            NotImplementedError: The step depends on the values of tensors.
        """
        traced = as_traced(dict(parameters))
        for name, gradient in gradients.items():
            traced[name].grad = as_traced(gradient)
        optimizer = copy.copy(self._optimizer)
        optimizer.param_groups = [
            self._group(group, traced, rate) for group, rate in zip(optimizer.param_groups, rates, strict=True)
        ]
        optimizer.state = defaultdict(dict, {traced[name]: as_traced(entries) for name, entries in state.items()})
        try:
            with environment(), ScalarsMode(), torch.no_grad():
                optimizer.step()
        except jax.errors.ConcretizationTypeError as problem:
            kind = type(self._optimizer).__name__
            raise NotImplementedError(
                f"a step of torch.optim.{kind} depends on the values of tensors, which are unknown during compilation: "
                "use an optimizer such as AdamW or SGD"
            ) from problem
        names = {id(tensor): name for name, tensor in traced.items()}
        after = {names[id(tensor)]: as_arrays(entries) for tensor, entries in optimizer.state.items()}
        return _like(parameters, as_arrays(traced)), {name: _like(state.get(name, {}), after[name]) for name in after}

    def _group(self, group: Mapping[str, Any], traced: Mapping[str, Any], rate: jax.Array) -> dict[str, Any]:
        tensors = [traced[name] for name in map(self._names.__getitem__, map(id, group["params"])) if name in traced]
        options = {name: value for name, value in _IMPLEMENTATION_OPTIONS.items() if name in group}
        return {**group, **options, "params": tensors, _RATE: as_traced(rate)}

    def _parameters(self) -> Iterator[torch.Tensor]:
        return (parameter for group in self._optimizer.param_groups for parameter in group["params"])


def _like(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return `after` with the element types of `before`: torch does not promote a tensor combined with a number."""
    return {name: array.astype(before[name].dtype) if name in before else array for name, array in after.items()}
