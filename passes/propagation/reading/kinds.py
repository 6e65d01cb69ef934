"""The kinds of operations: operations of one kind share their memoized steps, in all modules of the process."""

from collections.abc import Iterable
from functools import lru_cache, partial

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from sdy.dialect.attributes import OpShardingRuleAttr
from sdy.dialect.interfaces import Sides
from sdy.dialect.ops import PropagationBarrierOp
from sdy.ir.fast_access import next_use, operands_of
from sdy.ir.shapes import is_scalar, is_static_tensor, rank
from sdy.passes.common.properties import is_elementwise
from sdy.passes.propagation.directions import Direction, Role
from sdy.passes.propagation.snapshot import KindsByUse
from sdy.passes.propagation.step import OperationKind
from sdy.rules import ByRule, identity_rule
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp

_ROLES: dict[type[Operation], Role] = {
    ReshapeOp: Role.PASS_THROUGH,
    TransposeOp: Role.PASS_THROUGH,
    DynamicSliceOp: Role.WINDOW,
    DynamicUpdateSliceOp: Role.WINDOW,
    BroadcastInDimOp: Role.BROADCAST,
}
_OFFLOAD_TARGETS = ("MoveToDevice", "MoveToHost")

_kind = lru_cache(2**15)(OperationKind)
_identity = lru_cache(2**12)(identity_rule)


def _kinds_by_use(conservative: bool, operation: Operation, rule: OpShardingRuleAttr) -> KindsByUse:
    if not rule.data.ties_tensors:
        return KindsByUse(None, None)
    elementwise = is_elementwise(operation)
    role = Role.PASS_THROUGH if elementwise else _role(operation)
    alone, reusing = (
        _kind(rule.data, role, reuses, is_elementwise=elementwise, conservative=conservative)
        for reuses in (False, True)
    )
    return KindsByUse(alone, alone if alone.directions == reusing.directions else reusing)


_KINDS_BY_USE = {
    conservative: ByRule(partial(_kinds_by_use, conservative), conservative) for conservative in (False, True)
}


def kinds_by_use(conservative: bool) -> ByRule[KindsByUse]:
    """Return the look-up of an operation's kinds by its sharding rule, built `conservative` or not."""
    return _KINDS_BY_USE[conservative]


def select_kind(kinds: KindsByUse, operation: Operation) -> OperationKind | None:
    """Select the kind of `operation` by the uses of its operands."""
    depends_on_uses = kinds.alone is not kinds.reusing
    return kinds.reusing if depends_on_uses and has_reused(operands_of(operation)) else kinds.alone


def kind_of_barrier(barrier: PropagationBarrierOp) -> OperationKind:
    """Return the kind of a propagation barrier: an identity that propagates in its direction, in all stages."""
    return _kind(_identity_of(barrier.input.type, 1), is_elementwise=True, direction=Direction(barrier.direction))


def kind_of_edge(type_: Attribute, num_sources: int) -> OperationKind | None:
    """Return the kind of an edge between tensors of one type: an identity that propagates in all stages.

    Returns None for scalars and tensors with dynamic shapes, whose shardings do not propagate.
    """
    return _kind(_identity_of(type_, num_sources)) if is_static_tensor(type_) and rank(type_) else None


def kind_of_two_sided_edge(owner: SSAValue, sides: Sides, num_sources: int) -> OperationKind:
    """Return the kind of a data-flow edge whose sharding differs inside and outside of its operation.

    This is the case at the boundary of a manual computation. The sources see the target's sharding from the other side
    of the boundary than its users do. The kind belongs to this edge alone.

    Args:
        owner: The tensor that owns the edge.
        sides: The conversions of a sharding to the outside and to the inside.
        num_sources: The number of sources of the edge.
    """
    outwards, inwards = sides
    from_target, to_target = (outwards, inwards) if isinstance(owner, BlockArgument) else (inwards, outwards)
    return OperationKind(_identity_of(owner.type, num_sources), from_target=from_target, to_target=to_target)


def _identity_of(type_: Attribute, num_sources: int):
    assert isinstance(type_, ShapedType)
    return _identity(type_.get_shape(), num_sources)


def _role(operation: Operation) -> Role:
    if isinstance(operation, CustomCallOp) and operation.call_target_name.data in _OFFLOAD_TARGETS:
        return Role.PASS_THROUGH
    return _ROLES.get(type(operation), Role.OTHER)


def has_reused(operands: Iterable[SSAValue]) -> bool:
    """Return whether any operand, other than a scalar, has several uses. Optimized: called for most operations."""
    for operand in operands:
        use = operand.first_use
        if use is not None and next_use(use) is not None and not is_scalar(operand):
            return True
    return False


def has_several_uses(value: SSAValue) -> bool:
    """Return whether `value` has more than one use."""
    use = value.first_use
    return use is not None and next_use(use) is not None
