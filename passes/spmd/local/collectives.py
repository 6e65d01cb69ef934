"""SDY's collectives, which speak of axes, as StableHLO's, which speak of groups of devices.

A collective on one dimension has a counterpart. One on several dimensions at once can still be one collective of
StableHLO, along a new leading dimension into which the parts of all dimensions are moved.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from sdy import dialect
from sdy import stablehlo as hlo
from sdy.axes import AxisRef, total_size
from sdy.device_groups import places
from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.spmd.local.communication import all_reduce, between, gather, reducer
from sdy.passes.spmd.local.first_part import share_first_parts
from sdy.passes.spmd.local.replica_groups import device_list, replica_groups
from sdy.passes.spmd.parts import dims_with_axes, flat, merge_front, parts_in_front, take_part
from sdy.passes.spmd.site import Lowerings, Site
from sdy.stablehlo.emitter import with_shape

COLLECTIVES = Lowerings()


@COLLECTIVES.of(dialect.AllGatherOp)
def _all_gather(site: Site[dialect.AllGatherOp]) -> None:
    op = site.op
    value, axes_of_dims = op.tensor, op.gathering_axes.data
    if site.target.least_communication:
        value, axes_of_dims = share_first_parts(site)
    site.replace(gather(site.before(), value, axes_of_dims, site.results[0], site.target))


@COLLECTIVES.of(dialect.AllSliceOp)
def _all_slice(site: Site[dialect.AllSliceOp]) -> None:
    op = site.op
    site.replace(take_part(site.before(), op.tensor, op.slicing_axes.data, site.results[0].mesh))


@COLLECTIVES.of(dialect.AllReduceOp)
def _all_reduce(site: Site[dialect.AllReduceOp]) -> None:
    op = site.op
    axes, layout = op.reduction_axes.data, site.results[0]
    site.replace(all_reduce(site.before(), op.tensor, axes, op.reduction, layout, site.target))


@COLLECTIVES.of(dialect.ReduceScatterOp)
def _reduce_scatter(site: Site[dialect.ReduceScatterOp]) -> None:
    """On several dimensions, reducing all and taking a part takes no rearranging, but sends twice as much."""
    op, target, layout, emit = site.op, site.target, site.results[0], site.before()
    axes_of_dims = op.reduce_scatter_axes.data
    dims = dims_with_axes(axes_of_dims)

    def scatter(value: SSAValue, dim: int, shape: Sequence[int]) -> SSAValue:
        properties = {"scatter_dimension": IntegerAttr(dim, i64), **between(flat(axes_of_dims), layout, target)}
        return emit.insert(
            hlo.ReduceScatterOp.create(
                operands=[value],
                properties=properties,
                result_types=[with_shape(value, shape)],
                regions=[reducer(value, op.reduction)],
            )
        )

    local = shape_of(op.results[0])
    if len(dims) == 1:
        site.replace(scatter(op.tensor, dims[0], local))
    elif target.combine_multi_dimension_reduce_scatter:
        parts = parts_in_front(emit, op.tensor, dims, [total_size(axes_of_dims[dim], layout.mesh) for dim in dims])
        site.replace(emit.reshape(scatter(parts, 0, (1, *local)), local))
    else:
        reduced = all_reduce(emit, op.tensor, flat(axes_of_dims), op.reduction, layout, target)
        site.replace(take_part(emit, reduced, axes_of_dims, layout.mesh))


@COLLECTIVES.of(dialect.AllToAllOp)
def _all_to_all(site: Site[dialect.AllToAllOp]) -> None:
    op, layout, emit = site.op, site.results[0], site.before()
    params = sorted(op.params.data, key=lambda param: param.tgt_dim)
    sizes = [total_size(param.axes, layout.mesh) for param in params]
    groups = replica_groups([axis for param in params for axis in param.axes], layout, site.target)

    def exchange(value: SSAValue, split_dim: int, concat_dim: int, shape: Sequence[int]) -> SSAValue:
        properties: dict[str, Attribute] = {
            "split_dimension": IntegerAttr(split_dim, i64),
            "concat_dimension": IntegerAttr(concat_dim, i64),
            "split_count": IntegerAttr(math.prod(sizes), i64),
            "replica_groups": groups,
            "channel_handle": site.target.channels.next(),
        }
        return emit.insert(
            hlo.AllToAllOp.create(operands=[value], properties=properties, result_types=[with_shape(value, shape)])
        )

    if len(params) == 1:
        param = params[0]
        site.replace(exchange(op.tensor, param.tgt_dim, param.src_dim, shape_of(op.results[0])))
        return
    parts = parts_in_front(emit, op.tensor, [param.tgt_dim for param in params], sizes)
    received = exchange(parts, 0, 0, shape_of(parts))
    site.replace(merge_front(emit, received, [param.src_dim for param in params], sizes))


@COLLECTIVES.of(dialect.CollectivePermuteOp)
def _collective_permute(site: Site[dialect.CollectivePermuteOp]) -> None:
    """Each device of the result's layout gets its part from the one that has it; among equals, the order decides.

    Along manual axes no two devices are equal: what they have are parts of different tensors.
    """
    op, manual_axes = site.op, [AxisRef(name) for name in site.manual_axes]
    sources, targets = (
        _device_of_index([*manual_axes, *flat(layout.sharding.dim_axes if layout.sharding else ())], layout.mesh)
        for layout in (site.operands[0], site.results[0])
    )
    pairs = sorted(zip(sources, targets, strict=True))
    properties = {
        "source_target_pairs": device_list([number for pair in pairs for number in pair], (len(pairs), 2)),
        "channel_handle": site.target.channels.next(),
    }
    permute = hlo.CollectivePermuteOp.create(operands=[op.tensor], properties=properties, result_types=[op.tensor.type])
    site.replace(site.before().insert(permute))


def _device_of_index(axes: Sequence[AxisRef], mesh: Mesh) -> list[int]:
    """The devices in the order of their places along `axes` and then along all other axes."""
    return sorted(range(mesh.size), key=places(axes, mesh).__getitem__)
