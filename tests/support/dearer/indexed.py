"""Elements at dynamic indices: gathers, scatters, and their gradients."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from dearer.case import Array, Case, Draft


def take(draft: Draft) -> Case:
    """Take slices at indices along a dimension, or differentiate that."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    dim = draft.choices.below(len(shape))
    taken = draft.shape(1, 2)
    draft.operand(taken, "int32", _indices(taken, shape[dim]))

    def taken_from(x: jax.Array, indices: jax.Array) -> jax.Array:
        return jnp.take(x, indices, axis=dim)

    return _case(draft, f"take along {dim}", taken_from)


def take_elements(draft: Draft) -> Case:
    """Take `x[rows, columns]`, or differentiate it."""
    shape = draft.shape(2, 3)
    draft.operand(shape)
    count = draft.shape(1, 1)
    draft.operand(count, "int32", _indices(count, shape[0]))
    draft.operand(count, "int32", _indices(count, shape[1]))

    def taken_from(x: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
        return x[rows, columns]

    return _case(draft, "x[rows, columns]", taken_from)


def take_along_axis(draft: Draft) -> Case:
    """Take elements of each row at per-row indices, or differentiate that."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    dim = draft.choices.below(len(shape))
    taken = (*shape[:dim], draft.size(), *shape[dim + 1 :])
    draft.operand(taken, "int32", _indices(taken, shape[dim]))

    def taken_from(x: jax.Array, indices: jax.Array) -> jax.Array:
        return jnp.take_along_axis(x, indices, dim)

    return _case(draft, f"take_along_axis {dim}", taken_from)


def put(draft: Draft) -> Case:
    """Combine rows at indices with updates, by sum, maximum or minimum."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    count = draft.size()
    draft.operand((count,), "int32", _indices((count,), shape[0]))
    draft.operand((count, *shape[1:]))
    method = draft.choices.of(("add", "max", "min"))

    def updated(x: jax.Array, indices: jax.Array, rows: jax.Array) -> jax.Array:
        return getattr(x.at[indices], method)(rows)

    return draft.case(f"at[].{method}", updated)


def segments(draft: Draft) -> Case:
    """Combine rows of equal index by sum, product or maximum, or differentiate the sum."""
    shape = draft.choices.of((draft.shape(1, 2), (8,), (16,), (16, 8), (8, 16)))
    draft.operand(shape)
    count = draft.choices.of((1, 2, 3, 8))
    draft.operand(shape[:1], "int32", _indices(shape[:1], count))
    name, function = draft.choices.of(tuple(_SEGMENTS.items()))
    text = f"{name} of {count} segments"

    def combined(x: jax.Array, indices: jax.Array) -> jax.Array:
        return function(x % 3, indices, num_segments=count)

    return _case(draft, text, combined) if name == "segment_sum" else draft.case(text, combined)


_SEGMENTS: dict[str, Callable[..., jax.Array]] = {
    "segment_sum": jax.ops.segment_sum,
    "segment_prod": jax.ops.segment_prod,
    "segment_max": jax.ops.segment_max,
}


def _indices(shape: tuple[int, ...], size: int) -> Array:
    """Return unordered indices into a dimension of this size, some repeated."""
    return (np.arange(np.prod(shape)) * 7 % 31 % size).reshape(shape)


def _case(draft: Draft, name: str, function: Callable[..., jax.Array]) -> Case:
    """Return the program of `function`, or of the gradient of a sum of squares of its results."""
    if draft.choices.of((False, True)):
        return draft.case(name, function)

    def loss(*operands: jax.Array) -> jax.Array:
        return (function(*operands) ** 2).sum()

    return draft.case(f"gradient of {name}", jax.grad(loss))


INDEXED = [take, take_elements, take_along_axis, put, segments]
