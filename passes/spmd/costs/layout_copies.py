"""Copies of operands and results that bring their dimensions into the order that an operation requires.

| operation | operands | result |
| --- | --- | --- |
| product | batching, free and contracting dimensions, each kind together; or contracting before free ones | |
| convolution | batch, spatial dimensions, features; of the kernel: spatial dimensions, inputs, outputs | as the input |
| all-gather, reduce-scatter | the gathered or scattered dimension first | the same |
| all-to-all | the parts for each device, one after the other | the same |
| top-k | a matrix | |

These are XLA's `DotDecomposer`, `ConvCanonicalization` and `AllToAllDecomposer`, and its layouts of collectives. There
is no copy of an operand that a kernel computes for this operation alone, as it writes the required order, nor of a
result whose users compute it element by element, as they read any order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.passes.spmd.costs.kernels import can_be_fused, source, uses_of
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.reducing_collectives import ReduceScatterOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp

_MATRIX = 2


def layout_copies(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands and results of `op` that are copied."""
    of_operation = _COPIES.get(type(op))
    for value in of_operation(op) if of_operation else ():
        if isinstance(op, AllToAllOp) or (_is_read_otherwise if value.owner is op else _is_kept_otherwise)(value):
            yield value


def _is_read_otherwise(result: SSAValue) -> bool:
    """Return whether a user of `result` needs it in its own order of dimensions."""
    users = [use.operation for use in uses_of(result)]
    return any(_is_read_otherwise(op.result) if isinstance(op, ReshapeOp) else not can_be_fused(op) for op in users)


def _is_kept_otherwise(operand: SSAValue) -> bool:
    """Return whether `operand` is in memory in its own order of dimensions."""
    owner = source(operand).owner
    if isinstance(owner, ReshapeOp):
        return _is_kept_otherwise(owner.operand)
    return not isinstance(owner, Operation) or not can_be_fused(owner) or len([*uses_of(operand)]) > 1


def _of_product(op: DotGeneralOp) -> Iterator[SSAValue]:
    numbers = op.dot_dimension_numbers.data
    for operand, batching, contracting in (
        (op.lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (op.rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ):
        free = [dim for dim in range(len(shape_of(operand))) if dim not in batching and dim not in contracting]
        orders = (*batching, *free, *contracting), (*batching, *contracting, *free)
        if not any(_is_in_order(operand, order) for order in orders):
            yield operand


def _of_convolution(op: ConvolutionOp) -> Iterator[SSAValue]:
    numbers = op.dimension_numbers.data
    for value, (batch, features, *spatial) in ((op.lhs, numbers.input), (op.result, numbers.output)):
        if not _is_in_order(value, (batch, *spatial, features)):
            yield value
    inputs, outputs, *spatial = numbers.kernel
    if not _is_in_order(op.rhs, (*spatial, inputs, outputs)):
        yield op.rhs


def _of_gather(op: AllGatherOp) -> Iterable[SSAValue]:
    return _unless_first(op, op.all_gather_dim.value.data)


def _of_reduce_scatter(op: ReduceScatterOp) -> Iterable[SSAValue]:
    return _unless_first(op, op.scatter_dimension.value.data)


def _unless_first(op: Operation, dimension: int) -> Iterable[SSAValue]:
    values = (*op.operands, *op.results)
    return [value for value in values if any(size > 1 for size in shape_of(value)[:dimension])]


def _of_top_k(op: TopKOp) -> Iterable[SSAValue]:
    return op.operands if len(shape_of(op.operand)) > _MATRIX else ()


def _of_all_to_all(op: AllToAllOp) -> Iterable[SSAValue]:
    return (*op.operands, *op.results)


_COPIES: Mapping[type[Operation], Callable[[Any], Iterable[SSAValue]]] = {
    AllGatherOp: _of_gather,
    AllToAllOp: _of_all_to_all,
    ConvolutionOp: _of_convolution,
    DotGeneralOp: _of_product,
    ReduceScatterOp: _of_reduce_scatter,
    TopKOp: _of_top_k,
}
"""Functions that return the values of an operation with another order of dimensions than it requires."""


def _is_in_order(value: SSAValue, dimensions: Iterable[int]) -> bool:
    """Return whether these dimensions of `value`, without those of size 1, are in the order of its elements."""
    shape = shape_of(value)
    order = [dim for dim in dimensions if shape[dim] != 1]
    while isinstance(transpose := source(value).owner, TransposeOp):
        order = [transpose.permutation.get_values()[dim] for dim in order]
        value = transpose.operand
    return order == sorted(order)
