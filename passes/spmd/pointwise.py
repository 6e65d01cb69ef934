"""Elementwise application of a reduction body, which combines scalars, to tensors."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation, Region, SSAValue

from sdy.dialect.interfaces import Elementwise
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, shape
from sdy.passes.spmd.ops.constants import splat_of_type
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.emitter import Emitter, with_shape


def is_pointwise(body: Region) -> bool:
    """Return whether `body` has only elementwise operations on its arguments and constants, all of them scalars."""
    known = set[SSAValue](body.block.args)
    for op in body.block.ops:
        if not (isinstance(op, ReturnOp) or (_is_elementwise(op) and known.issuperset(op.operands))):
            return False
        known.update(op.results)
    return all(map(is_scalar, known))


def _is_elementwise(op: Operation) -> bool:
    if isinstance(op, ConstantOp):
        return isinstance(op.value, DenseIntOrFPElementsAttr)
    return has_trait(op, Elementwise) and len(op.results) == 1 and not op.regions


def applied(body: Region, arguments: Sequence[SSAValue], emit: Emitter) -> list[SSAValue]:
    """Emit the pointwise `body` on `arguments`, tensors of equal shape, and return its results."""
    values: dict[SSAValue, SSAValue] = dict(zip(body.block.args, arguments, strict=True))
    sizes = shape(arguments[0].type)
    returned = body.block.last_op
    assert isinstance(returned, ReturnOp)
    for op in body.block.ops:
        if op is returned:
            break
        type_ = with_shape(op.results[0], sizes)
        properties = dict(op.properties)
        if isinstance(op, ConstantOp):
            assert isinstance(op.value, DenseIntOrFPElementsAttr)
            properties["value"] = splat_of_type(op.value, type_)
        copy = type(op).create(
            operands=[values[operand] for operand in op.operands],
            result_types=[type_],
            properties=properties,
            attributes=op.attributes,
        )
        values[op.results[0]] = emit.insert(copy)
    return [values[value] for value in returned.operands]
