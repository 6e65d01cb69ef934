"""Copies of operands and results that bring their dimensions into the order that an operation requires.

| operation | operands | result |
| --- | --- | --- |
| product | batching, free and contracting dimensions, each kind together; or contracting before free ones | |
| product on CPUs | contracting dimensions last on the left and first on the right; or any order of a matrix | |
| custom call | `operand_layouts`, such as columns first for LAPACK | `result_layouts` |
| convolution | batch, spatial dimensions, features; of the kernel: spatial dimensions, inputs, outputs | as the input |
| all-gather, reduce-scatter | the gathered or scattered dimension first | the same |
| all-to-all | the parts for each device, one after the other | the same |
| top-k | a matrix | |

These are XLA's `DotDecomposer`, `ConvCanonicalization` and `AllToAllDecomposer`, and its layouts of collectives. There
is no copy of an operand that a kernel computes for this operation alone, as it writes the required order, nor of a
result whose users compute it element by element, as they read any order.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.kernels import can_be_fused, source, uses_of
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.reducing_collectives import ReduceScatterOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp

_MATRIX = 2


def layout_copies(op: Operation, backend: Backend = Backend.ACCELERATOR) -> Iterator[SSAValue]:
    """Yield the operands and results of `op` that are copied if it is compiled by `backend`."""
    for value in _other_orders(op, backend):
        is_result = value.owner is op
        if isinstance(op, AllToAllOp) or (
            _is_read_otherwise(value, backend) if is_result else _is_kept_otherwise(value)
        ):
            yield value


def have_equal_orders(operand: SSAValue, result: SSAValue) -> bool:
    """Return whether an elementwise operation writes its result in the order of dimensions in which it reads `operand`.

    It writes the order that all users of the result require.
    """
    readers = [(use.operation, use.operation.operands[use.index]) for use in uses_of(result)]
    is_written_otherwise = bool(readers) and all(
        isinstance(user, CustomCallOp) and value in [*_of_custom_call(user)] for user, value in readers
    )
    return _is_in_another_order(operand) is is_written_otherwise


def _is_in_another_order(value: SSAValue) -> bool:
    """Return whether the operation that computes `value` writes its dimensions in another order."""
    owner = value.owner
    return isinstance(owner, Operation) and value in [*_other_orders(owner, Backend.ACCELERATOR)]


def order_of_copy(op: Operation, operand: SSAValue) -> Hashable:
    """Return the order of dimensions to which an operand is copied: operations that require the same order share it."""
    if isinstance(op, DotGeneralOp):
        return next((*needed,) for factor, (needed, _) in _orders_of_factors(op) if factor is operand)
    if isinstance(op, CustomCallOp):
        return next(
            layout for each, layout in zip(op.operands, _orders(op.operand_layouts), strict=True) if each is operand
        )
    return op


def _other_orders(op: Operation, backend: Backend) -> Iterable[SSAValue]:
    """Return the values of `op` that have another order of dimensions than it requires."""
    of_operation = _OTHER_ORDERS[backend].get(type(op))
    return of_operation(op) if of_operation else ()


def _is_read_otherwise(result: SSAValue, backend: Backend) -> bool:
    """Return whether a user of `result` needs it in its own order of dimensions; some users copy it to another one."""
    for use in uses_of(result):
        user = use.operation
        if isinstance(user, ReshapeOp):
            if _is_read_otherwise(user.result, backend):
                return True
        elif not can_be_fused(user) and user.operands[use.index] not in [*_other_orders(user, backend)]:
            return True
    return False


def _is_kept_otherwise(operand: SSAValue) -> bool:
    """Return whether `operand` is in memory in its own order of dimensions."""
    owner = source(operand).owner
    if isinstance(owner, ReshapeOp):
        return _is_kept_otherwise(owner.operand)
    if isinstance(owner, CustomCallOp) and source(operand) in [*_of_custom_call(owner)]:
        return False
    if not isinstance(owner, Operation) or not can_be_fused(owner):
        return True
    users = [use.operation for use in uses_of(operand)]
    return len(users) > 1 and not all(isinstance(user, CustomCallOp) for user in users)


def _of_product(op: DotGeneralOp) -> Iterator[SSAValue]:
    for operand, orders in _orders_of_factors(op):
        if not any(_is_in_order(operand, order) for order in orders):
            yield operand


def _of_product_on_cpu(op: DotGeneralOp) -> Iterator[SSAValue]:
    is_batched = bool(op.dot_dimension_numbers.data.lhs_batching_dimensions)
    for operand, (needed, transposed) in _orders_of_factors(op):
        is_matrix = len(shape_of(operand)) <= _MATRIX + is_batched
        if not (_is_in_order(operand, needed) or (is_matrix and _is_in_order(operand, transposed))):
            yield operand


def reads_transposed_matrix(op: DotGeneralOp) -> bool:
    """Return whether XLA for CPUs computes a product of two matrices and reads one transposed."""
    if op.dot_dimension_numbers.data.lhs_batching_dimensions:
        return False
    return any(
        len(shape_of(operand)) <= _MATRIX and not _is_in_order(operand, needed)
        for operand, (needed, _) in _orders_of_factors(op)
    )


def _orders_of_factors(op: DotGeneralOp) -> Iterator[tuple[SSAValue, tuple[Sequence[int], Sequence[int]]]]:
    """Yield the operands of a product, the orders of their dimensions in a product of matrices, and transposed ones."""
    numbers = op.dot_dimension_numbers.data
    for operand, batching, contracting in (
        (op.lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (op.rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ):
        free = [dim for dim in range(len(shape_of(operand))) if dim not in batching and dim not in contracting]
        orders = (*batching, *free, *contracting), (*batching, *contracting, *free)
        yield operand, orders if operand is op.lhs else (orders[1], orders[0])


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


def _of_custom_call(op: CustomCallOp) -> Iterator[SSAValue]:
    for value, order in (
        *zip(op.operands, _orders(op.operand_layouts), strict=False),
        *zip(op.results, _orders(op.result_layouts), strict=False),
    ):
        if len(order) >= _MATRIX and not _is_in_order(value, order):
            yield value


def _orders(layouts: Iterable[DenseIntOrFPElementsAttr] | None) -> list[tuple[int, ...]]:
    """Return the orders of dimensions of layouts, which name the dimensions from the innermost one."""
    return [(*np.array(layout.get_values(), int)[::-1].tolist(),) for layout in layouts or ()]


_Table = Mapping[type[Operation], Callable[[Any], Iterable[SSAValue]]]

_ON_ACCELERATORS: _Table = {
    AllGatherOp: _of_gather,
    AllToAllOp: _of_all_to_all,
    ConvolutionOp: _of_convolution,
    CustomCallOp: _of_custom_call,
    DotGeneralOp: _of_product,
    ReduceScatterOp: _of_reduce_scatter,
    TopKOp: _of_top_k,
}

_OTHER_ORDERS: Mapping[Backend, _Table] = {
    Backend.ACCELERATOR: _ON_ACCELERATORS,
    Backend.CPU: {**_ON_ACCELERATORS, DotGeneralOp: _of_product_on_cpu},
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
