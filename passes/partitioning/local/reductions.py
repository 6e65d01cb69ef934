"""Operations whose results are partial where a dimension that they reduce is split.

What the reduction starts from must then count once: one device of those that hold partial results, the leader, starts
from it, the others from the identity of the reduction.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
)
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue

from sdy.passes.partitioning.elements import bounds
from sdy.passes.partitioning.local.whole import compute_whole
from sdy.passes.partitioning.parts import on_leader
from sdy.passes.partitioning.site import Lowerings, Site
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp, XorOp
from sdy.stablehlo.reduction import ReduceOp

REDUCTIONS = Lowerings()

_WITH_INFINITY = (Float16Type, BFloat16Type, Float32Type, Float64Type)


@REDUCTIONS.of(ReduceOp)
def _reduce(site: Site[ReduceOp]) -> None:
    op = site.op
    axes = [axis for dim in op.dimensions.get_values() for axis in site.operands[0].axes[dim]]
    if not axes:
        return
    identities = identities_of(op.body, [tensor_type(value).element_type for value in op.inputs])
    if identities is None:
        compute_whole(site, "what it starts from would count several times")
        return
    for index, identity in enumerate(identities, len(op.inputs)):
        if not _is_constant(op.operands[index], identity):
            op.operands[index] = on_leader(site.before(), op.operands[index], identity, axes, site.mesh)


def identities_of(body: Region, element_types: Sequence[Attribute]) -> list[float] | None:
    """For each tensor that `body` reduces, the element that leaves any other as it is.

    None where one of the reductions is no known one, takes more than its own tensor, or has no such element.
    """
    block, count = body.block, len(element_types)
    reduced = block.last_op.operands if block.last_op is not None else ()
    if len(reduced) != count or len(list(block.ops)) != count + 1:
        return None
    identities: list[float] = []
    for index, (value, element_type) in enumerate(zip(reduced, element_types, strict=True)):
        pair = {block.args[index], block.args[count + index]}
        if not isinstance(value, OpResult) or set(value.op.operands) != pair:
            return None
        low, high = bounds(element_type)
        known: dict[type[Operation], float] = {
            AddOp: 0,
            MulOp: 1,
            MaxOp: low,
            MinOp: high,
            AndOp: -1 if low < 0 else high,
            OrOp: 0,
            XorOp: 0,
        }
        identity = known.get(type(value.op))
        if identity is None or not _has(element_type, identity):
            return None
        identities.append(identity)
    return identities


def _has(element_type: Attribute, element: float) -> bool:
    return not isinstance(element_type, AnyFloat) or math.isfinite(element) or isinstance(element_type, _WITH_INFINITY)


def _is_constant(value: SSAValue, expected: float) -> bool:
    if not isinstance(value, OpResult) or not isinstance(value.op, ConstantOp):
        return False
    elements = value.op.value
    return isinstance(elements, DenseIntOrFPElementsAttr) and all(each == expected for each in elements.get_values())
