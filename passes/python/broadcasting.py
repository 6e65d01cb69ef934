"""Broadcasts that NumPy's rules make unnecessary: numbers and arrays with fewer or smaller dimensions."""

from collections.abc import Iterable, Sequence, Set

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.ir.shapes import shape
from sdy.passes.python.literals import Array, known_elements
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.shape import ReshapeOp


def is_implicit(value: SSAValue, parameters: Set[SSAValue], broadcasting: Set[type[Operation]]) -> bool:
    """Return whether `value` is a constant or a broadcast that all of its uses can leave to NumPy's rules.

    Args:
        value: The value.
        parameters: The values that are parameters of the function.
        broadcasting: The operations whose operands NumPy's rules broadcast.
    """
    if value in parameters:
        return False
    if (array := known_elements(value)) is not None:
        return _is_splat(array)
    if not isinstance(value, OpResult) or not isinstance(value.op, BroadcastInDimOp):
        return False
    return indexed_source(value.op, parameters) is not None and all(
        type(use.operation) in broadcasting
        and cover(
            [operand for operand in use.operation.operands if shape(operand.type) == shape(value.type)], parameters
        )
        for use in value.uses
    )


def cover(values: Sequence[SSAValue], parameters: Set[SSAValue]) -> bool:
    """Return whether values of one shape have this shape by NumPy's rules if their broadcasts are left to these."""
    return {dim for value in values for dim in _covered(value, parameters)} == {*range(len(shape(values[0].type)))}


def _is_splat(array: Array) -> bool:
    return array.size > 0 and (array.ndim == 0 or bool((array == array.flat[0]).all()))


def _covered(value: SSAValue, parameters: Set[SSAValue]) -> Iterable[int]:
    """Return the dimensions whose size `value` has before it is broadcast."""
    dims = shape(value.type)
    array = known_elements(value)
    if array is not None and _is_splat(array):
        return [dim for dim, size in enumerate(dims) if size == 1]
    if value in parameters or not isinstance(value, OpResult) or not isinstance(value.op, BroadcastInDimOp):
        return range(len(dims))
    source, places = _source(value.op, parameters)
    if sorted(places) != places:
        return range(len(dims))
    own = [place for place, size in zip(places, shape(source.type), strict=True) if size == dims[place]]
    return [*own, *(dim for dim, size in enumerate(dims) if size == 1)]


def indexed_source(op: BroadcastInDimOp, parameters: Set[SSAValue]) -> tuple[SSAValue, list[str]] | None:
    """Return the operand of a broadcast and the entries of an index after which NumPy's rules broadcast it.

    Dimensions of size 1 that were added before are added by the index. None if dimensions change their order.
    """
    source, dims = _source(op, parameters)
    if sorted(dims) != dims:
        return None
    rank = len(shape(op.result.type))
    entries = [":" if dim in dims else "None" for dim in range(dims[0] if dims else rank, rank)]
    while entries and entries[-1] == ":":
        entries.pop()
    return source, entries


def _source(op: BroadcastInDimOp, parameters: Set[SSAValue]) -> tuple[SSAValue, list[int]]:
    """Return the value that a broadcast expands, before others and reshapes that add dimensions, and its dimensions."""
    source: SSAValue = op.operand
    dims = [*op.broadcast_dimensions.get_values()]
    while isinstance(source, OpResult) and source not in parameters:
        if isinstance(source.op, BroadcastInDimOp):
            inner = source.op.broadcast_dimensions.get_values()
            source, dims = source.op.operand, [dims[dim] for dim in inner]
        elif isinstance(source.op, ReshapeOp) and (kept := kept_dims(*_shapes(source.op))) is not None:
            source, dims = source.op.operand, [dims[dim] for dim in kept]
        else:
            break
    return source, dims


def kept_dims(before: Sequence[int], after: Sequence[int]) -> list[int] | None:
    """Return which dimensions of `after` are those of `before`, if all others have size 1; else None."""
    kept: list[int] = []
    for dim, size in enumerate(after):
        if len(kept) < len(before) and before[len(kept)] == size:
            kept.append(dim)
        elif size != 1:
            return None
    return kept if len(kept) == len(before) else None


def _shapes(op: ReshapeOp) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return shape(op.operand.type), shape(op.result.type)
