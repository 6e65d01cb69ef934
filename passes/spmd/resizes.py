"""Operations that change the sizes of split dimensions: which of them may be rewritten, and the scalars that fill."""

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.constants import constant_elements
from sdy.dialect.shardings import get_sharding
from sdy.ir.elements import splat
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.spmd.ops.constants import splat_of_type
from sdy.passes.spmd.resolution import layout_of
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter


def may_resize(*ops: Operation) -> bool:
    """Whether `ops`, each of which takes the result of the one before, resize a split dimension and may be rewritten.

    They may not with a sharding rule of their own, unreduced axes, several meshes, or dynamic sizes. Scalar operands
    are not looked at.
    """
    values = [value for value in (*ops[0].operands, *(op.results[0] for op in ops)) if shape_of(value)]
    shardings = [sharding for sharding in map(get_sharding, values) if sharding is not None]
    if (
        any(SHARDING_RULE in op.attributes for op in ops)
        or not all(is_static_tensor(value.type) for value in values)
        or any(sharding.unreduced for sharding in shardings)
        or len({sharding.mesh for sharding in shardings}) != 1
    ):
        return False
    layouts = [layout_of(value) for value in values]
    return any(
        len(set(sizes)) > 1 and any(layout.axes[dim] for layout in layouts)
        for dim, sizes in enumerate(zip(*(layout.shape for layout in layouts), strict=True))
    )


def is_filled(value: SSAValue) -> bool:
    """Whether all elements of `value` are known to be equal."""
    return _is_broadcast_scalar(value) or _is_splat(value)


def filling_scalar(value: SSAValue, emit: Emitter) -> SSAValue:
    """Return the scalar that all elements of `value`, which `is_filled`, are."""
    if _is_broadcast_scalar(value):
        assert isinstance(value.owner, BroadcastInDimOp)
        return value.owner.operand
    elements = constant_elements(value)
    assert elements is not None
    return emit.constant(splat_of_type(elements, TensorType(tensor_type(value).element_type, ())))


def are_equal(first: SSAValue, second: SSAValue) -> bool:
    """Whether two values are the same or constants with the same bits."""
    elements = constant_elements(first)
    return first is second or (elements is not None and elements == constant_elements(second))


def _is_broadcast_scalar(value: SSAValue) -> bool:
    return isinstance(value.owner, BroadcastInDimOp) and not shape_of(value.owner.operand)


def _is_splat(value: SSAValue) -> bool:
    elements = constant_elements(value)
    return elements is not None and splat(elements) is not None
