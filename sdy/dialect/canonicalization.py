"""Canonicalization patterns of the dialect, by the label that enables them."""

from typing import NamedTuple

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from sdy.axes import merge_sub_axes, mesh_order
from sdy.dialect.collectives import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    CollectiveOp,
    CollectivePermuteOp,
    ReduceScatterOp,
    ReplicatedToUnreducedOp,
    ShardedToUnreducedOp,
)
from sdy.dialect.manual_computation_patterns import InlineIdleManualComputation, RemoveUnusedInputs
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ManualComputationOp, ReshardOp
from sdy.dialect.reduce_scatter_fusion import ReduceScatterFusion
from sdy.dialect.shardings import get_sharding
from sdy.sharding import equivalent


def _replace(rewriter: PatternRewriter, op: Operation, new: Operation) -> None:
    """Replace `op` by `new`, which gets its location."""
    new.location = op.location
    rewriter.replace(op, new)


class ReshardOfReshard(RewritePattern):
    """Fold a reshard of a reshard without other uses: only the last sharding counts.

    Does not apply to reshards to or from a maximal mesh: a single device can only exchange tensors that are replicated.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshardOp, rewriter: PatternRewriter) -> None:
        """Reshard the operand of the inner reshard directly."""
        inner = op.input.owner
        if not isinstance(inner, ReshardOp) or not inner.result.has_one_use():
            return
        ends = (get_sharding(inner.input), op.sharding.data)
        if not any(sharding is not None and mesh_of(sharding, op).is_maximal for sharding in ends):
            _replace(rewriter, op, ReshardOp(inner.input, op.sharding.data))
            rewriter.erase(inner)


class CollectiveOfNothing(RewritePattern):
    """Erase an identity collective: its axes are empty, or the sharding stays the same."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Replace the result by the operand."""
        match op:
            case AllGatherOp():
                is_identity = not any(op.gathering_axes.data)
            case AllSliceOp():
                is_identity = not any(op.slicing_axes.data)
            case ReduceScatterOp():
                is_identity = not any(op.reduce_scatter_axes.data)
            case AllReduceOp():
                is_identity = not op.reduction_axes.data
            case CollectivePermuteOp():
                is_identity = equivalent(get_sharding(op.tensor), op.out_sharding.data)
            case _:
                return
        if is_identity:
            rewriter.replace(op, (), (op.tensor,))


class AllSliceOfAllGather(RewritePattern):
    """Fold an all-slice along the axes of the all-gather before it."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllSliceOp, rewriter: PatternRewriter) -> None:
        """Replace the result by the operand of the all-gather."""
        inner = op.tensor.owner
        if isinstance(inner, AllGatherOp) and inner.gathering_axes == op.slicing_axes:
            rewriter.replace(op, (), (inner.tensor,))


class AllReduceOfUnreduced(RewritePattern):
    """Fold an all-reduce of partial results that were just created from a replicated or a sharded tensor."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllReduceOp, rewriter: PatternRewriter) -> None:
        """Replace the result by the replicated tensor, or by an all-gather of the sharded one."""
        inner = op.tensor.owner
        if isinstance(inner, ReplicatedToUnreducedOp) and inner.axes == op.reduction_axes:
            rewriter.replace(op, (), (inner.tensor,))
        elif isinstance(inner, ShardedToUnreducedOp):
            mesh = mesh_of(inner.out_sharding.data, inner)
            axes = sorted((axis for dim in inner.axes.data for axis in dim), key=mesh_order(mesh))
            if merge_sub_axes(axes, mesh) == op.reduction_axes.data:
                _replace(rewriter, op, AllGatherOp(inner.tensor, inner.axes.data, op.out_sharding.data))


class UnusedAllToAll(RewritePattern):
    """Erase an all-to-all without uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllToAllOp, rewriter: PatternRewriter) -> None:
        """Erase the operation."""
        if op.result.first_use is None:
            rewriter.erase(op)


class AllToAllFusion(RewritePattern):
    """Fuse two consecutive all-to-alls between distinct dimensions."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllToAllOp, rewriter: PatternRewriter) -> None:
        """Move all axes in one all-to-all."""
        inner = op.tensor.owner
        if not isinstance(inner, AllToAllOp) or not inner.result.has_one_use():
            return
        params = sorted((*inner.params.data, *op.params.data), key=lambda param: param.src_dim)
        dims = [dim for param in params for dim in (param.src_dim, param.tgt_dim)]
        if len(set(dims)) == len(dims):
            _replace(rewriter, op, AllToAllOp(inner.tensor, params, op.out_sharding.data))
            rewriter.erase(inner)


class Patterns(NamedTuple):
    """Patterns that are enabled together."""

    roots: tuple[type[Operation], ...]
    """Root operations; without any of them, no pattern matches."""
    patterns: tuple[RewritePattern, ...]


PATTERNS = {
    "sdy-reshard": Patterns((ReshardOp,), (ReshardOfReshard(),)),
    "sdy-collective": Patterns(
        (CollectiveOp,),
        (
            CollectiveOfNothing(),
            AllSliceOfAllGather(),
            AllReduceOfUnreduced(),
            UnusedAllToAll(),
            AllToAllFusion(),
            ReduceScatterFusion(),
        ),
    ),
    "": Patterns((ManualComputationOp,), (RemoveUnusedInputs(), InlineIdleManualComputation())),
}
"""Patterns by label; those with the empty label are enabled if no label is requested."""
