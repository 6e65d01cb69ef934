"""Which kind of step each operation is: operations of one kind share their steps, in all modules of the process."""

from functools import lru_cache, partial
from typing import NamedTuple

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from sdy.dialect.attributes import OpShardingRuleAttr
from sdy.dialect.interfaces import ShardableDataFlow
from sdy.dialect.ops import PropagationBarrierOp
from sdy.ir.fields import next_use, operands_of
from sdy.ir.shapes import is_scalar, is_static_tensor, rank
from sdy.passes.common.op_properties import is_elementwise
from sdy.passes.propagation.directions import Direction, Role
from sdy.passes.propagation.step import Kind
from sdy.rules import ByRule, identity_rule
from sdy.sharding import TensorSharding
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

_kind = lru_cache(2**15)(Kind)
_identity = lru_cache(2**12)(identity_rule)


class OperationKinds(NamedTuple):
    """Which kind an operation with a rule is; None where there is nothing to propagate."""

    alone: Kind | None
    """What it is if it is the only one to read each of its operands, scalars aside."""
    reusing: Kind | None
    """What it is if it reads a tensor that is read elsewhere too: the same where that makes no difference."""

    def of(self, operation: Operation) -> Kind | None:
        """The kind of `operation`, which these were found for."""
        return self.reusing if self.alone is not self.reusing and reuses_operand(operation) else self.alone


def _operation_kinds(conservative: bool, operation: Operation, rule: OpShardingRuleAttr) -> OperationKinds:
    if not rule.data.ties_tensors:
        return OperationKinds(None, None)
    elementwise = is_elementwise(operation)
    role = Role.PASS_THROUGH if elementwise else _role(operation)
    alone, reusing = (
        _kind(rule.data, role, reuses, is_elementwise=elementwise, conservative=conservative)
        for reuses in (False, True)
    )
    return OperationKinds(alone, alone if alone.directions == reusing.directions else reusing)


OPERATION_KINDS = {
    conservative: ByRule(partial(_operation_kinds, conservative), conservative) for conservative in (False, True)
}
"""The kinds of each operation that has a rule, by whether rules are conservative."""


def kind_of_barrier(barrier: PropagationBarrierOp) -> Kind:
    """The kind of a barrier, open at all stages in the direction that it allows."""
    return _kind(_identity_of(barrier.input.type, 1), is_elementwise=True, direction=Direction(barrier.direction))


def kind_of_edge(type_: Attribute, num_sources: int) -> Kind | None:
    """The kind of an edge between tensors of one type, which passes through at all stages.

    None for those along which nothing is propagated, which have no dimensions, or some of unknown size.
    """
    return _kind(_identity_of(type_, num_sources)) if is_static_tensor(type_) and rank(type_) else None


def is_seen_otherwise_inside(flow: ShardableDataFlow) -> bool:
    """Whether the sharding of an edge looks otherwise inside of an operation than outside."""
    return type(flow).outside_sharding is not ShardableDataFlow.outside_sharding


def kind_of_two_sided_edge(owner: SSAValue, flow: ShardableDataFlow, operation: Operation, num_sources: int) -> Kind:
    """The kind of the data-flow edge of `owner`, a tensor, which looks otherwise inside of `operation` than outside.

    The sources see the target's sharding from the other side than its users do. It is the kind of this edge alone.
    """

    def outside(sharding: TensorSharding) -> TensorSharding:
        return flow.outside_sharding(operation, owner, sharding)

    def inside(sharding: TensorSharding) -> TensorSharding:
        return flow.inside_sharding(operation, owner, sharding)

    from_target, to_target = (outside, inside) if isinstance(owner, BlockArgument) else (inside, outside)
    return Kind(_identity_of(owner.type, num_sources), from_target=from_target, to_target=to_target)


def _identity_of(type_: Attribute, num_sources: int):
    assert isinstance(type_, ShapedType)
    return _identity(type_.get_shape(), num_sources)


def _role(operation: Operation) -> Role:
    if isinstance(operation, CustomCallOp) and operation.call_target_name.data in _OFFLOAD_TARGETS:
        return Role.PASS_THROUGH
    return _ROLES.get(type(operation), Role.OTHER)


def reuses_operand(operation: Operation) -> bool:
    """Whether `operation` reads a tensor, other than a scalar, that is read elsewhere too; asked of most, and fast."""
    for operand in operands_of(operation):
        use = operand.first_use
        if use is not None and next_use(use) is not None and not is_scalar(operand):
            return True
    return False
