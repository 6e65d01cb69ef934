"""Functions of transformed operators: gradients, tangents, batched and padded functions."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from sdy.operators.shapes import Shape
from sdy.operators.transforms import Batched, Gradient, KeyData, Padded, Tangent, Transform
from sdy.passes.jax.operators.keys import with_data, with_keys

Function = Callable[..., tuple[Any, ...]]
"""A function from tensors to a tuple of tensors."""


def transformed(operator: str, function: Function, transforms: Sequence[Transform]) -> Function:
    """Apply `transforms` in order to the function of the operator of that name."""
    for transform in transforms:
        match transform:
            case Gradient():
                function = _gradient(operator, function, transform)
            case Tangent():
                function = _tangent(operator, function, transform)
            case Batched():
                function = _batched(function, transform)
            case Padded():
                function = _padded(function, transform)
            case KeyData():
                function = _of_key_data(function, transform)
    return function


def _gradient(operator: str, function: Function, transform: Gradient) -> Function:
    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        inputs, cotangents = operands[: transform.count], operands[transform.count :]
        differentiated, at = _differentiated(function, transform, inputs)
        with _with_advice(
            operator, "write @sdy.register_op(..., backward=OPERATOR), where OPERATOR computes gradients"
        ):
            _, pull_back = jax.vjp(differentiated, *at)
            return pull_back(cotangents)

    return compute


def _tangent(operator: str, function: Function, transform: Tangent) -> Function:
    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        inputs, tangents = operands[: transform.count], operands[transform.count :]
        differentiated, at = _differentiated(function, transform, inputs)
        with _with_advice(operator, "define a tangent with jax.custom_jvp, or use jax.grad instead of forward mode"):
            return jax.jvp(differentiated, at, tangents)[1]

    return compute


def _differentiated(
    function: Function, transform: Gradient | Tangent, inputs: Sequence[jax.Array]
) -> tuple[Function, tuple[jax.Array, ...]]:
    """Return the function of only the differentiated inputs, and these inputs."""

    def compute(*of: jax.Array) -> tuple[jax.Array, ...]:
        given = dict(zip(transform.of, of, strict=True))
        outputs = function(*(given.get(index, value) for index, value in enumerate(inputs)))
        return tuple(outputs[index] for index in transform.at)

    return compute, tuple(inputs[index] for index in transform.of)


@contextmanager
def _with_advice(operator: str, advice: str) -> Generator[None]:
    """Add advice to the errors that JAX raises in the `with` block for a function that it cannot differentiate."""
    try:
        yield
    except (NotImplementedError, TypeError, ValueError) as problem:
        problem.add_note(f"The function of operator '{operator}' is differentiated: if it cannot be, {advice}.")
        raise


def _batched(function: Function, transform: Batched) -> Function:
    return jax.vmap(function, in_axes=tuple(0 if is_batch else None for is_batch in transform.batch))


def _padded(function: Function, transform: Padded) -> Function:
    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        parts = [
            operand if operand.shape == shape else jax.lax.slice(operand, [0] * len(shape), shape)
            for operand, shape in zip(operands, transform.operands, strict=True)
        ]
        return tuple(map(_pad, function(*parts), transform.results))

    return compute


def _pad(array: jax.Array, shape: Shape) -> jax.Array:
    """Pad `array` with zeros to `shape`, at the end of each dimension."""
    if array.shape == shape:
        return array
    behind = [(0, padded - size, 0) for padded, size in zip(shape, array.shape, strict=True)]
    return jax.lax.pad(array, jnp.zeros((), array.dtype), behind)


def _of_key_data(function: Function, transform: KeyData) -> Function:
    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        return with_data(function(*with_keys(operands, transform.operands)), transform.results)

    return compute
