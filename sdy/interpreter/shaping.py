"""Constants and data-movement operations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.diagnostics import op_error
from sdy.interpreter.quantization import storage_dtype
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, constant_array, numbers, of_type
from sdy.ir.shapes import shape_of


def _constant(interpreter: Interpreter, op: stablehlo.ConstantOp, args: PythonValues) -> PythonValues:
    if not isinstance(value := op.value, DenseIntOrFPElementsAttr):
        raise op_error(op, "has its value in a resource, which cannot be interpreted")
    return (constant_array(value, storage_dtype(op.output)),)


def iota(shape: Sequence[int], dim: int) -> Array:
    """Return the index of each element along dimension `dim`."""
    sizes = [1] * len(shape)
    sizes[dim] = shape[dim]
    return np.broadcast_to(np.arange(shape[dim]).reshape(sizes), shape)


def _iota(interpreter: Interpreter, op: stablehlo.IotaOp, args: PythonValues) -> PythonValues:
    return (of_type(iota(shape_of(op.output), op.iota_dimension.value.data), op.output),)


def _dynamic_iota(interpreter: Interpreter, op: stablehlo.DynamicIotaOp, args: PythonValues) -> PythonValues:
    return (of_type(iota(numbers(args[0]), op.iota_dimension.value.data), op.result),)


def broadcast(array: Array, dims: Sequence[int], shape: Sequence[int]) -> Array:
    """Broadcast `array` to `shape`, where its dimensions become the dimensions `dims`."""
    sizes = [1] * len(shape)
    for dim, size in zip(dims, array.shape, strict=True):
        sizes[dim] = size
    order = sorted(range(len(dims)), key=lambda place: dims[place])
    return np.broadcast_to(array.transpose(order).reshape(sizes), shape)


def _broadcast_in_dim(interpreter: Interpreter, op: stablehlo.BroadcastInDimOp, args: PythonValues) -> PythonValues:
    return (broadcast(args[0], op.broadcast_dimensions.get_values(), shape_of(op.result)),)


def _dynamic_broadcast_in_dim(
    interpreter: Interpreter, op: stablehlo.DynamicBroadcastInDimOp, args: PythonValues
) -> PythonValues:
    return (broadcast(args[0], op.broadcast_dimensions.get_values(), numbers(args[1])),)


def _broadcast(interpreter: Interpreter, op: stablehlo.BroadcastOp, args: PythonValues) -> PythonValues:
    return (np.broadcast_to(args[0], (*op.broadcast_sizes.get_values(), *args[0].shape)),)


def _reshape(interpreter: Interpreter, op: stablehlo.ReshapeOp, args: PythonValues) -> PythonValues:
    return (args[0].reshape(shape_of(op.result)),)


def _dynamic_reshape(interpreter: Interpreter, op: stablehlo.DynamicReshapeOp, args: PythonValues) -> PythonValues:
    return (args[0].reshape(numbers(args[1])),)


def _transpose(interpreter: Interpreter, op: stablehlo.TransposeOp, args: PythonValues) -> PythonValues:
    return (args[0].transpose(op.permutation.get_values()),)


def _reverse(interpreter: Interpreter, op: stablehlo.ReverseOp, args: PythonValues) -> PythonValues:
    return (np.flip(args[0], op.dimensions.get_values()),)


def _concatenate(interpreter: Interpreter, op: stablehlo.ConcatenateOp, args: PythonValues) -> PythonValues:
    return (np.concatenate(args, op.dimension.value.data),)


def _slice(interpreter: Interpreter, op: stablehlo.SliceOp, args: PythonValues) -> PythonValues:
    return (args[0][tuple(slice(*range_) for range_ in op.ranges())],)


def _real_dynamic_slice(interpreter: Interpreter, op: stablehlo.RealDynamicSliceOp, args: PythonValues) -> PythonValues:
    operand, *bounds = args
    return (operand[tuple(slice(*range_) for range_ in zip(*map(numbers, bounds), strict=True))],)


def clamped_starts(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Clamp scalar start indices so that slices of these sizes are in bounds."""
    return [
        min(max(int(start), 0), size - slice_size) for start, size, slice_size in zip(starts, shape, sizes, strict=True)
    ]


