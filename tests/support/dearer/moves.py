"""Programs that only move values: reshards, reshapes, transposes, rolls."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from dearer.case import Case, Draft


def reshard(draft: Draft) -> Case:
    """Reshard a value."""
    draft.operand(draft.shape())
    return draft.case("reshard", lambda x: x * 2)


def reshape(draft: Draft) -> Case:
    """Reshape to another factorization of the number of elements."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    count, result = math.prod(shape), list[int]()
    for _ in range(draft.choices.of(range(1, 4)) - 1):
        result.append(draft.choices.of([size for size in range(1, count + 1) if count % size == 0]))
        count //= result[-1]
    return draft.case("reshape", lambda x: x.reshape(*result, count) * 2)


def transpose(draft: Draft) -> Case:
    """Permute the dimensions."""
    shape = draft.shape(2, 3)
    draft.operand(shape)
    left = list(range(len(shape)))
    order = [left.pop(draft.choices.below(len(left))) for _ in shape]
    return draft.case(f"transpose by {order}", lambda x: x.transpose(order) * 2)


def roll(draft: Draft) -> Case:
    """Rotate along one dimension."""
    shape = draft.shape(1, 3)
    draft.operand(shape)
    dim = draft.choices.below(len(shape))
    shift = draft.choices.of(range(-shape[dim], shape[dim] + 1))
    return draft.case(f"roll by {shift} along {dim}", lambda x: jnp.roll(x, shift, dim))


def cast_up(draft: Draft) -> Case:
    """Cast to a wider type, followed by operations that a reshard may be moved in front of."""
    narrow, wide = draft.choices.of(
        [("int8", "int32"), ("bool", "float32"), ("float16", "float32"), ("int8", "float32")]
    )
    shape = draft.shape()
    draft.operand(shape, narrow)
    behind = draft.choices.of(["nothing", "a product by a constant", "a product by a vector", "a transpose"])

    def cast(x: jax.Array) -> jax.Array:
        value = lax.convert_element_type(x, wide)
        match behind:
            case "a product by a constant":
                return value * 3
            case "a product by a vector":
                return value * (jnp.arange(shape[-1]) + 1)
            case "a transpose":
                return value.T
            case _:
                return value

    return draft.case(f"{narrow} to {wide}, then {behind}", cast)


MOVES = [reshard, reshape, transpose, roll, cast_up]
