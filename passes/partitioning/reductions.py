"""Operations whose results are partial where a dimension that they reduce is split.

What the reduction starts from must then count once: one device of those that hold partial results, the leader, starts
from it, the others from the identity of the reduction.
"""

import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.passes.common.device_groups import shard_indices
from sdy.passes.partitioning.emitter import Emitter, before
from sdy.passes.partitioning.site import Lowerings, Site
from sdy.passes.partitioning.whole import compute_whole
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp, XorOp
from sdy.stablehlo.reduction import ReduceOp

REDUCTIONS = Lowerings()


@REDUCTIONS.of(ReduceOp)
def _reduce(site: Site[ReduceOp]) -> None:
    op = site.op
    axes = [axis for dim in op.dimensions.get_values() for axis in site.operands[0].axes[dim]]
    if not axes:
        return
    identity = identity_of(op.body, tensor_type(op.inputs[0]).element_type)
    if identity is None or len(op.inputs) != 1:
        compute_whole(site, "what it starts from would count several times")
    elif not _is_constant(op.init_values[0], identity):
        emit = before(op)
        op.operands[1] = on_leader(emit, op.init_values[0], identity, axes, site.mesh)


def on_leader(emit: Emitter, value: SSAValue, identity: float, axes: Sequence[AxisRef], mesh: Mesh) -> SSAValue:
    """`value` on the first device along `axes`, and tensors filled with `identity` on the others."""
    index = emit.of_device(shard_indices(axes, mesh))
    is_leader = emit.compare(ComparisonDirection.EQ, index, emit.integers([0], ()))
    return emit.select(is_leader, value, emit.filled(tensor_type(value), identity))


def identity_of(body: Region, element_type: Attribute) -> float | None:
    """The element that the reduction `body` leaves any other as it is with; None for a body that is no known one."""
    block = body.block
    reducer = block.first_op
    if reducer is None or reducer.next_op is not block.last_op or set(reducer.operands) != set(block.args):
        return None
    low, high = bounds(element_type)
    identities: dict[type[Operation], float] = {
        AddOp: 0,
        MulOp: 1,
        MaxOp: low,
        MinOp: high,
        AndOp: -1 if low < 0 else high,
        OrOp: 0,
        XorOp: 0,
    }
    return identities.get(type(reducer))


def bounds(element_type: Attribute) -> tuple[float, float]:
    """The least and the greatest element of a type."""
    if not isinstance(element_type, IntegerType):
        return -math.inf, math.inf
    integer = cast(IntegerType, element_type)
    width = integer.width.data
    if width == 1 or integer.signedness.data is Signedness.UNSIGNED:
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def _is_constant(value: SSAValue, expected: float) -> bool:
    if not isinstance(value, OpResult) or not isinstance(value.op, ConstantOp):
        return False
    elements = value.op.value
    return isinstance(elements, DenseIntOrFPElementsAttr) and all(each == expected for each in elements.get_values())