def _window(starts: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))


def _dynamic_slice(interpreter: Interpreter, op: stablehlo.DynamicSliceOp, args: PythonValues) -> PythonValues:
    operand, *starts = args
    sizes = op.slice_sizes.get_values()
    return (operand[_window(clamped_starts(starts, operand.shape, sizes), sizes)],)


def _dynamic_update_slice(
    interpreter: Interpreter, op: stablehlo.DynamicUpdateSliceOp, args: PythonValues
) -> PythonValues:
    operand, update, *starts = args
    result = operand.copy()
    result[_window(clamped_starts(starts, operand.shape, update.shape), update.shape)] = update
    return (result,)


def padded(array: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """Pad `array` with `value` before, after and between elements along each dimension; negative amounts truncate."""
    spread = [size + max(size - 1, 0) * holes for size, holes in zip(array.shape, interior, strict=True)]
    shape = [sum(sizes) for sizes in zip(low, spread, high, strict=True)]
    result = np.full([max(size, 0) for size in shape], value, array.dtype)
    source: list[slice] = []
    target: list[slice] = []
    for before, holes, size, length in zip(low, interior, array.shape, shape, strict=True):
        step = holes + 1
        first = max(-(before // step), 0) if before < 0 else 0
        last = min(size, -((before - length) // step)) if length > before else first
        source.append(slice(first, max(last, first)))
        start = before + first * step
        target.append(slice(start, start + max(last - first, 0) * step, step))
    result[tuple(target)] = array[tuple(source)]
    return result


def _pad(interpreter: Interpreter, op: stablehlo.PadOp, args: PythonValues) -> PythonValues:
    amounts = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    return (padded(*args, *(amount.get_values() for amount in amounts)),)


def _dynamic_pad(interpreter: Interpreter, op: stablehlo.DynamicPadOp, args: PythonValues) -> PythonValues:
    operand, value, *amounts = args
    return (padded(operand, value, *map(numbers, amounts)),)


def _dimension_size(interpreter: Interpreter, op: stablehlo.GetDimensionSizeOp, args: PythonValues) -> PythonValues:
    return (np.array(args[0].shape[op.dimension.value.data], np.int32),)


def _set_dimension_size(interpreter: Interpreter, op: stablehlo.SetDimensionSizeOp, args: PythonValues) -> PythonValues:
    operand, size = args
    return (operand[(slice(None),) * op.dimension.value.data + (slice(0, int(size)),)],)


SHAPING: dict[type[Operation], Implementation] = {
    stablehlo.BroadcastInDimOp: _broadcast_in_dim,
    stablehlo.BroadcastOp: _broadcast,
    stablehlo.ConcatenateOp: _concatenate,
    stablehlo.ConstantOp: _constant,
    stablehlo.DynamicBroadcastInDimOp: _dynamic_broadcast_in_dim,
    stablehlo.DynamicIotaOp: _dynamic_iota,
    stablehlo.DynamicPadOp: _dynamic_pad,
    stablehlo.DynamicReshapeOp: _dynamic_reshape,
    stablehlo.DynamicSliceOp: _dynamic_slice,
    stablehlo.DynamicUpdateSliceOp: _dynamic_update_slice,
    stablehlo.GetDimensionSizeOp: _dimension_size,
    stablehlo.IotaOp: _iota,
    stablehlo.PadOp: _pad,
    stablehlo.RealDynamicSliceOp: _real_dynamic_slice,
    stablehlo.ReshapeOp: _reshape,
    stablehlo.ReverseOp: _reverse,
    stablehlo.SetDimensionSizeOp: _set_dimension_size,
    stablehlo.SliceOp: _slice,
    stablehlo.TransposeOp: _transpose,
}
