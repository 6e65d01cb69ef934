"""Collectives of the program of one device, along the named axes of `jax.shard_map`."""

from collections.abc import Sequence

from xdsl.ir import Operation, Region, SSAValue

from sdy import stablehlo
from sdy.interpreter.groups import numbers_of_groups
from sdy.ir.shapes import shape
from sdy.passes.common.properties import value_bytes
from sdy.passes.python.device_axes import axes_text
from sdy.passes.python.expressions import Expression, call, list_of, sizes, tuple_of
from sdy.passes.python.literals import integers
from sdy.passes.python.reductions import reducer_of
from sdy.passes.python.scope import Printer, Scope
from sdy.passes.python.shaping import reshaped

_REDUCERS = {"sum": "lax.psum", "max": "lax.pmax", "min": "lax.pmin"}


def _axes(op: Operation, scope: Scope, kind: str) -> str:
    """Return the axes of a collective, after a comment with its kind and bytes."""
    axes = axes_text(scope.writer.axes.of_groups(numbers_of_groups(op)))
    scope.statements.comment(f"{kind} over {axes}, {_bytes_text(op.operands)}")
    return axes


def _bytes_text(values: Sequence[SSAValue]) -> str:
    from sdy.formatting import format_bytes

    return f"{format_bytes(sum(map(value_bytes, values)))} a device"


def _reducer(body: Region, values: Sequence[SSAValue]) -> str:
    known = reducer_of(body, values[:1])
    if known is None or known.method not in _REDUCERS:
        raise NotImplementedError("JAX has no collective of this reduction over devices")
    return _REDUCERS[known.method]


def _all_reduce(op: stablehlo.AllReduceOp, scope: Scope) -> Expression:
    function = _reducer(op.computation, op.operands)
    values = [*map(scope.of, op.operands)]
    axes = _axes(op, scope, "all-reduce")
    return call(function, values[0] if len(values) == 1 else tuple_of(values), axes)


def _all_gather(op: stablehlo.AllGatherOp, scope: Scope) -> Expression:
    value, dim = _one(op, scope), op.all_gather_dim.value.data
    axes = _axes(op, scope, "all-gather")
    return call("lax.all_gather", value, axes, **({"axis": str(dim)} if dim else {}), tiled="True")


def _reduce_scatter(op: stablehlo.ReduceScatterOp, scope: Scope) -> Expression:
    """Return a reduce-scatter of sums, or the reduction of exchanged parts, which receives the same bytes."""
    reducer = reducer_of(op.computation, [op.operand])
    if reducer is None:
        raise NotImplementedError("JAX has no collective of this reduction over devices")
    value, dim = scope.of(op.operand), op.scatter_dimension.value.data
    if reducer.method == "sum":
        axes = _axes(op, scope, "reduce-scatter")
        return call("lax.psum_scatter", value, axes, scatter_dimension=str(dim), tiled="True")
    axes = _axes(op, scope, f"reduce-scatter of the {reducer.method}")
    before, size = shape(op.operand.type), shape(op.result.type)[dim]
    parts = reshaped(value, before, (*before[:dim], before[dim] // size, size, *before[dim + 1 :]))
    return call(reducer.primitive, call("lax.all_to_all", parts, axes, str(dim), str(dim)), sizes([dim]))


def _all_to_all(op: stablehlo.AllToAllOp, scope: Scope) -> Expression:
    value = _one(op, scope)
    axes = _axes(op, scope, "all-to-all")
    split, concatenated = (each.value.data for each in (op.split_dimension, op.concat_dimension))
    return call("lax.all_to_all", value, axes, str(split), str(concatenated), tiled="True")


def _permute(op: stablehlo.CollectivePermuteOp, scope: Scope) -> Expression:
    numbers = integers(op.source_target_pairs)
    pairs = [*zip(numbers[::2], numbers[1::2], strict=True)]
    value = scope.of(op.operand)
    scope.statements.comment(f"collective-permute, {_bytes_text([op.operand])}")
    axes = axes_text(scope.writer.axes.names)
    return call("lax.ppermute", value, axes, list_of(map(sizes, pairs)))


def _one(op: Operation, scope: Scope) -> Expression:
    if len(op.operands) != 1:
        raise NotImplementedError("JAX has no collective of this kind of several arrays at once")
    return scope.of(op.operands[0])


def _device(op: Operation, scope: Scope) -> Expression:
    index = call("lax.axis_index", axes_text(scope.writer.axes.names))
    return Expression(f"{index}.astype(jnp.uint32)")


COLLECTIVES: dict[type[Operation], Printer] = {
    stablehlo.AllGatherOp: _all_gather,
    stablehlo.AllReduceOp: _all_reduce,
    stablehlo.AllToAllOp: _all_to_all,
    stablehlo.CollectivePermuteOp: _permute,
    stablehlo.PartitionIdOp: _device,
    stablehlo.ReduceScatterOp: _reduce_scatter,
}
