"""Which kind of step each operation is: operations of one kind share their steps."""

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from sdy.dialect.interfaces import ShardableDataFlow
from sdy.dialect.ops import PropagationBarrierOp
from sdy.passes.common.op_properties import is_elementwise
from sdy.passes.common.tensors import is_scalar
from sdy.passes.propagation.directions import Direction, Role
from sdy.passes.propagation.step import Kind
from sdy.rule import OpShardingRule
from sdy.rules import identity_rule
from sdy.sharding import TensorSharding
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.shape import BitcastConvertOp, ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp

_ROLES: dict[type[Operation], Role] = {
    ReshapeOp: Role.PASS_THROUGH,
    TransposeOp: Role.PASS_THROUGH,
    DynamicSliceOp: Role.WINDOW,
    DynamicUpdateSliceOp: Role.WINDOW,
    BroadcastInDimOp: Role.BROADCAST,
}
_DIFFER_WITHIN_CLASS = (BitcastConvertOp, CustomCallOp)
"""Whether these are elementwise, and what they are to the stages, is not decided by their class."""
_OFFLOAD_TARGETS = ("MoveToDevice", "MoveToHost")


@dataclass
class Kinds:
    """Makes each kind once."""

    conservative: bool
    _kinds: dict[tuple[int, Role, bool, bool, Direction | None], Kind] = field(
        default_factory=dict[tuple[int, Role, bool, bool, Direction | None], Kind]
    )
    _of_classes: dict[tuple[type[Operation], int, bool], Kind] = field(
        default_factory=dict[tuple[type[Operation], int, bool], Kind]
    )
    _identities: dict[tuple[tuple[int, ...], int], OpShardingRule] = field(
        default_factory=dict[tuple[tuple[int, ...], int], OpShardingRule]
    )

    def of_operation(self, operation: Operation, rule: OpShardingRule, reuses: bool) -> Kind:
        """The kind of an operation that has a rule, and may read a tensor that is read elsewhere too."""
        op_class = operation.__class__
        kind = self._of_classes.get((op_class, id(rule), reuses))
        if kind is None:
            elementwise = is_elementwise(operation)
            role = Role.PASS_THROUGH if elementwise else _role(operation)
            kind = self._kind(rule, role, reuses, elementwise, None, self.conservative)
            if op_class not in _DIFFER_WITHIN_CLASS:
                self._of_classes[op_class, id(rule), reuses] = kind
        return kind

    def of_barrier(self, barrier: PropagationBarrierOp) -> Kind:
        """The kind of a barrier, open at all stages in the direction that it allows."""
        direction = Direction(barrier.direction)
        rule = self._identity(barrier.input.type, 1)
        return self._kind(rule, Role.PASS_THROUGH, False, True, direction)

    def of_edge(self, type_: Attribute, num_sources: int) -> Kind:
        """The kind of an edge between tensors of one type, which passes through at all stages."""
        return self._kind(self._identity(type_, num_sources), Role.PASS_THROUGH, False, False, None)

    def of_data_flow_edge(
        self, owner: SSAValue, flow: ShardableDataFlow, operation: Operation, num_sources: int
    ) -> Kind:
        """The kind of the data-flow edge of `owner`, which belongs to `operation`.

        It is one of its own where the sources see the target's sharding otherwise than its users do.
        """
        if type(flow).outside_sharding is ShardableDataFlow.outside_sharding:
            return self.of_edge(owner.type, num_sources)

        def outside(sharding: TensorSharding) -> TensorSharding:
            return flow.outside_sharding(operation, owner, sharding)

        def inside(sharding: TensorSharding) -> TensorSharding:
            return flow.inside_sharding(operation, owner, sharding)

        from_target, to_target = (outside, inside) if isinstance(owner, BlockArgument) else (inside, outside)
        rule = self._identity(owner.type, num_sources)
        return Kind(rule, from_target=from_target, to_target=to_target)

    def _identity(self, type_: Attribute, num_sources: int) -> OpShardingRule:
        assert isinstance(type_, ShapedType)
        key = type_.get_shape(), num_sources
        if key not in self._identities:
            self._identities[key] = identity_rule(*key)
        return self._identities[key]

    def _kind(
        self,
        rule: OpShardingRule,
        role: Role,
        reuses: bool,
        elementwise: bool,
        direction: Direction | None,
        conservative: bool = False,
    ) -> Kind:
        key = id(rule), role, reuses, elementwise, direction
        if key not in self._kinds:
            self._kinds[key] = Kind(rule, role, reuses, elementwise, conservative, direction)
        return self._kinds[key]


def _role(operation: Operation) -> Role:
    if isinstance(operation, CustomCallOp) and operation.call_target_name.data in _OFFLOAD_TARGETS:
        return Role.PASS_THROUGH
    return _ROLES.get(type(operation), Role.OTHER)


def reuses_operand(operation: Operation) -> bool:
    """Whether `operation` reads a tensor, other than a scalar, that is read elsewhere too."""
    return any(not operand.has_one_use() and not is_scalar(operand) for operand in operation.operands)
