"""`sdy-reduce-in-stages`: two-stage reductions, of each shard and then of the partial results, without all-reduce."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.axes import merge_sub_axes
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import has_elements, shape
from sdy.ir.walking import invalidate, operations_of
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.operation_reshards import reshard_around
from sdy.passes.spmd.emit.resolution import layout_of
from sdy.passes.spmd.plan.reduction_kinds import operation_reduction
from sdy.passes.spmd.plan.reshard_cost import elements_resharded
from sdy.passes.spmd.shards.elements import neutral_starts
from sdy.passes.spmd.shards.layout import Layout, mesh_of_devices
from sdy.passes.spmd.stages import Cut, dims_to_cut, reduce_in_stages, with_parts
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.reduction import ReduceOp


@dataclass(frozen=True)
class ReduceInStagesPass(AnalysisPreservingPass):
    """Reduce sharded dimensions in two stages where SDY has no all-reduce that combines the partial results.

    The partial results of a sum, maximum or minimum are combined by an all-reduce. The partial results of a product, of
    a bitwise operation, or of several tensors together, as in an argmax, are gathered and reduced again. Before::

        sdy.mesh @mesh = <["x"=4]>
        ... %0: tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}
        %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.xor across dimensions = [0]

    After, shortened::

        %1 = stablehlo.reshape %0 [{"x"}, {}, {}] : (tensor<16x8xi32>) -> tensor<4x4x8xi32>
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.xor across dimensions = [1] [{"x"}, {}]
        %3 = sdy.reshard %2 <@mesh, [{}, {"x"}]> : tensor<4x8xi32>
        %4 = stablehlo.reduce(%3 init: %c) applies stablehlo.xor across dimensions = [0] [{"x"}]
        %5 = sdy.reshard %4 <@mesh, [{}]> : tensor<8xi32>

    The pass selects the reshards that move the fewest elements: here, each device computes a quarter of the results.
    The first stage starts from the identity element, which also fills the padding of uneven shards, so that the initial
    value counts once. A reduction without a known identity is unchanged. The order of elements is preserved, unless the
    reduction is known to be commutative.
    """

    name = "sdy-reduce-in-stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reduction in operations_of(op, ReduceOp):
            if _is_supported(reduction) and operation_reduction(reduction) is None:
                _reduce_in_stages(reduction)


def _is_supported(op: ReduceOp) -> bool:
    """Return whether `op` has static, nonempty shapes, one mesh and no unreduced axes."""
    values = (*op.inputs, *op.results)
    shardings = [sharding for sharding in map(get_sharding, values) if sharding is not None]
    return (
        all(has_elements(value.type) for value in values)
        and len({sharding.mesh for sharding in shardings}) == 1
        and not any(sharding.unreduced for sharding in shardings)
    )


def _reduce_in_stages(op: ReduceOp) -> None:
    dim_and_layout = _dim_to_cut(op)
    if dim_and_layout is None:
        return
    invalidate(op)
    starts = neutral_starts(op)
    if starts is None:
        return
    dim, layout = dim_and_layout
    shardings = [None if equivalent(get_sharding(value), layout.sharding) else layout.sharding for value in op.inputs]
    reshard_around(op, shardings)
    parts, total = reduce_in_stages(op, Cut(dim, layout.parts(dim), layout.axes[dim]), starts)
    _reshard_partial_results(total)
    _reduce_in_stages(parts)


def _dim_to_cut(op: ReduceOp) -> tuple[int, Layout] | None:
    """Return the first dimension to reduce in stages, which an input shards, and the layout of that input."""
    layouts = [layout_of(value) for value in op.inputs]
    return next(((dim, layout) for dim in dims_to_cut(op) for layout in layouts if layout.axes[dim]), None)


def _reshard_partial_results(total: ReduceOp) -> None:
    """Insert reshards around the second stage, so that each device has all partial results of its outputs."""
    [place] = total.dimensions.get_values()
    parts = get_sharding(total.inputs[0])
    assert parts is not None
    mesh = mesh_of_devices(parts, total)
    for result in total.results:
        if get_sharding(result) is None:
            set_sharding(result, TensorSharding.replicated_closed(parts.mesh, parts.rank - 1))
    wanted = get_sharding(total.results[0])
    assert wanted is not None

    def received(finished: TensorSharding) -> int:
        in_front = elements_resharded(total.inputs[0], parts, with_parts(finished, place, ()), total)
        return in_front + elements_resharded(total.results[0], finished, wanted, total)

    candidates = _second_stage_shardings(parts, place, wanted, shape(total.results[0].type), mesh)
    finished = min(candidates, key=received)
    count = len(total.inputs)
    after = [None if equivalent(get_sharding(result), finished) else finished for result in total.results]
    reshard_around(total, [with_parts(finished, place, ())] * count + [None] * count + after)


def _second_stage_shardings(
    parts: TensorSharding, place: int, wanted: TensorSharding, sizes: tuple[int, ...], mesh: Mesh
) -> Iterator[TensorSharding]:
    """Yield candidate shardings of the second stage's results: of the parts, of the users, or split over the parts."""
    kept = replace(parts, dims=parts.dims[:place] + parts.dims[place + 1 :])
    yield kept
    yield wanted
    for dim, size in enumerate(sizes):
        if size > 1:
            yield kept.with_dim(dim, DimSharding(merge_sub_axes((*kept.dims[dim].axes, *parts.dims[place].axes), mesh)))
