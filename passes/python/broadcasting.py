"""Broadcasts that NumPy's rules make unnecessary: numbers and arrays with fewer or smaller dimensions."""

from collections.abc import Set

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
        and any(
            operand is not value and not _could_broadcast(operand)
            for operand in use.operation.operands
            if shape(operand.type) == shape(value.type)
        )
        for use in value.uses
    )


def _is_splat(array: Array) -> bool:
    return array.size > 0 and (array.ndim == 0 or bool((array == array.flat[0]).all()))


def _could_broadcast(value: SSAValue) -> bool:
    """Return whether `value` could be left to NumPy's rules, and so does not determine the shape of a result."""
    if not isinstance(value, OpResult):
        return False
    if isinstance(value.op, BroadcastInDimOp):
        return True
    array = known_elements(value)
    return array is not None and _is_splat(array)


def indexed_source(op: BroadcastInDimOp, parameters: Set[SSAValue]) -> tuple[SSAValue, list[str]] | None:
    """Return the operand of a broadcast and the entries of an index after which NumPy's rules broadcast it.

    Dimensions of size 1 that were added before are added by the index. None if dimensions change their order.
    """
    source: SSAValue = op.operand
    dims = [*op.broadcast_dimensions.get_values()]
    while isinstance(source, OpResult) and source not in parameters:
        if isinstance(source.op, BroadcastInDimOp):
            inner = source.op.broadcast_dimensions.get_values()
            source, dims = source.op.operand, [dims[dim] for dim in inner]
        elif isinstance(source.op, ReshapeOp) and (kept := _without_ones(source.op)) is not None:
            source, dims = source.op.operand, [dims[dim] for dim in kept]
        else:
            break
    if sorted(dims) != dims:
        return None
    rank = len(shape(op.result.type))
    return source, [":" if dim in dims else "None" for dim in range(dims[0] if dims else rank, rank)]


def _without_ones(op: ReshapeOp) -> list[int] | None:
    """Return the dimensions of the operand in the result of a reshape that only adds dimensions of size 1."""
    before, after = shape(op.operand.type), shape(op.result.type)
    kept: list[int] = []
    for dim, size in enumerate(after):
        if len(kept) < len(before) and before[len(kept)] == size:
            kept.append(dim)
        elif size != 1:
            return None
    return kept if len(kept) == len(before) else None
