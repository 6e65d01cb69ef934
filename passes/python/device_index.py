"""Entries of tables by device, as arithmetic of axis indices: the start of a shard is `lax.axis_index("x") * 128`."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue

from sdy import stablehlo
from sdy.dialect.constants import constant_value
from sdy.ir.shapes import shape
from sdy.passes.python.device_axes import DeviceAxes, axes_text
from sdy.passes.python.expressions import Expression, Precedence, binary, call, index
from sdy.passes.python.literals import Array, constant, elements, optional_dtype_of


def entry_of_device(value: SSAValue, axes: DeviceAxes) -> Expression | None:
    """Return `value` as an expression of axis indices if it is an entry of a table by device; None otherwise."""
    table = _table(value)
    if table is None or len(table) != np.prod(axes.sizes):
        return None
    return _affine(table, axes) or index(constant(table), device_index(axes))


def is_part_of_entry(op: Operation, axes: DeviceAxes) -> bool:
    """Return whether all uses of `op` are in entries of tables by device."""
    if not isinstance(
        op, stablehlo.DynamicSliceOp | stablehlo.ConvertOp | stablehlo.ReshapeOp | stablehlo.PartitionIdOp
    ):
        return False
    users = [use.operation for use in op.results[0].uses]
    if isinstance(op, stablehlo.DynamicSliceOp):
        return all(len(user.results) == 1 and entry_of_device(user.results[0], axes) is not None for user in users)
    return all(is_part_of_entry(user, axes) for user in users)


def device_index(axes: DeviceAxes) -> Expression:
    """Return the number of the device."""
    return call("lax.axis_index", axes_text(axes.names))


def _table(value: SSAValue) -> Array | None:
    """Return the table whose entry of this device is `value`, a scalar."""
    if (
        optional_dtype_of(value) is None
        or shape(value.type)
        or not isinstance(value, OpResult)
        or not isinstance(value.op, stablehlo.ReshapeOp)
    ):
        return None
    sliced = value.op.operand.owner
    if not isinstance(sliced, stablehlo.DynamicSliceOp) or len(shape(sliced.operand.type)) != 1:
        return None
    attribute = constant_value(sliced.operand)
    if attribute is None or not _is_device(sliced.start_indices[0]):
        return None
    table = elements(attribute)
    return table if table.dtype.kind in "iu" else None


def _is_device(value: SSAValue) -> bool:
    while isinstance(value, OpResult) and isinstance(value.op, stablehlo.ConvertOp | stablehlo.ReshapeOp):
        value = value.op.operands[0]
    return isinstance(value, OpResult) and isinstance(value.op, stablehlo.PartitionIdOp)


def _affine(table: Array, axes: DeviceAxes) -> Expression | None:
    """Return a table as the sum of an offset and of multiples of axis indices; None if it is none."""
    grid = table.astype(np.int64).reshape(axes.sizes)
    origin = grid[(0,) * grid.ndim]
    steps = [int(grid.take(1, dim).flat[0] - origin) if size > 1 else 0 for dim, size in enumerate(axes.sizes)]
    places = np.indices(grid.shape)
    if not (grid == origin + sum(step * place for step, place in zip(steps, places, strict=True))).all():
        return None
    terms = _terms(axes, steps)
    if origin or not terms:
        return _sum([*terms, Expression(str(origin))]) if terms else None
    return _sum(terms)


def _terms(axes: DeviceAxes, steps: Sequence[int]) -> list[Expression]:
    """Return a term for each run of axes whose indices count together, such as `axis_index(("x", "y")) * 4`."""
    terms: list[Expression] = []
    dim = 0
    while dim < len(steps):
        last = dim
        while last + 1 < len(steps) and steps[last + 1] and steps[last] == steps[last + 1] * axes.sizes[last + 1]:
            last += 1
        if steps[dim]:
            counted = call("lax.axis_index", axes_text(axes.names[dim : last + 1]))
            step = steps[last]
            terms.append(counted if step == 1 else binary(counted, "*", Expression(str(step)), Precedence.PRODUCT))
        dim = last + 1
    return terms


def _sum(terms: Sequence[Expression]) -> Expression:
    total = terms[0]
    for term in terms[1:]:
        total = binary(total, "+", term, Precedence.SUM)
    return total
