"""Result types of implicit broadcasting.

tensor<4x1xf32>, tensor<8xf32>             tensor<4x8xf32>
tensor<?xf32>, tensor<8xf32>               tensor<8xf32>          the dynamic size must be 1 or 8 at run time
tensor<?xf32, bounds<8>>, tensor<1xf32>    tensor<?xf32, bounds<8>>
tensor<4xf32>, tensor<8xf32>               tensor<*xf32>          incompatible
"""

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest
from typing import TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, UnrankedTensorType
from xdsl.ir import Attribute

from sdy.stablehlo.types.sizes import Dim, bounded_type, bounds_of, dims_of

T = TypeVar("T")


def numpy_broadcast(types: Sequence[Attribute], element_type: Attribute) -> Attribute:
    """Return the type to which NumPy's rules broadcast `types`, with the trailing dimensions aligned."""
    tensors = _ranked(types)
    if tensors is None:
        return UnrankedTensorType(element_type)
    if all(tensor.has_static_shape() or bounds_of(tensor) for tensor in tensors):
        first: list[Dim] | None
        first, *rest = map(dims_of, tensors)
        dims = reduce(_bounded_broadcast, rest, first)
        if dims is None:
            return UnrankedTensorType(element_type)
        return bounded_type(element_type, [dim.size for dim in dims], [dim.bound for dim in dims])
    shape: Sequence[int] | None
    shape, *shapes = (tensor.get_shape() for tensor in tensors)
    shape = reduce(_broadcast, shapes, shape)
    return UnrankedTensorType(element_type) if shape is None else TensorType(element_type, shape)


def broadcast_along(types: Sequence[Attribute], dims: Sequence[int], element_type: Attribute) -> Attribute:
    """Return the type to which two tensors are broadcast, where the smaller has the dimensions `dims` of the larger."""
    tensors = _ranked(types)
    if tensors is None:
        return UnrankedTensorType(element_type)
    lhs, rhs = (tensor.get_shape() for tensor in tensors)
    small, large = (rhs, lhs) if len(lhs) > len(rhs) else (lhs, rhs)
    if len(dims) != len(small) or not all(0 <= dim < len(large) for dim in dims):
        return UnrankedTensorType(element_type)
    sizes = _broadcast(small, [large[dim] for dim in dims])
    if sizes is None:
        return UnrankedTensorType(element_type)
    replaced = dict(zip(dims, sizes, strict=True))
    return TensorType(element_type, [replaced.get(dim, size) for dim, size in enumerate(large)])


def _ranked(types: Sequence[Attribute]) -> list[TensorType[Attribute]] | None:
    if not all(isinstance(type_, TensorType) for type_ in types):
        return None
    return [cast(TensorType[Attribute], type_) for type_ in types]


def _broadcast(shape: Sequence[int] | None, other: Sequence[int]) -> list[int] | None:
    """Broadcast two shapes; a dynamic size stays dynamic against 1 or another dynamic size."""
    if shape is None:
        return None
    sizes = [_broadcast_size(*pair) for pair in _aligned(shape, other, 1)]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def _broadcast_size(size: int, other: int) -> int | None:
    if DYNAMIC_INDEX in (size, other):
        if max(size, other) > 1:
            return max(size, other)
        return other if size == 1 else size if other == 1 else DYNAMIC_INDEX
    if size == other or other == 1:
        return size
    return other if size == 1 else None


def _bounded_broadcast(dims: Sequence[Dim] | None, others: Sequence[Dim]) -> list[Dim] | None:
    """Broadcast bounded dimensions; a dynamic one is compatible with the same bound and with 1."""
    if dims is None:
        return None
    merged: list[Dim] = []
    for dim, other in _aligned(dims, others, Dim(1)):
        if 1 in (limit := (_limit(dim), _limit(other))):
            merged.append(other if limit[0] == 1 else dim)
        elif limit[0] == limit[1] and dim.is_static == other.is_static:
            merged.append(dim)
        else:
            return None
    return merged


def _limit(dim: Dim) -> int | None:
    return dim.size if dim.is_static else dim.bound


def _aligned(items: Sequence[T], others: Sequence[T], missing: T) -> list[tuple[T, T]]:
    """Pair the items of two sequences from their ends, padded with `missing`."""
    pairs = zip_longest(reversed(items), reversed(others), fillvalue=missing)
    return list(pairs)[::-1]
