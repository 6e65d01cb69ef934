"""What an operation makes a device do: operations on numbers, and bytes that go through memory.

What is computed as part of what uses it never reaches memory; only products and convolutions can take longer than the
bytes that they read and write.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.passes.spmd.costs.traffic import Times, times_in_memory
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation on whole tensors takes."""

    operations: float
    """A multiply-add is two of them."""
    element_type: str
    """That of what is multiplied, if anything is."""
    times: Times
    """How often operands and results go through memory."""

    def seconds(self, parts: int, bytes_of: Iterable[float], hardware: Hardware) -> float:
        """How long a device takes that does one of so many `parts`, with so many bytes of each operand and result."""
        traffic = sum([times * bytes_ for times, bytes_ in zip(self.times, bytes_of, strict=True) if times])
        return max(self.operations / parts / hardware.peak_of(self.element_type), traffic / hardware.memory_bandwidth)


def work_of(op: Operation, fused: FusedValues) -> Work:
    """What `op` takes, where `fused` values are not in memory."""
    operations = _operations(op)
    return Work(operations, _element_type(op.operands[0]) if operations else "", times_in_memory(op, fused))


def seconds_of(op: Operation, hardware: Hardware, fused: FusedValues) -> float:
    """How long a device takes for `op`, without what is inside of it."""
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
