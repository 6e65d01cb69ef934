"""Of which kind each operation is: operations of one kind share their steps, in all modules of the process."""

from collections.abc import Iterable
from functools import lru_cache, partial

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from sdy.dialect.attributes import OpShardingRuleAttr
from sdy.dialect.interfaces import Sides
from sdy.dialect.ops import PropagationBarrierOp
from sdy.ir.fields import next_use, operands_of
from sdy.ir.shapes import is_scalar, is_static_tensor, rank
from sdy.passes.common.op_properties import is_elementwise
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
    """The kinds of each operation that has a rule, where rules are conservative or not."""
    return _KINDS_BY_USE[conservative]


def kind_among(kinds: KindsByUse, operation: Operation) -> OperationKind | None:
    """The kind of `operation`, of those that were found for it."""
    is_told = kinds.alone is not kinds.reusing
    return kinds.reusing if is_told and has_reused(operands_of(operation)) else kinds.alone


def kind_of_barrier(barrier: PropagationBarrierOp) -> OperationKind:
    """The kind of a barrier, open at all stages in the direction that it allows."""
    return _kind(_identity_of(barrier.input.type, 1), is_elementwise=True, direction=Direction(barrier.direction))


def kind_of_edge(type_: Attribute, num_sources: int) -> OperationKind | None:
    """The kind of an edge between tensors of one type, which passes through at all stages.

    None for those along which nothing is propagated, which have no dimensions, or some of unknown size.
    """
    return _kind(_identity_of(type_, num_sources)) if is_static_tensor(type_) and rank(type_) else None


def kind_of_two_sided_edge(owner: SSAValue, sides: Sides, num_sources: int) -> OperationKind:
    """The kind of the data-flow edge of `owner`, a tensor, which looks otherwise inside of its operation than outside.

    The sources see the target's sharding from the other side than its users do. It is the kind of this edge alone.
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
    """Whether there is a tensor, other than a scalar, that is read elsewhere too; asked of most operands, and fast."""
    for operand in operands:
        use = operand.first_use
        if use is not None and next_use(use) is not None and not is_scalar(operand):
            return True
    return False


def has_several_uses(value: SSAValue) -> bool:
    """Whether `value` is used more than once."""
    use = value.first_use
    return use is not None and next_use(use) is not None
