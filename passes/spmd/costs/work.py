"""What an operation makes a device do: operations on numbers, and bytes that go through memory.

What is computed as part of what uses it never reaches memory; only products and convolutions can take longer than the
bytes that they read and write.
"""

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.ir.traits import is_terminator
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.stablehlo import AllGatherOp, AllReduceOp, AllToAllOp, CollectivePermuteOp, ReduceScatterOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp

_COLLECTIVES = AllGatherOp | AllReduceOp | AllToAllOp | CollectivePermuteOp | ReduceScatterOp


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation on whole tensors takes."""

    operations: float
    """A multiply-add is two of them."""
    element_type: str
    """That of what is multiplied, if anything is."""
    reads: tuple[bool, ...]
    """Which operands are read from memory."""
    writes: tuple[bool, ...]
    """Which results are written to memory."""


def work_of(op: Operation, fused: FusedValues) -> Work:
    """What `op` takes, where `fused` values are not in memory.

    Of a collective, what is received counts, and nothing else; what is returned stays in place.
    """
    if isinstance(op, _COLLECTIVES) or is_terminator(op):
        return Work(0.0, "", (False,) * len(op.operands), (False,) * len(op.results))
    operations = _operations(op)
    return Work(
        operations,
        _element_type(op.operands[0]) if operations else "",
        tuple([operand not in fused and value_bytes(operand) > 0 for operand in op.operands]),
        tuple([result not in fused and value_bytes(result) > 0 for result in op.results]),
    )


def seconds_of_work(operations: float, element_type: str, traffic: float, hardware: Hardware) -> float:
    """How long a device takes for so many operations, and as many bytes of memory `traffic` at the same time."""
    return max(operations / hardware.peak_of(element_type), traffic / hardware.memory_bandwidth)


def seconds_of(op: Operation, hardware: Hardware, fused: FusedValues) -> float:
    """How long a device takes for `op`, without what is inside of it."""
    work = work_of(op, fused)
    read = sum(value_bytes(each) for each, is_read in zip(op.operands, work.reads, strict=True) if is_read)
    written = sum(value_bytes(each) for each, is_written in zip(op.results, work.writes, strict=True) if is_written)
    return seconds_of_work(work.operations, work.element_type, read + written, hardware)


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
