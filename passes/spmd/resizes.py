"""Resizes: operations that change the size of a sharded dimension, such as slices and pads, and their fill values."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.constants import constant_elements
from sdy.dialect.shardings import get_sharding
from sdy.ir.elements import splat
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.spmd.emit.resolution import layout_of
from sdy.passes.spmd.ops.constants import splat_of_type
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter


def may_resize(*ops: Operation) -> bool:
    """Return whether a chain of operations resizes a sharded dimension and may be rewritten.

    Args:
        *ops: The operations; each but the first uses the result of the previous one.
    """
    values = _tensors(ops)
    if not may_rewrite(*ops) or not any(map(get_sharding, values)):
        return False
    layouts = [layout_of(value) for value in values]
    return any(
        len(set(sizes)) > 1 and any(layout.axes[dim] for layout in layouts)
        for dim, sizes in enumerate(zip(*(layout.shape for layout in layouts), strict=True))
    )


def may_rewrite(*ops: Operation) -> bool:
    """Return whether a chain of operations may be rewritten.

    Custom sharding rules, unreduced axes, several meshes and dynamic sizes prevent that. Scalars are ignored.
    """
    values = _tensors(ops)
    shardings = [sharding for sharding in map(get_sharding, values) if sharding is not None]
    return (
        not any(SHARDING_RULE in op.attributes for op in ops)
        and all(is_static_tensor(value.type) for value in values)
        and not any(sharding.unreduced for sharding in shardings)
        and len({sharding.mesh for sharding in shardings}) <= 1
    )


def _tensors(ops: Sequence[Operation]) -> list[SSAValue]:
    """Return the operands of a chain of operations and their results, but scalars."""
    return [value for value in (*ops[0].operands, *(op.results[0] for op in ops)) if shape_of(value)]


def is_filled(value: SSAValue) -> bool:
    """Return whether `value` is a broadcast scalar or a splat constant."""
    return _is_broadcast_scalar(value) or _is_splat(value)


def filling_scalar(value: SSAValue, emit: Emitter) -> SSAValue:
    """Return the scalar that fills `value`, for which `is_filled` is true; `emit` inserts it if it is a constant."""
    if _is_broadcast_scalar(value):
        assert isinstance(value.owner, BroadcastInDimOp)
        return value.owner.operand
    elements = constant_elements(value)
    assert elements is not None
    return emit.constant(splat_of_type(elements, TensorType(tensor_type(value).element_type, ())))


def are_equal(first: SSAValue, second: SSAValue) -> bool:
    """Return whether two values are identical, or constants with equal elements."""
    elements = constant_elements(first)
    return first is second or (elements is not None and elements == constant_elements(second))


def _is_broadcast_scalar(value: SSAValue) -> bool:
    return isinstance(value.owner, BroadcastInDimOp) and not shape_of(value.owner.operand)


def _is_splat(value: SSAValue) -> bool:
    elements = constant_elements(value)
    return elements is not None and splat(elements) is not None
