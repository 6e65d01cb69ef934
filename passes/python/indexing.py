"""Gather and scatter."""

from collections.abc import Mapping
from typing import Any

from xdsl.ir import Operation, SSAValue

from sdy import stablehlo
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import Expression, Item, call, sizes
from sdy.passes.python.reductions import REDUCERS
from sdy.passes.python.scope import Printer, Scope
from sdy.passes.python.shaping import reshaped
from sdy.stablehlo.control_flow import ReturnOp

_SCATTERS: dict[type[Operation], str] = {
    ReturnOp: "lax.scatter",
    stablehlo.AddOp: "lax.scatter_add",
    stablehlo.MaxOp: "lax.scatter_max",
    stablehlo.MinOp: "lax.scatter_min",
    stablehlo.MulOp: "lax.scatter_mul",
    stablehlo.SubtractOp: "lax.scatter_sub",
}


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


def _gather(op: stablehlo.GatherOp, scope: Scope) -> Expression:
    dims = op.dimension_numbers.data
    numbers = _numbers("lax.GatherDimensionNumbers", dims, _GATHER_FIELDS)
    indices = _indices(scope.of(op.start_indices), shape(op.start_indices.type), dims.index_vector_dim)
    lengths = sizes(op.slice_sizes.get_values())
    return call("lax.gather", scope.of(op.operand), indices, numbers, lengths, mode='"promise_in_bounds"')


def _scatter(op: stablehlo.ScatterOp, scope: Scope) -> Expression:
    body = op.update_computation.block
    first = body.first_op
    function = _SCATTERS.get(type(first)) if first is not None else None
    if first is None or function is None or len(op.inputs) != 1 or not _combines(first, *body.args):
        raise NotImplementedError("its update function is none of those that JAX has")
    dims = op.scatter_dimension_numbers.data
    numbers = _numbers("lax.ScatterDimensionNumbers", dims, _SCATTER_FIELDS)
    indices = _indices(scope.of(op.scatter_indices), shape(op.scatter_indices.type), dims.index_vector_dim)
    flags: dict[str, Item] = {"unique_indices": "True"} if op.unique_indices.value.data else {}
    value, updates = scope.of(op.inputs[0]), scope.of(op.updates[0])
    return call(function, value, indices, updates, numbers, **flags, mode='"drop"')


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
