"""`sdy-rewrite-as-hlo`: the program in the form in which XLA has it when it asks Shardy for shardings."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.attributes import SHARDING, SHARDING_RULE
from sdy.dialect.ops import ShardingConstraintOp
from sdy.dialect.shardings import get_sharding
from sdy.dialect.walk import innermost_first, operations_of
from sdy.passes.common.editing import TellingPass, erase, insert, replace
from sdy.passes.partitioning.emitter import before
from sdy.sharding import TensorSharding
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.shape import TransposeOp


class RewriteAsHloPass(TellingPass):
    """Let dimensions of size 1 come and go by reshapes, and loops carry only what changes, as in XLA's HLO.

    Between the text that JAX lowers a program to and the program that Shardy sees within XLA lies HLO, where some
    operations are written otherwise. What is computed stays the same; how shardings propagate does not: an axis enters
    a `broadcast_in_dim` before it enters a `reshape`, and so wins over others. Before::

        %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
        %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<8x4x1xf32>) -> tensor<8x4x16xf32>

    After::

        %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
        %1 = stablehlo.reshape %0 : (tensor<8x4x1xf32>) -> tensor<8x4xf32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x16xf32>

    Operations stay that carry a sharding or a sharding rule, and those of dynamic shapes.
    """

    name = "sdy-rewrite-as-hlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in innermost_first(operations_of(op, *_REWRITES)):
            if SHARDING not in inner.attributes and SHARDING_RULE not in inner.attributes:
                _REWRITES[type(inner)](inner)


def _broadcast(op: BroadcastInDimOp) -> None:
    """A `reshape` where nothing is repeated; where dimensions of size 1 are, a `reshape` without them before."""
    old, new = _sizes(op.operand), _sizes(op.result)
    dims = op.broadcast_dimensions.get_values()
    if old is None or new is None:
        return
    kept = [dim for dim, target in enumerate(dims) if old[dim] == new[target]]
    emit = before(op)
    if list(dims) == sorted(dims) and _without_ones(old) == _without_ones(new):
        replace(op, [emit.reshape(op.operand, new)])
    elif len(kept) < len(old):
        value = emit.reshape(op.operand, [old[dim] for dim in kept])
        replace(op, [emit.broadcast(value, [dims[dim] for dim in kept], new)])


def _transpose(op: TransposeOp) -> None:
    """One `transpose` in place of two; a `reshape` where only dimensions of size 1 move."""
    old, new = _sizes(op.operand), _sizes(op.result)
    if old is None or new is None:
        return
    value, order = op.operand, list(op.permutation.get_values())
    while isinstance(value.owner, TransposeOp):
        first = value.owner.permutation.get_values()
        value, order = value.owner.operand, [first[dim] for dim in order]
    sizes = tensor_type(value).get_shape()
    moved = [dim for dim in order if sizes[dim] != 1]
    emit = before(op)
    if moved == sorted(moved):
        replace(op, [emit.reshape(value, new)])
    elif value is not op.operand:
        replace(op, [emit.transpose(value, order)])


def _while(op: WhileOp) -> None:
    """What a loop carries but does not change is used as it was before the loop, where it may be split otherwise."""
    arguments, returned = op.body.block.args, op.body.block.last_op
    assert returned is not None
    changes = [value is not argument for value, argument in zip(returned.operands, arguments, strict=True)]
    if all(changes):
        return
    for index in [index for index, changed in enumerate(changes) if not changed]:
        outside = op.operands[index]
        inside = _constrained(outside, op)
        op.results[index].replace_all_uses_with(outside)
        for region in op.regions:
            region.block.args[index].replace_all_uses_with(inside)
    carried = [index for index, changed in enumerate(changes) if changed]
    returned.operands = [returned.operands[index] for index in carried]
    for region in op.regions:
        for index in reversed([index for index, changed in enumerate(changes) if not changed]):
            region.block.erase_arg(region.block.args[index])
    loop = WhileOp.create(
        operands=[op.operands[index] for index in carried],
        result_types=[op.results[index].type for index in carried],
        attributes=op.attributes,
        regions=[op.detach_region(region) for region in list(op.regions)],
    )
    loop.location = op.location
    insert(loop, InsertPoint.before(op))
    for index, result in zip(carried, loop.results, strict=True):
        op.results[index].replace_all_uses_with(result)
    erase(op)


def _constrained(value: SSAValue, loop: WhileOp) -> SSAValue:
    """`value` in front of `loop`, free to be split otherwise than it is said to be where it is made."""
    sharding = get_sharding(value)
    if sharding is None:
        return value
    constraint = ShardingConstraintOp(value, TensorSharding.replicated_open(sharding.mesh, sharding.rank))
    constraint.location = loop.location
    insert(constraint, InsertPoint.before(loop))
    return constraint.result


def _sizes(value: SSAValue) -> Sequence[int] | None:
    type_ = tensor_type(value)
    return type_.get_shape() if type_.has_static_shape() else None


def _without_ones(sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size != 1]


_REWRITES: dict[type[Operation], Callable[[Any], None]] = {
    BroadcastInDimOp: _broadcast,
    TransposeOp: _transpose,
    WhileOp: _while,
}
