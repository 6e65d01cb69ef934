"""Gather and scatter."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, SSAValue

from sdy import stablehlo
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import Expression, Item, attribute, call, index, method, sizes
from sdy.passes.python.literals import dtype_of, holds
from sdy.passes.python.reductions import REDUCERS
from sdy.passes.python.scope import Printer, Scope
from sdy.passes.python.shaping import reshaped
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.control_flow import ReturnOp

_SCATTERS: dict[type[Operation], tuple[str, str]] = {
    ReturnOp: ("lax.scatter", "set"),
    stablehlo.AddOp: ("lax.scatter_add", "add"),
    stablehlo.MaxOp: ("lax.scatter_max", "max"),
    stablehlo.MinOp: ("lax.scatter_min", "min"),
    stablehlo.MulOp: ("lax.scatter_mul", "multiply"),
    stablehlo.SubtractOp: ("lax.scatter_sub", "subtract"),
}
"""The function of a scatter, and the method of `x.at[...]`, by the operation that combines elements."""


def _indices(value: Expression, dims: tuple[int, ...], vector: int) -> Expression:
    """Return the indices with their vectors along the last dimension, as JAX has them."""
    if vector == len(dims):
        return reshaped(value, dims, (*dims, 1))
    if vector == len(dims) - 1:
        return value
    return call("jnp.moveaxis", value, str(vector), "-1")


_GATHER_FIELDS = {
    "offset_dims": "offset_dims",
    "collapsed_slice_dims": "collapsed_slice_dims",
    "start_index_map": "start_index_map",
    "operand_batching_dims": "operand_batching_dims",
    "start_indices_batching_dims": "start_indices_batching_dims",
}
_SCATTER_FIELDS = {
    "update_window_dims": "update_window_dims",
    "inserted_window_dims": "inserted_window_dims",
    "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims",
    "operand_batching_dims": "input_batching_dims",
    "scatter_indices_batching_dims": "scatter_indices_batching_dims",
}
"""The fields of JAX's dimension numbers, and those of StableHLO's."""


def _numbers(function: str, dims: Any, fields: Mapping[str, str]) -> Expression:
    """Return dimension numbers; those of batching only if there are any."""
    options: dict[str, Item] = {
        field: sizes(values)
        for field, ours in fields.items()
        if (values := getattr(dims, ours)) or "batching" not in field
    }
    return call(function, **options)


_ONE_LINE = 60
"""The length of a call that certainly stays on one line."""

_SHORT = 40
"""The length of the indices of an array that stay within its brackets."""


@dataclass(frozen=True)
class _Rows:
    """The rows of an array along dimensions from `dim` on that `indices` tell: `x.at[:, indices]`."""

    dim: int
    indices: Sequence[Expression]
    """The indices along each of the dimensions."""
    wrap: bool
    """True if negative indices count from the end."""

    def at(self, value: Expression, function: str, scope: Scope, *arguments: Item, **options: Item) -> Expression:
        """Return the call of a method of these rows of `value`."""
        wrapping: dict[str, Item] = {} if self.wrap else {"wrap_negative_indices": "False"}
        is_short = sum(len(each.text) for each in self.indices) <= _SHORT
        indices = self.indices if is_short else [scope.variable("index", each) for each in self.indices]

        def at(array: Expression) -> Expression:
            rows = index(attribute(array, "at"), *[":"] * self.dim, *indices)
            return method(rows, function, *arguments, **options, **wrapping)

        # A call behind another one is broken into lines in its own way.
        is_plain = value.text.isidentifier() or len(at(value).text) <= _ONE_LINE
        return at(value if is_plain else scope.variable("array", value))


def _rows(
    dims: Any, fields: Mapping[str, str], array: SSAValue, starts: SSAValue, moved: SSAValue, scope: Scope
) -> _Rows | None:
    """Return the rows of `array` that a gather reads, or a scatter writes; None if its windows are no rows.

    Args:
        dims: The dimension numbers, with `fields`.
        array: The array that is indexed.
        starts: The indices.
        moved: The rows that are read or written.
        scope: The scope of the expressions.
    """
    windows, removed, indexed, batching, _ = (getattr(dims, field) for field in fields.values())
    before, after, sizes_of_starts = shape(array.type), shape(moved.type), shape(starts.type)
    if not indexed or removed != indexed or batching or dtype_of(starts).name not in ("int32", "int64"):
        return None
    first, count = indexed[0], len(indexed)
    vector: int = dims.index_vector_dim
    batch = sizes_of_starts[:vector]
    along = range(first, first + count)
    others = [each for each in range(len(before)) if each not in along]
    places = [each if each < first else each - count + len(batch) for each in others]
    if [*windows] != places or [after[each] for each in places] != [before[each] for each in others]:
        return None
    columns = _columns(starts, count, vector, scope)
    if [*indexed] != [*along] or columns is None:
        return None
    values = [_before_reshapes(column, batch, scope) for column in columns]
    wrapped = [_wrapped(value, before[dim], scope) for value, dim in zip(values, along, strict=True)]
    originals = [each for each in wrapped if each is not None]
    if originals and len(originals) < count:
        return None
    indices = [reshaped(scope.of(value), shape(value.type), batch) for value in originals or values]
    return _Rows(first, indices, wrap=bool(originals))


def _columns(starts: SSAValue, count: int, vector: int, scope: Scope) -> Sequence[SSAValue] | None:
    """Return the indices along each of `count` dimensions; None if `starts` does not join them in its last dimension.

    Args:
        starts: The indices.
        count: The number of indexed dimensions.
        vector: The dimension of `starts` along which these are.
        scope: The scope of the expressions.
    """
    rank = len(shape(starts.type))
    if count == 1 and vector >= rank - 1:
        return [starts]
    joined = scope.definition(starts)
    if not isinstance(joined, stablehlo.ConcatenateOp) or vector != rank - 1 or joined.dimension.value.data != vector:
        return None
    return joined.inputs if len(joined.inputs) == count else None


def _before_reshapes(value: SSAValue, batch: tuple[int, ...], scope: Scope) -> SSAValue:
    """Return the value that reshapes turn into `value`, but none before one of shape `batch`."""
    while isinstance(op := scope.definition(value), _RESHAPES) and _keeps_order(op) and shape(value.type) != batch:
        value = op.operand
    return value


_RESHAPES = (stablehlo.ReshapeOp, stablehlo.BroadcastInDimOp)


def _keeps_order(op: stablehlo.ReshapeOp | stablehlo.BroadcastInDimOp) -> bool:
    """Return whether the elements of the result are those of the operand, in their order."""
    if isinstance(op, stablehlo.ReshapeOp):
        return True
    dims = [*op.broadcast_dimensions.get_values()]
    return sorted(dims) == dims and math.prod(shape(op.operand.type)) == math.prod(shape(op.result.type))


def _wrapped(value: SSAValue, size: int, scope: Scope) -> SSAValue | None:
    """Return the index `i` of `where(i < 0, i + size, i)`, which may be narrowed; None for another expression."""
    select = scope.definition(value)
    if isinstance(select, stablehlo.ConvertOp) and dtype_of(select.operand).name == "int64":
        select = scope.definition(select.operand)
    if not isinstance(select, stablehlo.SelectOp):
        return None
    chosen, moved, original = scope.definition(select.pred), scope.definition(select.on_true), select.on_false
    is_wrapped = (
        isinstance(chosen, stablehlo.CompareOp)
        and chosen.comparison_direction.data is ComparisonDirection.LT
        and chosen.lhs is original
        and holds(chosen.rhs, 0)
        and isinstance(moved, stablehlo.AddOp)
        and moved.lhs is original
        and holds(moved.rhs, size)
    )
    return original if is_wrapped else None


def _gather(op: stablehlo.GatherOp, scope: Scope) -> Expression:
    dims = op.dimension_numbers.data
    rows = _rows(dims, _GATHER_FIELDS, op.operand, op.start_indices, op.result, scope)
    if rows is not None:
        return rows.at(scope.of(op.operand), "get", scope, mode='"promise_in_bounds"')
    numbers = _numbers("lax.GatherDimensionNumbers", dims, _GATHER_FIELDS)
    indices = _indices(scope.of(op.start_indices), shape(op.start_indices.type), dims.index_vector_dim)
    lengths = sizes(op.slice_sizes.get_values())
    return call("lax.gather", scope.of(op.operand), indices, numbers, lengths, mode='"promise_in_bounds"')


def _scatter(op: stablehlo.ScatterOp, scope: Scope) -> Expression:
    body = op.update_computation.block
    first = body.first_op
    names = _SCATTERS.get(type(first)) if first is not None else None
    if first is None or names is None or len(op.inputs) != 1 or not _combines(first, *body.args):
        raise NotImplementedError("its update function is none of those that JAX has")
    dims, (function, method_of_rows) = op.scatter_dimension_numbers.data, names
    flags: dict[str, Item] = {"unique_indices": "True"} if op.unique_indices.value.data else {}
    value = scope.of(op.inputs[0])
    rows = _rows(dims, _SCATTER_FIELDS, op.inputs[0], op.scatter_indices, op.updates[0], scope)
    if rows is not None:
        return rows.at(value, method_of_rows, scope, scope.filling(op.updates[0]), **flags, mode='"drop"')
    numbers = _numbers("lax.ScatterDimensionNumbers", dims, _SCATTER_FIELDS)
    indices = _indices(scope.of(op.scatter_indices), shape(op.scatter_indices.type), dims.index_vector_dim)
    return call(function, value, indices, scope.of(op.updates[0]), numbers, **flags, mode='"drop"')


def _combines(first: Operation, old: SSAValue, new: SSAValue) -> bool:
    """Return whether `first` combines the old and the new element in this order, or returns the new one."""
    operands = [*first.operands]
    if isinstance(first, ReturnOp):
        return operands == [new]
    returned = first.next_op
    is_whole = returned is not None and [*returned.operands] == [*first.results]
    return is_whole and (operands == [old, new] or (type(first) in REDUCERS and operands == [new, old]))


INDEXING: dict[type[Operation], Printer] = {
    stablehlo.GatherOp: _gather,
    stablehlo.ScatterOp: _scatter,
}
