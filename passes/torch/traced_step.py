"""A step of training as a function of arrays, for jax to trace."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import torch

from sdy.callables import Function
from sdy.passes.torch.model import Arrays, Model, Result
from sdy.passes.torch.optimizer import FunctionalOptimizer, State


class Arguments(NamedTuple):
    """The arguments of a step, or something for each of them."""

    parameters: Any
    """What the optimizer changes, by name."""
    others: Any
    """The model's other parameters, and its buffers, by name."""
    state: Any
    """What the optimizer keeps."""
    rates: Any
    """The learning rates of the optimizer's groups."""
    count: Any
    """How many steps there were."""
    batch: Any
    """A tuple of what the loss takes besides the model."""


class Results(NamedTuple):
    """The results of a step, or something for each of them: the loss, and the next three arguments."""

    loss: Any
    parameters: Any
    others: Any
    state: Any


def traced_step(
    model: Model, loss: Function[torch.Tensor], optimizer: FunctionalOptimizer, seed: int
) -> Callable[..., Results]:
    """The function of `Arguments`, one by one, that gives `Results`; random numbers begin with `seed`."""

    def train_step(parameters: Arrays, others: Arrays, state: State, rates: Any, count: Any, batch: Any) -> Results:
        key = jax.random.fold_in(jax.random.key(seed), count)
        used: list[str] = []

        def differentiated(parameters: Arrays) -> tuple[Any, Arrays]:
            result = model.call(loss, {**others, **parameters}, batch, key)
            _check(result, parameters)
            used.extend(result.used)
            return result.value, {name: result.tensors[name] for name in others}

        (value, changed), gradients = jax.value_and_grad(differentiated, has_aux=True)(parameters)
        of_used = {name: gradients[name] for name in parameters if name in used}
        after, kept = optimizer.update(parameters, of_used, state, rates)
        return Results(value, after, changed, kept)

    return train_step


def _check(result: Result, parameters: Mapping[str, Any]) -> None:
    """Raise for what is no loss, and for parameters that were changed on the way to it."""
    shape = getattr(result.value, "shape", None)
    if shape != ():
        found = type(result.value).__name__ if shape is None else f"a tensor of shape {tuple(shape)}"
        raise TypeError(f"the loss must be a scalar tensor, as of .mean(), not {found}")
    for name, array in parameters.items():
        if result.tensors[name] is not array:
            raise NotImplementedError(f"{name} is changed while the loss is computed; only its optimizer may change it")
