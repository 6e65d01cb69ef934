"""A training step as a function of arrays, for JAX to trace."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import torch

from sdy.passes.torch.model import Arrays, Model, Result
from sdy.passes.torch.optimizer import FunctionalOptimizer, State
from sdy.type_helpers import Function


class Arguments(NamedTuple):
    """Arguments of a step, or a property of each of them."""

    parameters: Any
    """The parameters that the optimizer updates, by name."""
    others: Any
    """The model's other parameters, and its buffers, by name."""
    state: Any
    """The state of the optimizer."""
    rates: Any
    """The learning rates of the optimizer's groups."""
    count: Any
    """The number of previous steps."""
    batch: Any
    """The tuple of the loss's arguments after the model."""


class Results(NamedTuple):
    """Results of a step, or a property of each of them: the loss, and the next values of three arguments."""

    loss: Any
    parameters: Any
    others: Any
    state: Any


def traced_step(
    model: Model, loss: Function[torch.Tensor], optimizer: FunctionalOptimizer, seed: int
) -> Callable[..., Results]:
    """Return the function from the entries of `Arguments` to `Results`; `seed` starts the random numbers."""

    def train_step(parameters: Arrays, others: Arrays, state: State, rates: Any, count: Any, batch: Any) -> Results:
        key = jax.random.fold_in(jax.random.key(seed), count)
        used: list[str] = []

        def differentiated(parameters: Arrays) -> tuple[Any, Arrays]:
            result = model.call(loss, {**others, **parameters}, batch, key)
            _check(result, parameters)
            used.extend(result.used)
            return result.value, {name: result.tensors[name] for name in others}

        (value, changed), gradients = jax.value_and_grad(differentiated, has_aux=True)(parameters)
        used_gradients = {name: gradients[name] for name in parameters if name in used}
        updated, next_state = optimizer.update(parameters, used_gradients, state, rates)
        return Results(value, updated, changed, next_state)

    return train_step


def _check(result: Result, parameters: Mapping[str, Any]) -> None:
    """Raise TypeError if the loss is not a scalar, and NotImplementedError if it changes parameters."""
    shape = getattr(result.value, "shape", None)
    if shape != ():
        actual = type(result.value).__name__ if shape is None else f"a tensor of shape {tuple(shape)}"
        raise TypeError(f"the loss must be a scalar tensor, such as of .mean(), not {actual}")
    for name, array in parameters.items():
        if result.tensors[name] is not array:
            raise NotImplementedError(f"{name} is changed while the loss is computed; only its optimizer may change it")
