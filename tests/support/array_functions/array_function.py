"""Functions of arrays, with the shapes that they are called with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from sdy.type_helpers import Function

Shape: TypeAlias = Sequence[int]

VECTOR: Shape = (64,)
MATRIX: Shape = (32, 16)
SQUARE: Shape = (16, 16)
IMAGE: Shape = (2, 16, 16, 3)
TENSOR: Shape = (8, 16, 24)
HEADS: Shape = (8, 16, 4, 8)


@dataclass(frozen=True)
class ArrayFunction:
    """A function of arrays of `float32`."""

    function: Function[Any]
    shapes: tuple[Shape, ...]
    is_differentiable: bool

    def gradient(self) -> Function[Any]:
        """Return the gradient of the sum of the sines of all results, with respect to all arguments."""

        def total(*arguments: Any) -> jax.Array:
            results = jax.tree.leaves(self.function(*arguments))
            return sum((jnp.sum(jnp.sin(each)) for each in results), start=jnp.zeros(()))

        return jax.grad(total, argnums=tuple(range(len(self.shapes))))

    def batched(self) -> "ArrayFunction":
        """Return the function of four times each array, stacked in the last dimension."""
        return ArrayFunction(
            jax.vmap(self.function, in_axes=-1), tuple((*shape, 4) for shape in self.shapes), self.is_differentiable
        )


def differentiable(function: Function[Any], *shapes: Shape) -> ArrayFunction:
    return ArrayFunction(function, shapes, is_differentiable=True)


def other(function: Function[Any], *shapes: Shape) -> ArrayFunction:
    return ArrayFunction(function, shapes, is_differentiable=False)
