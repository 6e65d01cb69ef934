"""Sizes of dimensions: limits, texts in error messages, and upper bounds of dynamic dimensions.

A type with a bounded dimension is written `tensor<?x8xf32, #stablehlo.bounds<16, ?>>`. Types with dynamic or bounded
dimensions merge into the least or the most specific compatible type:

types                                        least specific                   most specific
tensor<4xf32>, tensor<?xf32>                 tensor<?xf32>                    tensor<4xf32>
tensor<4xf32>, tensor<?xf32, bounds<8>>      tensor<?xf32, bounds<8>>         tensor<4xf32>
tensor<?xf32, bounds<8>>, bounds<6>          tensor<?xf32, bounds<8>>         tensor<?xf32, bounds<6>>
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, NoneAttr, TensorType, TupleType
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import BoundsAttr

MAX_DIMENSIONS = 2**16
"""Attributes with an entry per dimension are rejected above this length, before the entries are expanded to a list."""
_MLIR_DYNAMIC = -(1 << 63)


def size_text(size: int) -> str:
    """Return a size as in MLIR's messages, where a dynamic one is -2^63."""
    return str(_MLIR_DYNAMIC if size == DYNAMIC_INDEX else size)


def sizes_text(sizes: Iterable[int]) -> str:
    """Return a comma-separated list of sizes, `4, 8`."""
    return ", ".join(map(size_text, sizes))


def bounds_of(type_: TensorType[Attribute]) -> tuple[int | None, ...]:
    """Return the bound of each dimension, None if it has none; an empty tuple for a tensor without bounds."""
    return type_.encoding.data if isinstance(type_.encoding, BoundsAttr) else ()


def bounded_type(
    element_type: Attribute, shape: Sequence[int], bounds: Sequence[int | None] = ()
) -> TensorType[Attribute]:
    """Build a tensor type with these bounds; without any bound it has no encoding."""
    bounded = any(bound is not None for bound in bounds)
    return TensorType(element_type, shape, BoundsAttr(tuple(bounds)) if bounded else NoneAttr())


class Dim(NamedTuple):
    """The size of a dimension, and the bound of a dynamic one."""

    size: int
    bound: int | None = None

    @property
    def is_static(self) -> bool:
        """True unless the size is dynamic."""
        return self.size != DYNAMIC_INDEX


Merge: TypeAlias = Callable[[int, Dim, Dim], Dim]
"""Merges two sizes of the dimension with this number. Raises VerifyException if they conflict."""


def least_specific(types: Sequence[Attribute]) -> Attribute:
    """Return the least specific type: a dimension is dynamic if it is in any of `types`.

    Raises:
        VerifyException: If the types conflict.
    """
    return _merge_tuples(types, _least_specific_dim)


def most_specific(types: Sequence[Attribute]) -> Attribute:
    """Return the most specific type: a dimension is static if it is in any of `types`.

    Raises:
        VerifyException: If the types conflict.
    """
    ranked: list[Attribute] = [type_ for type_ in types if isinstance(type_, TensorType)]
    return _merge_tuples(ranked or types, most_specific_dim)


def _same_size(dim: int, one: Dim, other: Dim) -> int:
    if one.is_static and other.is_static and one.size != other.size:
        raise VerifyException(f"Mismatched dimension sizes {one.size} and {other.size} in dimension {dim}")
    return max(one.size, other.size) if one.is_static != other.is_static else one.size


def _least_specific_dim(dim: int, one: Dim, other: Dim) -> Dim:
    if one.is_static and other.is_static:
        return Dim(_same_size(dim, one, other))
    limits = [side.size if side.is_static else side.bound for side in (one, other)]
    known = [limit for limit in limits if limit is not None]
    return Dim(DYNAMIC_INDEX, max(known) if len(known) == len(limits) else None)


def most_specific_dim(dim: int, one: Dim, other: Dim) -> Dim:
    """Return the most specific size of dimension `dim`. Raises VerifyException if the sizes conflict."""
    known = [side.bound for side in (one, other) if side.bound is not None]
    if not one.is_static and not other.is_static:
        return Dim(DYNAMIC_INDEX, min(known, default=None))
    size = _same_size(dim, one, other)
    if known and size > known[0]:
        raise VerifyException(f"Mismatched dimension size {size} and bound {known[0]} in dimension {dim}")
    return Dim(size)


def _merge_tuples(types: Sequence[Attribute], merge: Merge) -> Attribute:
    tuples = [type_.types.data for type_ in types if isinstance(type_, TupleType)]
    if not tuples:
        return _merge_tensors(types, merge)
    if len(tuples) != len(types):
        raise VerifyException("Mismatched type kinds: either all types must be tuples, or no types must be tuples")
    if len(set(map(len, tuples))) > 1:
        raise VerifyException("Mismatched tuple sizes: all tuple sizes must be the same")
    merged = [_merge_tensors(elements, merge) for elements in zip(*tuples, strict=True)]
    return TupleType(ArrayAttr(cast(Sequence[TypeAttribute], merged)))


def _merge_tensors(types: Sequence[Attribute], merge: Merge) -> Attribute:
    if not all(isinstance(type_, TensorType) for type_ in types):
        return types[0]
    first, *rest = cast(Sequence[TensorType[Attribute]], types)
    for type_ in rest:
        if type_.get_num_dims() != first.get_num_dims():
            raise VerifyException(f"Mismatched ranks of types{first.get_num_dims()} vs {type_.get_num_dims()}")

    def merge_dims(dims: list[Dim], type_: TensorType[Attribute]) -> list[Dim]:
        return [merge(dim, *pair) for dim, pair in enumerate(zip(dims, dims_of(type_), strict=True))]

    dims = reduce(merge_dims, rest, dims_of(first))
    if not bounds_of(first):  # as in MLIR, only the first type decides whether the result has bounds
        dims = [Dim(dim.size) for dim in dims]
    return tensor_like(first, dims)


def dims_of(type_: TensorType[Attribute]) -> list[Dim]:
    """Return the sizes and bounds of a tensor type's dimensions."""
    sizes = type_.get_shape()
    return list(map(Dim, sizes, bounds_of(type_) or [None] * len(sizes)))


def tensor_like(type_: TensorType[Attribute], dims: Sequence[Dim]) -> TensorType[Attribute]:
    """Return a tensor type with its dimensions replaced; an encoding other than bounds is kept."""
    sizes, bounds = [dim.size for dim in dims], [dim.bound for dim in dims]
    if bounds_of(type_) or any(bound is not None for bound in bounds):
        return bounded_type(type_.element_type, sizes, bounds)
    return TensorType(type_.element_type, sizes, type_.encoding)
