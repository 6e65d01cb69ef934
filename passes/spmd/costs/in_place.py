"""Operations whose results are in the buffers of operands."""

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.cumulative import is_cumulative
from sdy.passes.spmd.costs.kernels import Kernel, source, uses_of
from sdy.passes.spmd.costs.layout_copies import have_equal_orders
from sdy.stablehlo.control_flow import CaseOp, IfOp, WhileOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import BitcastConvertOp, ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp
from sdy.stablehlo.sort import SortOp

PLACEMENT = "annotate_device_placement"
"""The target of JAX's custom call that moves a value to another memory."""

_MATRIX = 2
_VIEWS = ReshapeOp | TransposeOp | BitcastConvertOp

Pairs = Iterable[tuple[SSAValue, SSAValue]]
"""Pairs of an operand and a result."""


def is_placement(op: Operation) -> bool:
    """Return whether `op` is JAX's placement annotation, which moves its operand to host or device memory."""
    return isinstance(op, CustomCallOp) and op.call_target_name.data == PLACEMENT


def in_place(op: Operation) -> Pairs:
    """Return the pairs of an operand and a result that share a buffer if nothing reads the operand afterwards."""
    if isinstance(op, WhileOp | SortOp) or is_placement(op):
        return zip(op.operands, op.results, strict=True)
    if isinstance(op, CustomCallOp):
        aliases = [alias.data for alias in op.output_operand_aliases]
        return [(op.operands[each.operand_index], op.results[(*each.output_tuple_indices, 0)[0]]) for each in aliases]
    if isinstance(op, DynamicUpdateSliceOp):
        return [(op.operand, op.result)]
    if isinstance(op, ScatterOp):
        return zip(op.inputs, op.results, strict=True)
    return ()


def overwritable(kernel: Kernel) -> Pairs:
    """Return the pairs of a value that a kernel reads element by element and its result, if they have the same shape.

    XLA computes products as matrices, or stacks of them, and reshapes their operands and results to that, and those of
    cumulative reductions to parts. It gives the updates of a scatter dimensions of size 1 (`scatter_simplifier.cc`).
    """
    return [
        (value, result)
        for result in kernel.operation.results[:1]
        for value in kernel.elementwise
        if value.type == result.type
        and _is_reshaped(value) is _is_reshaped(result)
        and have_equal_orders(value, result)
        and not (isinstance(value.owner, Operation) and is_cumulative(value.owner))
    ]


def _is_reshaped(value: SSAValue) -> bool:
    """Return whether `value` has another shape in an operation that computes or reads it."""
    operations = [value.owner, *(use.operation for use in uses_of(value))]
    return any(is_reshaped_for(op, value) for op in operations if isinstance(op, Operation))


def is_reshaped_for(op: Operation, value: SSAValue) -> bool:
    """Return whether `op` needs its operand or result `value` in another shape."""
    if isinstance(op, ScatterOp):
        return value in op.updates and bool(op.scatter_dimension_numbers.data.inserted_window_dims)
    if is_cumulative(op):
        return value in op.operands
    if not isinstance(op, DotGeneralOp):
        return False
    num_batching = len(op.dot_dimension_numbers.data.lhs_batching_dimensions)
    return len(shape_of(value)) - num_batching > _MATRIX or num_batching > 1


def views(kernel: Kernel) -> Pairs:
    """Return the pairs of a value that a kernel reads and a result that is a view of it.

    The layouts of the operands of products and convolutions absorb transposes. A value that a loop passes on unchanged
    is a view of its initial value.
    """
    op = kernel.operation
    if isinstance(op, WhileOp):
        pairs = zip(map(source, op.operands), op.results, passed_on(op), strict=True)
        return [
            (operand, result) for operand, result, is_passed_on in pairs if is_passed_on and operand in kernel.reads
        ]
    if not isinstance(op, _VIEWS) or (isinstance(op, TransposeOp) and not _is_absorbed(op)):
        return ()
    (result,) = op.results
    (viewed,) = op.operands
    viewed = source(viewed)
    while viewed not in kernel.reads and isinstance(viewed.owner, _VIEWS):
        viewed = source(viewed.owner.operands[0])
    is_view = viewed in kernel.reads and value_bytes(viewed) == value_bytes(result)
    return [(viewed, result)] if is_view else ()


def _is_absorbed(transpose: TransposeOp) -> bool:
    """Return whether layouts absorb a transpose: all its users choose them, or it keeps the order of elements."""
    shape = shape_of(transpose.operand)
    order = [dim for dim in transpose.permutation.get_values() if shape[dim] != 1]
    users = [use.operation for use in uses_of(transpose.result)]
    return (
        order == sorted(order)
        or all(isinstance(op, DotOp | DotGeneralOp | ConvolutionOp) for op in users)
        or _is_product_of_matrices(transpose.operand)
    )


def _is_product_of_matrices(value: SSAValue) -> bool:
    """Return whether `value` is a product that nothing else reads, which can be computed in both orders."""
    is_matrix = isinstance(value.owner, DotOp | DotGeneralOp) and len(shape_of(value)) == _MATRIX
    return is_matrix and len([*uses_of(value)]) == 1


def returned_by_branches(op: Operation) -> Pairs:
    """Return the pairs of a value that a branch of `op` returns and a result: the branches write it to one buffer."""
    if not isinstance(op, IfOp | CaseOp):
        return ()
    ends = [region.block.last_op for region in op.regions]
    return [pair for end in ends if end is not None for pair in zip(end.operands, op.results, strict=True)]


def passed_on(loop: WhileOp) -> list[bool]:
    """Return for each carried value whether the body returns it unchanged."""
    block = loop.body.block
    end = block.last_op
    returned = end.operands if end is not None else ()
    return [source(value) is argument for value, argument in zip(returned, block.args, strict=True)]
