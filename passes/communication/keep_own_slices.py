"""`sdy-keep-own-slices`: collectives of the slice that each device keeps."""

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.dialect.interfaces import Elementwise
from sdy.dialect.meshes import device_count
from sdy.interpreter.grid import Grid
from sdy.interpreter.groups import groups_of
from sdy.ir.editing import AnalysisPreservingPass, change_type, erase, erase_unused, replace
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_static_tensor, shape, shape_of
from sdy.ir.walking import operations_of
from sdy.passes.common.properties import uniform_number
from sdy.passes.spmd.device_scalars import DeviceScalars
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp
from sdy.stablehlo.emitter import Emitter, before, with_shape
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp
from sdy.stablehlo.slicing import DynamicSliceOp

_Whole: TypeAlias = AllGatherOp | AllReduceOp


class KeepOwnSlicesPass(AnalysisPreservingPass):
    """Exchange only the elements that each device keeps, where it slices its own part of the result of a collective.

    An all-reduce becomes a reduce-scatter. Before::

        %1 = "stablehlo.all_reduce"(%0) ({add}) {groups of 4} : (tensor<8xf32>) -> tensor<8xf32>
        %2 = stablehlo.partition_id : tensor<ui32>
        %3 = stablehlo.multiply %2, %c2 : tensor<ui32>
        %4 = stablehlo.dynamic_slice %1, %3, sizes = [2] : (tensor<8xf32>, tensor<ui32>) -> tensor<2xf32>

    After::

        %4 = "stablehlo.reduce_scatter"(%0) ({add}) {groups of 4} : (tensor<8xf32>) -> tensor<2xf32>

    An all-gather of another dimension becomes an all-to-all, and one of the same dimension is removed. The slice has
    to be the only use of the result, and to start at the position of the device in its group, whatever it is computed
    from: `jax.lax.axis_index`, or a table. Elementwise operations with constants may be between them, as in a mean.
    People write such slices in functions of `jax.shard_map`.
    """

    name = "sdy-keep-own-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        devices = device_count(op)
        scalars = DeviceScalars(devices)
        for slice_ in operations_of(op, DynamicSliceOp):
            elementwise, whole = _producers(slice_.operand)
            if isinstance(whole, _Whole) and len(whole.operands) == 1:
                _keep_own(slice_, elementwise, whole, devices, scalars)


def _producers(value: SSAValue) -> tuple[Sequence[Operation], object]:
    """Return the elementwise operations that compute `value` from one tensor, the last one first, and its owner.

    Nothing else uses their results and the tensor, which has their shape: a scalar can be the predicate of a select.
    """
    elementwise: list[Operation] = []
    while value.has_one_use() and isinstance(op := value.owner, Operation) and has_trait(op, Elementwise):
        varying = _varying(op)
        if len(varying) != 1 or shape(varying[0].type) != shape(value.type):
            break
        elementwise.append(op)
        value = varying[0]
    return elementwise, value.owner if value.has_one_use() else None


def _varying(op: Operation) -> Sequence[SSAValue]:
    return [operand for operand in op.operands if uniform_number(operand) is None]


def _keep_own(
    slice_: DynamicSliceOp,
    elementwise: Sequence[Operation],
    whole: AllGatherOp | AllReduceOp,
    devices: int,
    scalars: DeviceScalars,
) -> None:
    """Replace a collective and a slice of its result by a collective of the slices, if each device keeps its own."""
    dim = _only_sliced_dim(slice_)
    groups = groups_of(whole, Grid(1, devices))
    parts = len(groups[0])
    if dim is None or parts == 1 or any(len(group) != parts for group in groups):
        return
    size, kept = shape_of(slice_.operand)[dim], shape_of(slice_.result)[dim]
    positions = {device.partition: position for group in groups for position, device in enumerate(group)}
    if kept * parts != size or len(positions) != devices:
        return
    starts = scalars.integers(slice_.start_indices[dim])
    if starts != [kept * positions[device] for device in range(devices)]:
        return
    start_indices = [*slice_.start_indices]
    # The slice may be in a branch that only some devices take, or in a loop: the collective stays where it is.
    own = _own_part(whole, dim, parts, before(whole))
    for op in reversed(elementwise):
        own = _of_part(op, own, before(op))
    replace(slice_, [own])
    for op in (*elementwise, whole):
        erase(op)
    erase_unused(start_indices)


def _only_sliced_dim(slice_: DynamicSliceOp) -> int | None:
    """Return the only dimension that is sliced."""
    if not is_static_tensor(slice_.operand.type):
        return None
    sizes = zip(shape_of(slice_.operand), shape_of(slice_.result), strict=True)
    sliced = [dim for dim, (size, kept) in enumerate(sizes) if kept != size]
    return sliced[0] if len(sliced) == 1 else None


def _own_part(whole: AllGatherOp | AllReduceOp, dim: int, parts: int, emit: Emitter) -> SSAValue:
    """Insert the collective that leaves each device its part, along a dimension, of the result of `whole`."""
    operand, sizes = whole.operands[0], [*shape_of(whole.results[0])]
    sizes[dim] //= parts
    type_ = with_shape(whole.results[0], sizes)
    if isinstance(whole, AllReduceOp):
        properties: dict[str, Attribute] = {**whole.properties, "scatter_dimension": IntegerAttr(dim, i64)}
        regions = [whole.computation.clone()]
        own = ReduceScatterOp.create(operands=[operand], properties=properties, result_types=[type_], regions=regions)
    elif whole.all_gather_dim.value.data == dim:
        return operand
    else:
        properties = {
            **{name: each for name, each in whole.properties.items() if name in ("replica_groups", "channel_handle")},
            "split_dimension": IntegerAttr(dim, i64),
            "concat_dimension": whole.all_gather_dim,
            "split_count": IntegerAttr(parts, i64),
        }
        own = AllToAllOp.create(operands=[operand], properties=properties, result_types=[type_])
    result = emit.insert(own)
    own.location = whole.location
    return result


def _of_part(op: Operation, part: SSAValue, emit: Emitter) -> SSAValue:
    """Insert an elementwise operation on a part of its operand that varies."""
    sizes = shape_of(part)
    operands = {
        operand: part if number is None else emit.filled(with_shape(operand, sizes), number)
        for operand, number in ((operand, uniform_number(operand)) for operand in op.operands)
    }
    new = op.clone(operands)
    change_type(new.results[0], with_shape(op.results[0], sizes))
    result = emit.insert(new)
    new.location = op.location
    return result
