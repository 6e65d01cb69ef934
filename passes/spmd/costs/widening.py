"""Values that take more memory than their types: narrow floats and indices.

XLA for CPUs computes few operations in narrow floats. It converts the operands of the others to f32 before, and the
results back when they are read. Operations that a kernel computes element by element are converted inside of it
(`FloatNormalization`). Since jaxlib 0.11, YNNPACK computes products of bf16, except for those of transposed matrices,
and scatters, sorts and slices are not converted. Found by compiling each operation with jax 0.10, 0.11 and 0.12.

The indices of a scatter along batching dimensions get those of the batch, too.
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from xdsl.dialects.builtin import BFloat16Type, Float16Type, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.passes.spmd.costs.in_place import passed_on
from sdy.passes.spmd.costs.kernels import can_be_fused, source, uses_of
from sdy.passes.spmd.costs.layout_copies import reads_transposed_matrix
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectivePermuteOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp
from sdy.stablehlo.sort import SortOp

WIDTH = 2
"""The bytes of f32 relative to those of a narrow float."""

_PRODUCTS = (ConvolutionOp, DotGeneralOp)
_COLLECTIVES = (AllGatherOp, AllReduceOp, AllToAllOp, CollectivePermuteOp, ReduceScatterOp)


def _computes_bf16() -> bool:
    """Return whether XLA computes some operations in bf16; without jaxlib, as its newest version does."""
    try:
        major, minor, *_ = version("jaxlib").split(".")
    except PackageNotFoundError:
        return True
    return (int(major), int(minor)) >= (0, 11)


_COMPUTES_BF16 = _computes_bf16()

_WIDENED: Mapping[type[Attribute], tuple[type[Operation], ...]] = {
    BFloat16Type: (*_PRODUCTS, *_COLLECTIVES, *(() if _COMPUTES_BF16 else (ScatterOp, SortOp))),
    Float16Type: _PRODUCTS,
}
"""The operations that XLA computes in f32 instead, by element type."""


def is_widened(op: Operation, value: SSAValue) -> bool:
    """Return whether XLA for CPUs computes `op`, which reads or writes `value`, in f32 instead."""
    if isinstance(op, DotGeneralOp) and _COMPUTES_BF16 and _is_bfloat16(value):
        return reads_transposed_matrix(op)
    return isinstance(op, _widening(value))


def width(value: SSAValue) -> int:
    """Return the bytes that the kernel that computes `value` writes, relative to those of its type."""
    owner = value.owner
    return WIDTH if isinstance(owner, Operation) and is_widened(owner, value) else written_width(value)


def width_for(op: Operation, operand: SSAValue) -> int:
    """Return the bytes of an operand as `op` reads it, relative to those of its type."""
    if isinstance(op, ScatterOp) and operand is op.scatter_indices:
        numbers = op.scatter_dimension_numbers.data
        count = max(len(numbers.scatter_dims_to_operand_dims), 1)
        return -(-(count + len(numbers.input_batching_dims)) // count)
    return WIDTH if is_widened(op, operand) else 1


def written_width(value: SSAValue) -> int:
    """Return the width in which all operations read `value`, if a kernel can write it so, or else 1."""
    owner = source(value).owner
    if not isinstance(owner, Operation):
        return 1
    if isinstance(owner, ReshapeOp):
        return written_width(owner.operand)
    widths = {width_for(use.operation, value) for use in uses_of(value)} if can_be_fused(owner) else ()
    return widths.pop() if len(widths) == 1 else 1


def widened_in_loop(op: Operation) -> list[SSAValue]:
    """Return the values that a loop passes on unchanged and slices, where XLA converts them as a whole before the loop.

    It then slices f32 instead of bf16, and the conversion does not depend on the iteration
    (`WhileLoopInvariantCodeMotion`).
    """
    if _COMPUTES_BF16 or not isinstance(op, WhileOp):
        return []
    carried = zip(op.operands, op.body.block.args, passed_on(op), strict=True)
    return [
        operand
        for operand, argument, is_passed_on in carried
        if is_passed_on
        and _is_bfloat16(argument)
        and any(isinstance(use.operation, DynamicSliceOp) for use in argument.uses)
    ]


def _is_bfloat16(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(tensor_type(value).element_type, BFloat16Type)


def _widening(value: SSAValue) -> tuple[type[Operation], ...]:
    """Return the operations for which `value` is f32; none if it is not a narrow float."""
    return _WIDENED.get(type(tensor_type(value).element_type), ()) if isinstance(value.type, TensorType) else ()
