"""Operations that create and rearrange arrays."""

from collections.abc import Sequence

from xdsl.ir import Operation

from sdy import stablehlo
from sdy.dialect.constants import constant_value
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import Expression, Item, Precedence, call, index, list_of, method, sizes, tuple_of
from sdy.passes.python.expressions import attribute as attribute_of
from sdy.passes.python.literals import dtype_of, dtype_text, elements
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.shape import BitcastConvertOp


def _constant(op: Operation, scope: Scope) -> Expression:
    value = constant_value(op.results[0])
    assert value is not None
    return scope.writer.constant(elements(value))


def _iota(op: stablehlo.IotaOp, scope: Scope) -> Expression:
    dtype, dims = dtype_text(dtype_of(op.output)), shape(op.output.type)
    if len(dims) == 1:
        return call("jnp.arange", str(dims[0]), dtype=dtype)
    return call("lax.broadcasted_iota", dtype, sizes(dims), str(op.iota_dimension.value.data))


def _broadcast(op: stablehlo.BroadcastInDimOp, scope: Scope) -> Expression:
    before, after = shape(op.operand.type), shape(op.result.type)
    dims = op.broadcast_dimensions.get_values()
    if not before:
        return call("jnp.full", sizes(after), scope.of(op.operand))
    if [after[dim] for dim in dims] == [*before] and sorted(dims) == [*dims] and _count(before) == _count(after):
        return reshaped(scope.of(op.operand), before, after)
    if [*dims] == [*range(len(after) - len(before), len(after))]:
        return call("jnp.broadcast_to", scope.of(op.operand), sizes(after))
    return call("lax.broadcast_in_dim", scope.of(op.operand), sizes(after), sizes(dims))


def _reshape(op: stablehlo.ReshapeOp, scope: Scope) -> Expression:
    source = scope.source(op.operand)
    return reshaped(scope.of(source), shape(source.type), shape(op.result.type))


def reshaped(value: Expression, before: Sequence[int], after: Sequence[int]) -> Expression:
    """Return `value` with the shape `after`."""
    if tuple(before) == tuple(after):
        return value
    return method(value, "reshape", *(map(str, after) if after else ("()",)))


def _count(dims: Sequence[int]) -> int:
    count = 1
    for size in dims:
        count *= size
    return count


def _transpose(op: stablehlo.TransposeOp, scope: Scope) -> Expression:
    order = [*op.permutation.get_values()]
    value = scope.of(op.operand)
    if order == [*range(len(order))]:
        return value
    if order == [1, 0]:
        return attribute_of(value, "T")
    return method(value, "transpose", *map(str, order))


def _reverse(op: stablehlo.ReverseOp, scope: Scope) -> Expression:
    return call("lax.rev", scope.of(op.operand), sizes(op.dimensions.get_values()))


def _concatenate(op: stablehlo.ConcatenateOp, scope: Scope) -> Expression:
    values, dim = [*map(scope.of, op.inputs)], op.dimension.value.data
    if len(values) == 1:
        return values[0]
    return call("jnp.concatenate", list_of(values), **({"axis": str(dim)} if dim else {}))


def _slice(op: stablehlo.SliceOp, scope: Scope) -> Expression:
    ranges = zip(shape(op.operand.type), op.ranges(), strict=True)
    entries = [_range_text(size, *bounds) for size, bounds in ranges]
    while entries and entries[-1] == ":":
        entries.pop()
    value = scope.of(op.operand)
    return index(value, *entries) if entries else value


def _range_text(size: int, start: int, stop: int, step: int) -> str:
    text = f"{start or ''}:{stop if stop < size else ''}"
    return text if step == 1 else f"{text}:{step}"


def _pad(op: stablehlo.PadOp, scope: Scope) -> Expression:
    columns = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    rows = zip(*(column.get_values() for column in columns), strict=True)
    return call("lax.pad", scope.of(op.operand), scope.of(op.padding_value), tuple_of(map(sizes, rows)))


def _dynamic_slice(op: stablehlo.DynamicSliceOp, scope: Scope) -> Expression:
    before, lengths = shape(op.operand.type), [*op.slice_sizes.get_values()]
    value, starts = scope.of(op.operand), [*map(scope.of, op.start_indices)]
    moved = [dim for dim, length in enumerate(lengths) if length != before[dim]]
    if len(moved) == 1:
        along: dict[str, Item] = {"axis": str(moved[0])} if moved[0] else {}
        start, length = starts[moved[0]], str(lengths[moved[0]])
        return call("lax.dynamic_slice_in_dim", value, start, length, **along, **_sign(op, scope))
    return call("lax.dynamic_slice", value, tuple_of(starts), sizes(lengths), **_sign(op, scope))


def _sign(op: stablehlo.DynamicSliceOp | stablehlo.DynamicUpdateSliceOp, scope: Scope) -> dict[str, Item]:
    """Return the argument that forbids to count from the end, unless no index is negative."""
    ranges = [scope.writer.ranges.get(start) for start in op.start_indices]
    return {} if all(known is not None and known.low >= 0 for known in ranges) else {"allow_negative_indices": "False"}


def _dynamic_update_slice(op: stablehlo.DynamicUpdateSliceOp, scope: Scope) -> Expression:
    before, lengths = shape(op.operand.type), shape(op.update.type)
    value, update, starts = scope.of(op.operand), scope.of(op.update), [*map(scope.of, op.start_indices)]
    moved = [dim for dim, length in enumerate(lengths) if length != before[dim]]
    if len(moved) == 1:
        function, dim = "lax.dynamic_update_slice_in_dim", str(moved[0])
        return call(function, value, update, starts[moved[0]], dim, **_sign(op, scope))
    return call("lax.dynamic_update_slice", value, update, tuple_of(starts), **_sign(op, scope))


def _bitcast(op: BitcastConvertOp, scope: Scope) -> Expression:
    return call("lax.bitcast_convert_type", scope.of(op.operand), dtype_text(dtype_of(op.result)))


def _size(op: stablehlo.GetDimensionSizeOp, scope: Scope) -> Expression:
    size = shape(op.operand.type)[op.dimension.value.data]
    return call("jnp.int32", Expression(str(size), Precedence.ATOM))


SHAPING: dict[type[Operation], Printer] = {
    BitcastConvertOp: _bitcast,
    stablehlo.BroadcastInDimOp: _broadcast,
    stablehlo.ConcatenateOp: _concatenate,
    stablehlo.ConstantOp: _constant,
    stablehlo.DynamicSliceOp: _dynamic_slice,
    stablehlo.DynamicUpdateSliceOp: _dynamic_update_slice,
    stablehlo.GetDimensionSizeOp: _size,
    stablehlo.IotaOp: _iota,
    stablehlo.PadOp: _pad,
    stablehlo.ReshapeOp: _reshape,
    stablehlo.ReverseOp: _reverse,
    stablehlo.SliceOp: _slice,
    stablehlo.TransposeOp: _transpose,
}
