"""`sdy-reduce-in-stages`: reductions that no all-reduce combines, of each part first and then of what these give."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.axes import merge_sub_axes
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import is_static_tensor, shape
from sdy.ir.walking import invalidate, operations_of
from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout, mesh_of_devices
from sdy.passes.spmd.neutral_elements import neutral_starts
from sdy.passes.spmd.replicated_factors import reshard_around
from sdy.passes.spmd.reshards.reduction_kinds import operation_reduction
from sdy.passes.spmd.reshards.reshard_cost import elements_resharded
from sdy.passes.spmd.resolution import layout_of
from sdy.passes.spmd.stages import Cut, dims_to_cut, reduce_in_stages, with_parts
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.reduction import ReduceOp


@dataclass(frozen=True)
class ReduceInStagesPass(AnalysisPreservingPass):
    """Reduce in two stages along split dimensions where SDY has no all-reduce that combines partial results.

    A sum, a maximum or a minimum is combined by an all-reduce. Of products, of bits, and of several tensors together,
    as in the search of the place of a maximum, the partial results are brought together and reduced again. Before::

        sdy.mesh @mesh = <["x"=4]>
        ... %0: tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}
        %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.xor across dimensions = [0]

    After, shortened::

        %1 = stablehlo.reshape %0 [{"x"}, {}, {}] : (tensor<16x8xi32>) -> tensor<4x4x8xi32>
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.xor across dimensions = [1] [{"x"}, {}]
        %3 = sdy.reshard %2 <@mesh, [{}, {"x"}]> : tensor<4x8xi32>
        %4 = stablehlo.reduce(%3 init: %c) applies stablehlo.xor across dimensions = [0] [{"x"}]
        %5 = sdy.reshard %4 <@mesh, [{}]> : tensor<8xi32>

    The reshards are those that send the fewest elements: here each device finishes a quarter of the results, for two
    it would be as well to have all of them on both. The first stage, and padding where parts are uneven, starts from
    what changes nothing, so that the initial value counts once. Where there is no such element, nothing is changed.
    The order of the elements is kept, unless the reduction is known to be commutative.
    """

    name = "sdy-reduce-in-stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reduction in operations_of(op, ReduceOp):
            if _is_in_reach(reduction) and operation_reduction(reduction) is None:
                _reduce_in_stages(reduction)


def _is_in_reach(op: ReduceOp) -> bool:
    """Whether the sizes of `op` are known, its inputs lie on one mesh, and nothing about it is unreduced."""
    values = (*op.inputs, *op.results)
    shardings = [sharding for sharding in map(get_sharding, values) if sharding is not None]
    return (
        all(is_static_tensor(value.type) and 0 not in shape(value.type) for value in values)
        and len({sharding.mesh for sharding in shardings}) == 1
        and not any(sharding.unreduced for sharding in shardings)
    )


def _reduce_in_stages(op: ReduceOp) -> None:
    found = _dim_to_cut(op)
    if found is None:
        return
    invalidate(op)
    starts = neutral_starts(op)
    if starts is None:
        return
    dim, layout = found
    inputs_alike = [
        None if equivalent(get_sharding(value), layout.sharding) else layout.sharding for value in op.inputs
    ]
    reshard_around(op, inputs_alike)
    parts, total = reduce_in_stages(op, Cut(dim, layout.parts(dim), layout.axes[dim]), starts)
    _bring_together(total)
    _reduce_in_stages(parts)


def _dim_to_cut(op: ReduceOp) -> tuple[int, Layout] | None:
    """The first dimension that may be cut and that an input splits, and how that input lies."""
    layouts = [layout_of(value) for value in op.inputs]
    return next(((dim, layout) for dim in dims_to_cut(op) for layout in layouts if layout.axes[dim]), None)


def _bring_together(total: ReduceOp) -> None:
    """Put reshards around the second stage, so that each device has all parts of what it finishes."""
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

    finished = min(_ways_to_finish(parts, place, wanted, shape(total.results[0].type), mesh), key=received)
    count = len(total.inputs)
    after = [None if equivalent(get_sharding(result), finished) else finished for result in total.results]
    reshard_around(total, [with_parts(finished, place, ())] * count + [None] * count + after)


def _ways_to_finish(
    parts: TensorSharding, place: int, wanted: TensorSharding, sizes: tuple[int, ...], mesh: Mesh
) -> Iterator[TensorSharding]:
    """Where results may be computed: where their parts are, where they are wanted, or each device some of them."""
    kept = replace(parts, dims=parts.dims[:place] + parts.dims[place + 1 :])
    yield kept
    yield wanted
    for dim, size in enumerate(sizes):
        split = DimSharding(merge_sub_axes((*kept.dims[dim].axes, *parts.dims[place].axes), mesh))
        if size % split.sharded_size(mesh) == 0:
            yield kept.with_dim(dim, split)
