"""Conversion of random key arrays to and from their integer data, which is how programs pass them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

Keys = tuple[tuple[int, str, int, int], ...]
"""The index, the implementation name, the rank and the number of integers per key of each key array in a list."""


def is_key(array: Any) -> bool:
    """Return true if the elements of an array or of a type are random keys."""
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def keys_among(arrays: Sequence[Any]) -> Keys:
    """Return the random keys among `arrays`, or among types."""
    return tuple(
        (index, _implementation(array), len(array.shape), jax.eval_shape(jax.random.key_data, array).shape[-1])
        for index, array in enumerate(arrays)
        if is_key(array)
    )


def with_data(arrays: Sequence[Any], keys: Keys) -> tuple[Any, ...]:
    """Replace the keys in `arrays` by their integer data."""
    changed = list(arrays)
    for index, *_ in keys:
        changed[index] = jax.random.key_data(arrays[index])
    return tuple(changed)


def with_keys(arrays: Sequence[Any], keys: Keys) -> tuple[Any, ...]:
    """Replace the integer data of `keys` in `arrays` by the keys."""
    changed = list(arrays)
    for index, implementation, *_ in keys:
        changed[index] = jax.random.wrap_key_data(arrays[index], impl=implementation)
    return tuple(changed)


def _implementation(array: Any) -> str:
    """Return the implementation name of a key type, as `jax.random.key` takes it."""
    names: list[str] = []

    def record(key: Any) -> Any:
        names.append(str(jax.random.key_impl(key)))
        return key

    jax.eval_shape(record, jax.ShapeDtypeStruct(array.shape, array.dtype))
    return names[0]
