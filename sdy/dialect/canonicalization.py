"""How operations of the dialect are simplified: the patterns of `canonicalize`, by the label that enables them."""

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
    """Put `new`, which stands for `op` and so has its location, in the place of `op`."""
    new.location = op.location
    rewriter.replace(op, new)


class ReshardOfReshard(RewritePattern):
    """A reshard of a reshard that has no other use: only the last layout counts.

    Not to or from a single device, which shares only whole tensors, that all devices have.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshardOp, rewriter: PatternRewriter) -> None:
        """Take the input of the inner reshard, which then has no use left."""
        inner = op.input.owner
        if not isinstance(inner, ReshardOp) or not inner.result.has_one_use():
            return
        ends = (get_sharding(inner.input), op.sharding.data)
        if not any(sharding is not None and mesh_of(sharding, op).is_maximal for sharding in ends):
            _replace(rewriter, op, ReshardOp(inner.input, op.sharding.data))
            rewriter.erase(inner)


class CollectiveOfNothing(RewritePattern):
    """A collective that changes nothing: its axes are empty, or the layout stays the same."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Use the operand instead."""
        match op:
            case AllGatherOp():
                idle = not any(op.gathering_axes.data)
            case AllSliceOp():
                idle = not any(op.slicing_axes.data)
            case ReduceScatterOp():
                idle = not any(op.reduce_scatter_axes.data)
            case AllReduceOp():
                idle = not op.reduction_axes.data
            case CollectivePermuteOp():
                idle = equivalent(get_sharding(op.tensor), op.out_sharding.data)
            case _:
                return
        if idle:
            rewriter.replace(op, (), (op.tensor,))


class AllSliceOfAllGather(RewritePattern):
    """Slicing along the axes just gathered gives back what there was."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllSliceOp, rewriter: PatternRewriter) -> None:
        """Use what was gathered."""
        inner = op.tensor.owner
        if isinstance(inner, AllGatherOp) and inner.gathering_axes == op.slicing_axes:
            rewriter.replace(op, (), (inner.tensor,))


class AllReduceOfUnreduced(RewritePattern):
    """Combining partial results that were made of whole ones or of parts just before."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllReduceOp, rewriter: PatternRewriter) -> None:
        """Use what was whole, or gather the parts."""
        inner = op.tensor.owner
        if isinstance(inner, ReplicatedToUnreducedOp) and inner.axes == op.reduction_axes:
            rewriter.replace(op, (), (inner.tensor,))
        elif isinstance(inner, ShardedToUnreducedOp):
            mesh = mesh_of(inner.out_sharding.data, inner)
            axes = sorted((axis for dim in inner.axes.data for axis in dim), key=mesh_order(mesh))
            if merge_sub_axes(axes, mesh) == op.reduction_axes.data:
                _replace(rewriter, op, AllGatherOp(inner.tensor, inner.axes.data, op.out_sharding.data))


class UnusedAllToAll(RewritePattern):
    """An all-to-all that nobody uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllToAllOp, rewriter: PatternRewriter) -> None:
        """Erase it."""
        if op.result.first_use is None:
            rewriter.erase(op)


class AllToAllFusion(RewritePattern):
    """Two all-to-alls in a row, between dimensions that are all different."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllToAllOp, rewriter: PatternRewriter) -> None:
        """Move all axes at once."""
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
    """The operations that they rewrite; without any of these, none matches."""
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
"""The patterns with each label; those without one are enabled when no label is asked for."""
