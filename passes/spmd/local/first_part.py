"""All-gathers of which no more than the first part is used: the device that has that part gives it to all.

A dimension of one element over eight devices is padded to eight, of which the first device has what matters. It is sent
to all by an all-reduce in which the others have what changes no sum:

    all-gather    a device receives seven parts, to use the first of eight
    all-reduce    a device receives as much as 2 * 7/8 parts
"""

import math
from typing import Any

from xdsl.dialects.builtin import AnyFloat, ComplexType, TensorType
from xdsl.ir import SSAValue

from sdy.axes import total_size
from sdy.dialect import AllGatherOp
from sdy.ir.shapes import shape_of
from sdy.passes.spmd.local.communication import all_reduce
from sdy.passes.spmd.parts import AxesOfDims, flat, on_leader
from sdy.passes.spmd.site import Site
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.slicing import SliceOp


def share_first_parts(site: Site[AllGatherOp]) -> tuple[SSAValue, AxesOfDims]:
    """The operand after its first parts were given to all where only these are used, and the axes left to gather."""
    op, layout = site.op, site.results[0]
    gathered, local = op.gathering_axes.data, shape_of(op.tensor)
    if not op.result.uses or not all(isinstance(use.operation, SliceOp) for use in op.result.uses):
        return op.tensor, gathered
    used = _limits(op.result)
    first = [axes if used[dim] <= local[dim] else () for dim, axes in enumerate(gathered)]
    shape = [used[dim] if axes else local[dim] for dim, axes in enumerate(first)]
    parts = total_size(flat(first), layout.mesh)
    element_type = tensor_type(op.tensor).element_type
    if not 0 < 2 * math.prod(shape) < parts * math.prod(local) or isinstance(element_type, ComplexType):
        return op.tensor, gathered
    emit = site.before()
    value = emit.slice(op.tensor, [0] * len(shape), shape)
    value = on_leader(emit, value, _zero(tensor_type(value)), flat(first), layout.mesh)
    value = all_reduce(emit, value, flat(first), "sum", layout, site.target)
    return value, [() if done else axes for axes, done in zip(gathered, first, strict=True)]


def _limits(value: SSAValue) -> list[int]:
    """Where all that is used of a tensor ends, whose users are slices."""
    slices = [use.operation for use in value.uses if isinstance(use.operation, SliceOp)]
    return [max(limits) for limits in zip(*(op.limit_indices.get_values() for op in slices), strict=True)]


def _zero(type_: TensorType[Any]) -> float:
    """What changes no other number where it is added, -0.0 included."""
    return -0.0 if isinstance(type_.element_type, AnyFloat) else 0
