"""Operations that change the size of a dimension: slices, pads, concatenations, and sequences of them."""

import jax
import jax.numpy as jnp
from jax import lax

from dearer.case import Case, Draft


def concatenate(draft: Draft) -> Case:
    """Concatenate two to four tensors, possibly after zeros."""
    sizes = [draft.size() for _ in range(draft.choices.of((2, 3, 4)))]
    for size in sizes:
        draft.operand((size, 8))
    zeros = draft.choices.of((0, 0, 1, 3))

    def function(*tensors: jax.Array) -> jax.Array:
        return jnp.concatenate([*([jnp.zeros((zeros, 8))] if zeros else []), *tensors])

    return draft.case(f"concatenation behind {zeros} zeros", function)


def slice_rows(draft: Draft) -> Case:
    """Slice rows statically, or dynamically at a constant start. XLA's partitioner refuses some strided slices."""
    size = draft.size(2)
    draft.operand((size, 8))
    start = draft.choices.below(size - 1)
    length = draft.choices.of(range(1, size - start + 1))
    if draft.choices.of((False, True)):
        text = f"dynamic slice of {length} from {start}"
        return draft.case(text, lambda x: lax.dynamic_slice_in_dim(x, start, length) * 2)
    return draft.case(f"slice [{start}:{start + length}]", lambda x: x[start : start + length] * 2)


def chunks(draft: Draft) -> Case:
    """Multiply the equal chunks of a dimension, or differentiate that."""
    count, size = draft.choices.of((2, 3, 4)), draft.size()
    draft.operand((8, count * size))
    is_gradient = draft.choices.of((False, True))

    def product(x: jax.Array) -> jax.Array:
        first, *others = jnp.split(x, count, axis=1)
        for chunk in others:
            first = jnp.sin(first) * chunk
        return first

    text = f"{'gradient of ' if is_gradient else ''}{count} chunks of {size}"
    return draft.case(text, jax.grad(lambda x: product(x).sum()) if is_gradient else product)


def pad(draft: Draft) -> Case:
    """Pad with zeros or ones. XLA's partitioner refuses negative padding with interior padding."""
    size = draft.size()
    draft.operand((size, 8))
    low, high, interior = (draft.choices.of(range(4)) for _ in range(3))
    if draft.choices.of((False, True)):
        low, high, interior = -min(low, size - 1), high + low, 0
    value = draft.choices.of((0.0, 1.0))
    return draft.case(
        f"pad by {low}, {high}, {interior} with {value}",
        lambda x: lax.pad(x, value, ((low, high, interior), (0, 0, 0))) * 2,
    )


def shift(draft: Draft) -> Case:
    """Sum shifted slices of a pad, or shift by a concatenation, or differentiate either."""
    size = draft.size(2)
    draft.operand((size, 8))
    count = draft.choices.of(range(1, min(4, size)))
    is_pad, is_gradient = draft.choices.of((False, True)), draft.choices.of((False, True))

    def shifted(x: jax.Array) -> jax.Array:
        if is_pad:
            padded = jnp.pad(x, ((count, 0), (0, 0)))
            return sum((padded[first : first + size] for first in range(1, count)), padded[:size])
        return jnp.concatenate([jnp.zeros((count, 8)), x[:-count]])

    text = f"{'gradient of ' if is_gradient else ''}{'shifts of a pad' if is_pad else 'shift'} by {count}"
    return draft.case(text, jax.grad(lambda x: (shifted(x) * x).sum()) if is_gradient else shifted)


def difference(draft: Draft) -> Case:
    """Subtract rows that are one or two apart."""
    size = draft.size(3)
    draft.operand((size, 8))
    apart = draft.choices.of((1, 2))
    return draft.case(f"difference over {apart}", lambda x: x[apart:] - x[:-apart])


RESIZES = [concatenate, slice_rows, chunks, pad, shift, difference]
