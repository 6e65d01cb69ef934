"""Interfaces of operations of any dialect through which shardings propagate.

An operation with regions, such as a loop, has data-flow edges. An edge connects its sources (operands of the operation,
operands of its regions' terminators) to its targets (results, block arguments): all of them hold the same tensor and
should have the same sharding. One target of each edge is its owner, which represents the edge.

    y = while (x) cond(c) { ... } do(b) { ... return r }      one edge: sources x, r; targets y (owner), c, b
    y = manual_computation(x) (b) { ... return r }            two edges: source x, target b; source r, target y
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.traits import OpTrait, SymbolUserOpInterface

from sdy.dialect.attributes import SHARDING, TensorShardingPerValueAttr
from sdy.ir.fast_access import trait_of
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding

OptionalShardings = Sequence[TensorSharding | None]


class Sides(NamedTuple):
    """Translation of a sharding between the outside and the inside of an operation.

    The functions hold no reference to the operation.
    """

    outwards: Callable[[TensorSharding], TensorSharding]
    """Maps the sharding inside to the sharding outside."""
    inwards: Callable[[TensorSharding], TensorSharding]
    """Maps the sharding outside to the sharding inside."""


class Elementwise(OpTrait):
    """Trait: each element of the results depends only on the elements of the operands at the same index.

    A broadcast operand, such as a scalar predicate, has its elements at all indices to which it is broadcast.
    """


class ShardingRuleInterface(OpTrait, ABC):
    """Interface of operations that create their own sharding rule."""

    @abstractmethod
    def sharding_rule(self, op: Operation) -> OpShardingRule:
        """Return the rule of `op`, for its current types and attributes."""

    def keeps_result_shardings_divisible(self, op: Operation) -> bool:
        """Return whether the axes of a result must divide its dimensions, which avoids padding."""
        return False


class ShardableDataFlow(OpTrait, ABC):
    """Interface of operations with data-flow edges.

    By default each result owns an edge without other targets, no block argument owns one, and the shardings of results
    are in the attribute `sdy.sharding`.
    """

    def result_edge_owners(self, op: Operation) -> Sequence[SSAValue]:
        """Return the results that own an edge, in the order of their shardings."""
        return op.results

    def block_argument_edge_owners(self, op: Operation) -> Sequence[BlockArgument]:
        """Return the block arguments that own an edge, in the order of their shardings."""
        return ()

    @abstractmethod
    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """Return the uses that are the sources of the edge of `owner`."""

    def edge_owner_from_target(self, op: Operation, target: SSAValue) -> SSAValue:
        """Return the owner of the edge of `target`."""
        return target

    def non_owner_targets(self, op: Operation, owner: SSAValue) -> Sequence[SSAValue]:
        """Return the other targets of the edge of `owner`."""
        return ()

    def result_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        """Return the sharding of each result that owns an edge."""
        attribute = op.attributes.get(SHARDING)
        if isinstance(attribute, TensorShardingPerValueAttr):
            return attribute.data
        return (None,) * len(self.result_edge_owners(op))

    def set_result_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        """Set the sharding of each result that owns an edge."""
        op.attributes[SHARDING] = TensorShardingPerValueAttr(tuple(shardings))

    def block_argument_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        """Return the sharding of each block argument that owns an edge."""
        return (None,) * len(self.block_argument_edge_owners(op))

    def set_block_argument_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        """Set the sharding of each block argument that owns an edge."""
        raise NotImplementedError(f"'{op.name}' cannot store shardings of block arguments")

    def sides(self, op: Operation, target: SSAValue) -> Sides | None:
        """Return the translation of shardings of `target` between the two sides of `op`; None for the identity."""
        return None

    def outside_sharding(self, op: Operation, target: SSAValue, sharding: TensorSharding) -> TensorSharding:
        """Translate `sharding` of `target` outwards: to the sources of a block argument, or the users of a result."""
        sides = self.sides(op, target)
        return sharding if sides is None else sides.outwards(sharding)

    def inside_sharding(self, op: Operation, target: SSAValue, sharding: TensorSharding) -> TensorSharding:
        """Translate `sharding` of `target` inwards: to the users of a block argument, or the sources of a result."""
        sides = self.sides(op, target)
        return sharding if sides is None else sides.inwards(sharding)

    def keeps_owner_shardings_divisible(self, op: Operation) -> bool:
        """Return whether the axes of an edge must divide the dimensions of its owner, which avoids padding."""
        return False


def defining_op(value: SSAValue) -> Operation | None:
    """Return the operation that `value` is a result of, or whose region it is a block argument of."""
    # isinstance is slow for abstract classes, such as those of values, when the answer is no.
    if type(value) is OpResult:
        return value.op
    assert isinstance(value, BlockArgument)
    return value.block.parent_op()


def data_flow_of(op: Operation) -> ShardableDataFlow | None:
    """Return the data-flow interface of `op`; None if it has no data-flow edges."""
    return trait_of(op, ShardableDataFlow)


CHECKS: dict[type[Operation], Callable[[Any], None]] = {}
"""Verifier of each class of operations, registered by the package, so that importing any operation registers all."""


class Verified(SymbolUserOpInterface):
    """Trait of operations that the entry of their class in `CHECKS` verifies.

    Verification needs the shardings of values, and the meshes of the module. Looking these up needs the operations that
    store shardings, so that the verifiers are defined in modules above the operations.
    """

    def verify(self, op: Operation) -> None:
        """Raise DiagnosticError if `op` is invalid."""
        CHECKS[type(op)](op)
