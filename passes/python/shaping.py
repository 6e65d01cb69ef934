"""Operations that create and rearrange arrays."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from sdy import stablehlo
from sdy.dialect.constants import constant_number, constant_value
from sdy.ir.shapes import shape
from sdy.passes.python.broadcasting import kept_dims
from sdy.passes.python.expressions import Expression, Item, Precedence, call, index, list_of, method, sizes, tuple_of
from sdy.passes.python.expressions import attribute as attribute_of
from sdy.passes.python.literals import dtype_of, dtype_text, elements, unconverted
from sdy.passes.python.products import order_of_product
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.attributes.enums import ComparisonDirection
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
    source, after = scope.source(op.operand), shape(op.result.type)
    slice_ = scope.definition(source)
    if isinstance(slice_, stablehlo.SliceOp):
        lengths = shape(source.type)
        entries = _entries(slice_, numbers=True)
        kept = [length for length, entry in zip(lengths, entries, strict=True) if not entry.isdecimal()]
        if len(kept) < len(lengths) and kept_dims(kept, after) is not None:
            return reshaped(_indexed(scope.of(slice_.operand), entries), kept, after)
    return reshaped(scope.of(source), shape(source.type), after)


def reshaped(value: Expression, before: Sequence[int], after: Sequence[int]) -> Expression:
    """Return `value` with the shape `after`."""
    if tuple(before) == tuple(after):
        return value
    kept = kept_dims(before, after) if before else None
    if kept is not None:
        return _indexed(value, [":" if dim in kept else "None" for dim in range(len(after))])
    return method(value, "reshape", *(map(str, after) if after else ("()",)))


def _count(dims: Sequence[int]) -> int:
    count = 1
    for size in dims:
        count *= size
    return count


def _transpose(op: stablehlo.TransposeOp, scope: Scope) -> Expression:
    order = [*op.permutation.get_values()]
    value = scope.of(op.operand)
    if order == [*range(len(order))] or order_of_product(op.operand, scope) is not None:
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
    return _indexed(scope.of(op.operand), _entries(op))


def _entries(op: stablehlo.SliceOp, *, numbers: bool = False) -> list[str]:
    """Return the entries of the index that a slice is, with numbers for parts of length 1 if `numbers`."""
    entries: list[str] = []
    for size, (start, stop, step) in zip(shape(op.operand.type), op.ranges(), strict=True):
        is_number = numbers and start + step >= stop > start and size > 1
        entries.append(str(start) if is_number else _range_text(size, start, stop, step))
    return entries


def _indexed(value: Expression, entries: Sequence[str]) -> Expression:
    """Return `value[entries]` without the colons at the end."""
    count = max((number for number, entry in enumerate(entries, 1) if entry != ":"), default=0)
    return index(value, *entries[:count]) if count else value


def _range_text(size: int, start: int, stop: int, step: int) -> str:
    text = f"{start or ''}:{stop if stop < size else ''}"
    return text if step == 1 else f"{text}:{step}"


def _pad(op: stablehlo.PadOp, scope: Scope) -> Expression:
    if op.result.type == op.operand.type and not any(op.edge_padding_low.get_values()):
        return scope.of(op.operand)
    columns = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    rows = zip(*(column.get_values() for column in columns), strict=True)
    return call("lax.pad", scope.of(op.operand), scope.of(op.padding_value), tuple_of(map(sizes, rows)))


def _dynamic_slice(op: stablehlo.DynamicSliceOp, scope: Scope) -> Expression:
    before, lengths = shape(op.operand.type), [*op.slice_sizes.get_values()]
    value, (starts, sign) = scope.of(op.operand), _starts(op, scope)
    moved = [dim for dim, length in enumerate(lengths) if length != before[dim]]
    if len(moved) == 1:
        along: dict[str, Item] = {"axis": str(moved[0])} if moved[0] else {}
        return call("lax.dynamic_slice_in_dim", value, starts[moved[0]], str(lengths[moved[0]]), **along, **sign)
    return call("lax.dynamic_slice", value, tuple_of(starts), sizes(lengths), **sign)


def _dynamic_update_slice(op: stablehlo.DynamicUpdateSliceOp, scope: Scope) -> Expression:
    before, lengths = shape(op.operand.type), shape(op.update.type)
    value, update, (starts, sign) = scope.of(op.operand), scope.of(op.update), _starts(op, scope)
    moved = [dim for dim, length in enumerate(lengths) if length != before[dim]]
    if len(moved) == 1:
        return call("lax.dynamic_update_slice_in_dim", value, update, starts[moved[0]], str(moved[0]), **sign)
    return call("lax.dynamic_update_slice", value, update, tuple_of(starts), **sign)


def _starts(
    op: stablehlo.DynamicSliceOp | stablehlo.DynamicUpdateSliceOp, scope: Scope
) -> tuple[list[Expression], dict[str, Item]]:
    """Return the start indices, and the argument that forbids to count from the end, unless that is what they do."""
    sizes_ = shape(op.operand.type)
    from_end = [_from_end(start, size, scope) for start, size in zip(op.start_indices, sizes_, strict=True)]
    ranges = [scope.writer.ranges.get(start) for start in op.start_indices]
    is_known = [known is not None and known.low >= 0 for known in ranges]
    if all(known or start is not None for known, start in zip(is_known, from_end, strict=True)):
        return [scope.of(start or own) for start, own in zip(from_end, op.start_indices, strict=True)], {}
    return [*map(scope.of, op.start_indices)], {"allow_negative_indices": "False"}


def _from_end(start: SSAValue, size: int, scope: Scope) -> SSAValue | None:
    """Return the index that `start` is with `size` added if it is negative, as JAX counts from the end; else None."""
    select = scope.definition(start)
    if not isinstance(select, stablehlo.SelectOp):
        return None
    index_, test, moved = unconverted(select.on_false), scope.definition(select.pred), scope.definition(select.on_true)
    is_test = (
        isinstance(test, stablehlo.CompareOp)
        and test.comparison_direction.data is ComparisonDirection.LT
        and unconverted(test.lhs) is index_
        and constant_number(test.rhs) == 0
    )
    is_moved = (
        isinstance(moved, stablehlo.AddOp) and unconverted(moved.lhs) is index_ and constant_number(moved.rhs) == size
    )
    return index_ if is_test and is_moved else None


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
