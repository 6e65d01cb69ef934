"""Roofline model of one operation: its arithmetic operations and its memory traffic.

Only matrix products and convolutions are counted as arithmetic; all other operations are bound by memory bandwidth.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.traffic import Times, times_in_memory
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp


@dataclass(frozen=True, slots=True)
class Work:
    """The arithmetic and memory traffic of an operation on unpartitioned tensors."""

    operations: float
    """The number of arithmetic operations; a multiply-add counts as two."""
    element_type: str
    """The element type of the factors of a product; empty for operations without arithmetic."""
    times: Times
    """The number of memory reads of each operand and writes of each result."""

    def seconds(self, parts: int, bytes_of: Iterable[float], hardware: Hardware) -> float:
        """Estimate the time in seconds of one of `parts` equal shards of the operation.

        Args:
            parts: The number of shards.
            bytes_of: The bytes of one device's shard of each operand, then of each result.
            hardware: The hardware.
        """
        traffic = sum([times * bytes_ for times, bytes_ in zip(self.times, bytes_of, strict=True) if times])
        return max(self.operations / parts / hardware.peak_of(self.element_type), traffic / hardware.memory_bandwidth)


def work_of(op: Operation, fused: FusedValues) -> Work:
    """Return the arithmetic and memory traffic of `op`; `fused` values cause no traffic."""
    operations = _operations(op)
    return Work(operations, _element_type(op.operands[0]) if operations else "", times_in_memory(op, fused))


def seconds_of(op: Operation, hardware: Hardware, fused: FusedValues) -> float:
    """Estimate the time in seconds of `op` on one device, without the operations nested in it."""
    return work_of(op, fused).seconds(1, map(value_bytes, (*op.operands, *op.results)), hardware)


def _operations(op: Operation) -> float:
    match op:
        case DotGeneralOp():
            summed = op.dot_dimension_numbers.data.lhs_contracting_dimensions
            return 2.0 * math.prod(shape_of(op.result)) * math.prod(shape_of(op.lhs)[dim] for dim in summed)
        case DotOp():
            return 2.0 * math.prod(shape_of(op.result)) * shape_of(op.lhs)[-1]
        case ConvolutionOp():
            features = shape_of(op.rhs)[op.dimension_numbers.data.kernel_output_feature_dimension]
            return 2.0 * math.prod(shape_of(op.result)) * math.prod(shape_of(op.rhs)) / max(features, 1)
        case _:
            return 0.0


def _element_type(value: SSAValue) -> str:
    return str(tensor_type(value).element_type) if isinstance(value.type, TensorType) else ""
