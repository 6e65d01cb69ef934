"""What verifiers check about dimension numbers, which connect the dimensions of several tensors, and about counts."""

from collections.abc import Sequence
from dataclasses import fields

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers


def verify_positive(name: str, number: int) -> None:
    """Refuse a count of groups or parts that is not positive."""
    if number <= 0:
        constraint = "64-bit signless integer attribute whose value is positive"
        raise VerifyException(f"attribute '{name}' failed to satisfy constraint: {constraint}")


def verify_dims(name: str, dims: Sequence[int], rank: int) -> None:
    """Refuse dimensions outside of a tensor of `rank`, or listed twice."""
    for dim in dims:
        if not 0 <= dim < rank:
            raise VerifyException(f"Expects each element of {name} to be in range [0, {rank}). got: {dim}.")
    if len(set(dims)) != len(dims):
        raise VerifyException(f"expects {name} to not repeat, got: {list(dims)}")


def verify_slices(
    numbers: GatherDimensionNumbers | ScatterDimensionNumbers, shape: Sequence[int], indices: Sequence[int]
) -> int:
    """Refuse the dimension numbers of a gather or scatter that contradict the shapes of its input and its indices.

    Returns the rank of the slices that are gathered or scattered.
    """
    # Both kinds of numbers have the same fields in the same order, under names of their own.
    names = [field.name for field in fields(numbers)]
    window, dropped, batching, indices_batching, index_map = (getattr(numbers, name) for name in names[:5])
    vector = numbers.index_vector_dim
    sizes = [len(window), len(dropped), len(batching)]
    if sum(sizes) != len(shape):
        parts = " plus ".join(f"{name} size ({size})" for name, size in zip(names, sizes, strict=False))
        raise VerifyException(f"{parts} is not equal to operand rank ({len(shape)})")
    if not 0 <= vector <= len(indices):
        raise VerifyException(f"Expects index_vector_dim to be in range [0, {len(indices)}]. got: {vector}.")
    vector_size = indices[vector] if vector < len(indices) else 1
    if vector_size not in (DYNAMIC_INDEX, len(index_map)):
        raise VerifyException(
            f"{names[4]} size ({len(index_map)}) is not equal to size of index dimension ({vector}) of the indices "
            f"({vector_size})"
        )
    slices_rank = len(window) + len(indices) - (vector < len(indices))
    verify_dims(names[0], window, slices_rank)
    verify_dims(names[1], dropped, len(shape))
    verify_dims(f"{names[1]} and {names[2]}", [*dropped, *batching], len(shape))
    verify_dims(f"{names[4]} and {names[2]}", [*index_map, *batching], len(shape))
    verify_dims(names[3], indices_batching, len(indices))
    if vector in indices_batching:
        raise VerifyException(f"expects {names[3]} not to include index_vector_dim {vector}")
    if len(batching) != len(indices_batching):
        raise VerifyException(f"{names[2]} and {names[3]} should have the same size")
    for dim, indices_dim in zip(batching, indices_batching, strict=True):
        if shape[dim] != indices[indices_dim] and DYNAMIC_INDEX not in (shape[dim], indices[indices_dim]):
            raise VerifyException(
                f"{names[2]} and {names[3]} must have compatible sizes, but got {shape[dim]} and {indices[indices_dim]}"
            )
    for name, dims in ((names[0], window), (names[1], dropped), (names[2], batching)):
        if list(dims) != sorted(dims):
            raise VerifyException(f"expects {name} to be sorted, got: {list(dims)}")
    return slices_rank
