"""Random keys as the arrays of integers that they are made of, which is how programs pass them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

Keys = tuple[tuple[int, str, int, int], ...]
"""The number, the name of the implementation, the rank, and the number of integers of each key array among others."""


def is_key(array: Any) -> bool:
    """Return whether the elements of an array, or of a type, are random keys."""
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def keys_among(arrays: Sequence[Any]) -> Keys:
    """Return which of `arrays`, or of types, are random keys."""
    return tuple(
        (index, _implementation(array), len(array.shape), jax.eval_shape(jax.random.key_data, array).shape[-1])
        for index, array in enumerate(arrays)
        if is_key(array)
    )


def with_data(arrays: Sequence[Any], keys: Keys) -> tuple[Any, ...]:
    """Return `arrays` with the data of keys instead of keys."""
    changed = list(arrays)
    for index, *_ in keys:
        changed[index] = jax.random.key_data(arrays[index])
    return tuple(changed)


def with_keys(arrays: Sequence[Any], keys: Keys) -> tuple[Any, ...]:
    """Return `arrays` with keys instead of their data."""
    changed = list(arrays)
    for index, implementation, *_ in keys:
        changed[index] = jax.random.wrap_key_data(arrays[index], impl=implementation)
    return tuple(changed)


def _implementation(array: Any) -> str:
    """The name by which `jax.random.key` knows the implementation of a type."""
    names: list[str] = []

    def note(key: Any) -> Any:
        names.append(str(jax.random.key_impl(key)))
        return key

    jax.eval_shape(note, jax.ShapeDtypeStruct(array.shape, array.dtype))
    return names[0]
