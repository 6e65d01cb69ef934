"""Constants, iotas and dimension sizes: each device materializes its own shard."""

from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType

from sdy.diagnostics import op_error
from sdy.dialect import ConstantOp as ShardedConstantOp
from sdy.ir.elements import dense, splat
from sdy.passes.spmd.emit.device_shards import offsets, take_shard
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion, carries, unless_empty
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp, IotaOp
from sdy.stablehlo.dynamic_shape import GetDimensionSizeOp


@unless_empty
def _lower_constant(conversion: OpConversion[ShardedConstantOp] | OpConversion[ConstantOp]) -> None:
    """Materialize a splat constant in its local shape; slice each device's shard from any other constant."""
    op, layout = conversion.op, conversion.results[0]
    emit = conversion.before()
    if not layout.is_split:
        conversion.replace(emit.insert(ConstantOp.create(properties={"value": op.value}, result_types=op.result_types)))
        return
    if not isinstance(op.value, DenseIntOrFPElementsAttr):
        raise op_error(op, "a constant whose elements are a resource cannot be split")
    if (element := splat(op.value)) is not None:
        conversion.replace(emit.constant(splat_of_type(element, tensor_type(op.results[0]))))
    else:
        conversion.replace(take_shard(emit, emit.constant(op.value), layout.axes, layout.mesh))


def splat_of_type(value: DenseIntOrFPElementsAttr, type_: TensorType[Any]) -> DenseIntOrFPElementsAttr:
    """Return the splat `value` as a constant of type `type_`."""
    return dense(type_, value.data.data[: value.get_element_type().compile_time_size])


@unless_empty
def _lower_iota(conversion: OpConversion[IotaOp]) -> None:
    """Lower an iota; along a split dimension, add the offset of the device's shard."""
    op, layout, emit = conversion.op, conversion.results[0], conversion.before()
    type_ = tensor_type(op.output)
    dim = op.iota_dimension.value.data
    indices = emit.insert(IotaOp(dim, type_))
    if not layout.axes[dim]:
        conversion.replace(indices)
        return
    start = emit.of_device(offsets(layout.axes[dim], type_.get_shape()[dim], layout.mesh))
    start = emit.broadcast(emit.convert(start, type_.element_type), (), type_.get_shape())
    conversion.replace(emit.add(indices, start))


@unless_empty
def _lower_get_dimension_size(conversion: OpConversion[GetDimensionSizeOp]) -> None:
    """Lower to a constant: the global size of the dimension."""
    op = conversion.op
    size = conversion.operands[0].shape[op.dimension.value.data]
    conversion.replace(conversion.before().filled(tensor_type(op.result), size))


def _pad_constant(conversion: PaddedConversion[ConstantOp] | PaddedConversion[ShardedConstantOp]) -> bool:
    value = splat(conversion.op.value)
    if value is None:
        return False
    conversion.op.value = splat_of_type(value, tensor_type(conversion.op.results[0]))
    return True


_CONSTANT = OperationPartitioning(pad=_pad_constant, lower=_lower_constant, always_lowered=True)

PARTITIONING: PartitioningTable = {
    ConstantOp: _CONSTANT,
    GetDimensionSizeOp: OperationPartitioning(lower=_lower_get_dimension_size, always_lowered=True),
    IotaOp: OperationPartitioning(pad=carries, lower=_lower_iota, always_lowered=True),
    ShardedConstantOp: _CONSTANT,
}
