"""Values that only move: reshards, reshapes, transposes, rolls."""

import math

import jax.numpy as jnp
from jax import lax

from dearer.case import Case, Draft


def reshard(draft: Draft) -> Case:
    """A value from one layout to another."""
    draft.operand(draft.shape())
    return draft.case("reshard", lambda x: x * 2)


def reshape(draft: Draft) -> Case:
    """A reshape to another factorization of the number of elements."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    count, result = math.prod(shape), list[int]()
    for _ in range(draft.choices.of(range(1, 4)) - 1):
        result.append(draft.choices.of([size for size in range(1, count + 1) if count % size == 0]))
        count //= result[-1]
    return draft.case("reshape", lambda x: x.reshape(*result, count) * 2)


def transpose(draft: Draft) -> Case:
    """A permutation of the dimensions."""
    shape = draft.shape(2, 3)
    draft.operand(shape)
    left = list(range(len(shape)))
    order = [left.pop(draft.choices.below(len(left))) for _ in shape]
    return draft.case(f"transpose by {order}", lambda x: x.transpose(order) * 2)


def roll(draft: Draft) -> Case:
    """A rotation along one dimension."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    dim = draft.choices.below(len(shape))
    shift = draft.choices.of(range(-shape[dim], shape[dim] + 1))
    return draft.case(f"roll by {shift} along {dim}", lambda x: jnp.roll(x, shift, dim))


def cast_up(draft: Draft) -> Case:
    """A cast to a wider type, and arithmetic with a constant behind it."""
    narrow, wide = draft.choices.of(
        [("int8", "int32"), ("bool", "float32"), ("float16", "float32"), ("int8", "float32")]
    )
    draft.operand(draft.shape(), narrow)
    factor = draft.choices.of((1, 3))
    return draft.case(f"{narrow} to {wide}, times {factor}", lambda x: lax.convert_element_type(x, wide) * factor)


MOVES = [reshard, reshape, transpose, roll, cast_up]
