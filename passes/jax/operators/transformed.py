"""The function of an operator's gradient, or of many at once, made of the operator's function."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from sdy.operators.transforms import Batched, Gradient, Transform

Function = Callable[..., tuple[Any, ...]]
"""Of tensors, gives a tuple of tensors."""


def transformed(function: Function, transforms: Sequence[Transform]) -> Function:
    """What each of `transforms` makes of `function`, one after the other."""
    for transform in transforms:
        function = _gradient(function, transform) if isinstance(transform, Gradient) else _batched(function, transform)
    return function


def _gradient(function: Function, transform: Gradient) -> Function:
    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        inputs, gradients = operands[: transform.count], operands[transform.count :]

        def differentiated(*of: jax.Array) -> tuple[jax.Array, ...]:
            given = dict(zip(transform.of, of, strict=True))
            outputs = function(*(given.get(index, value) for index, value in enumerate(inputs)))
            return tuple(outputs[index] for index in transform.at)

        _, pull_back = jax.vjp(differentiated, *(inputs[index] for index in transform.of))
        return pull_back(gradients)

    return compute


def _batched(function: Function, transform: Batched) -> Function:
    return jax.vmap(function, in_axes=tuple(0 if is_batch else None for is_batch in transform.batch))
