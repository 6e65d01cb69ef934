"""What devices send each other where an operation is made local, as StableHLO's collectives."""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i64
from xdsl.ir import Attribute, Region, SSAValue

from sdy import stablehlo as hlo
from sdy.axes import AxisRef, total_size
from sdy.passes.spmd.elements import IEEE_FLOATS
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.parts import AxesOfDims, dims_with_axes, flat, merge_front, shape_of
from sdy.passes.spmd.replica_groups import replica_groups
from sdy.passes.spmd.target import Target
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import AddOp, CommutativeElementwiseOp, MaxOp, MinOp
from sdy.stablehlo.emitter import Emitter, with_shape
from sdy.stablehlo.reduction import reducer_body

_REDUCERS: dict[str, type[CommutativeElementwiseOp]] = {"sum": AddOp, "max": MaxOp, "min": MinOp}


def gather(emit: Emitter, value: SSAValue, axes_of_dims: AxesOfDims, layout: Layout, target: Target) -> SSAValue:
    """`value` with the parts that devices along the axes of each dimension have put one after the other.

    `layout` says which mesh the axes are of.
    """
    dims = dims_with_axes(axes_of_dims)
    sizes = [total_size(axes_of_dims[dim], layout.mesh) for dim in dims]
    if 0 in shape_of(value):
        whole = [size * total_size(axes, layout.mesh) for size, axes in zip(shape_of(value), axes_of_dims, strict=True)]
        return emit.filled(with_shape(value, whole), 0)

    def all_gather(value: SSAValue, dim: int, axes: Sequence[AxisRef]) -> SSAValue:
        properties = {"all_gather_dim": IntegerAttr(dim, i64), **between(axes, layout, target)}
        gathered = list(shape_of(value))
        gathered[dim] *= total_size(axes, layout.mesh)
        return emit.insert(
            hlo.AllGatherOp.create(operands=[value], properties=properties, result_types=[with_shape(value, gathered)])
        )

    if target.per_dim_all_gather or len(dims) <= 1:
        for dim in reversed(dims):
            value = all_gather(value, dim, axes_of_dims[dim])
        return value
    return merge_front(emit, all_gather(emit.reshape(value, (1, *shape_of(value))), 0, flat(axes_of_dims)), dims, sizes)


def all_reduce(
    emit: Emitter, value: SSAValue, axes: Sequence[AxisRef], reduction: str, layout: Layout, target: Target
) -> SSAValue:
    """What devices along `axes`, which are of the mesh of `layout`, have of `value`, combined."""
    reduce = hlo.AllReduceOp.create(
        operands=[value],
        properties=between(axes, layout, target),
        result_types=[value.type],
        regions=[reducer(value, reduction)],
    )
    return emit.insert(reduce)


def all_reduce_bits(
    emit: Emitter, value: SSAValue, axes: Sequence[AxisRef], layout: Layout, target: Target
) -> SSAValue:
    """Sum `value` over the devices along `axes`, where all but one device have zero for each element.

    The sum is that of integers: collectives of floats lose the sign of -0.0, and XLA widens those of narrow ones.
    """
    element_type = tensor_type(value).element_type
    if not isinstance(element_type, IEEE_FLOATS):
        return all_reduce(emit, value, axes, "sum", layout, target)
    bits = emit.bitcast(value, IntegerType(element_type.bitwidth))
    return emit.bitcast(all_reduce(emit, bits, axes, "sum", layout, target), element_type)


def between(axes: Sequence[AxisRef], layout: Layout, target: Target) -> dict[str, Attribute]:
    """The properties that say which devices a collective is between."""
    return {
        "replica_groups": replica_groups(axes, layout, target),
        "channel_handle": target.channels.next(),
        "use_global_device_ids": UnitAttr(),
    }


def reducer(value: SSAValue, reduction: str) -> Region:
    """The body of a collective that combines elements of `value`."""
    return reducer_body(_REDUCERS[reduction], value)
