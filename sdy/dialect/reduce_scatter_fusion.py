"""Fusion of an all-reduce and the slices of its result to a reduce-scatter, which sends half as many bytes."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from sdy.axes import Axes, AxisRef, merge_sub_axes
from sdy.dialect.collectives import AllReduceOp, AllSliceOp, ReduceScatterOp
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding
from sdy.sharding import DimSharding, TensorSharding


class ReduceScatterFusion(RewritePattern):
    """Fuse an all-reduce with its all-slices, if these slice along all reduced axes.

    Before::

        %0 = sdy.all_reduce {"x", "y"} %arg0 out_sharding=<@mesh, [{}, {}]>
        %1 = sdy.all_slice [{"x", "z"}, {"y"}] %0 out_sharding=<@mesh, [{"x", "z"}, {"y"}]>

    After::

        %0 = sdy.reduce_scatter [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>
        %1 = sdy.all_slice [{"z"}, {}] %0 out_sharding=<@mesh, [{"x", "z"}, {"y"}]>
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllSliceOp, rewriter: PatternRewriter) -> None:
        """Replace all slices of the all-reduce, which must be equal, at the first one."""
        reduce = op.tensor.owner
        if not isinstance(reduce, AllReduceOp):
            return
        slices = [use.operation for use in reduce.result.uses]
        if not all(isinstance(other, AllSliceOp) and other.slicing_axes == op.slicing_axes for other in slices):
            return
        if any(other is not op and not _comes_before(op, other) for other in slices):
            return
        split = scattered_axes(reduce.reduction_axes.data, op.slicing_axes.data)
        if split is None:
            return
        scattered, remaining = split

        scatter = ReduceScatterOp(reduce.tensor, scattered, _after_scatter(reduce, op, scattered), reduce.reduction)
        scatter.location = reduce.location
        rewriter.insert(scatter)
        result: SSAValue = scatter.result
        if any(remaining):
            rest = AllSliceOp(result, remaining, op.out_sharding.data)
            rest.location = op.location
            rewriter.insert(rest)
            result = rest.result
        for other in slices:
            rewriter.replace(other, (), (result,))
        rewriter.erase(reduce)


def scattered_axes(
    reduced: Sequence[AxisRef], sliced: Sequence[Axes]
) -> tuple[tuple[Axes, ...], tuple[Axes, ...]] | None:
    """Split the sliced axes of each dimension into a prefix of reduced axes and the rest.

    Returns:
        The prefixes and the rests; None if some reduced axis is in no prefix.
    """
    unused = set(reduced)
    scattered: list[Axes] = []
    for axes in sliced:
        count = 0
        while count < len(axes) and axes[count] in unused:
            unused.remove(axes[count])
            count += 1
        scattered.append(axes[:count])
    if unused:
        return None
    return tuple(scattered), tuple(axes[len(first) :] for axes, first in zip(sliced, scattered, strict=True))


def _after_scatter(reduce: AllReduceOp, slice_: AllSliceOp, scattered: Sequence[Axes]) -> TensorSharding:
    after, sliced = reduce.out_sharding.data, slice_.out_sharding.data
    before = get_sharding(reduce.tensor) or TensorSharding.replicated_closed(after.mesh, after.rank)
    mesh = mesh_of(after, reduce)
    dims = tuple(
        DimSharding(merge_sub_axes((*dim.axes, *axes), mesh)) for dim, axes in zip(before.dims, scattered, strict=True)
    )
    return TensorSharding(after.mesh, dims, sliced.replicated, sliced.unreduced, sliced.reduction)


def _comes_before(first: Operation, second: Operation) -> bool:
    return first.parent is second.parent and first.is_before_in_block(second)
