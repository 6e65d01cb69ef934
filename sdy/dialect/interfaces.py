"""What an operation of any dialect can say about itself so that shardings can be propagated through it.

An operation with regions, such as a loop, has data-flow edges. An edge binds its sources (operands of the operation,
operands of its regions' terminators) to its targets (results, block arguments): all of them hold the same tensor and
should be sharded alike. One target of each edge is its owner, and stands for the edge.

    y = while (x) cond(c) { ... } do(b) { ... return r }      one edge: sources x, r; targets y (owner), c, b
    y = manual_computation(x) (b) { ... return r }            two edges: source x, target b; source r, target y
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.traits import OpTrait

from sdy.dialect.attributes import SHARDING, TensorShardingPerValueAttr
from sdy.ir.traits import trait_of
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding

OptionalShardings = Sequence[TensorSharding | None]


class Sides(NamedTuple):
    """How a sharding looks from the other side of an operation; neither leads to the operation."""

    outwards: Callable[[TensorSharding], TensorSharding]
    """What is seen outside of the sharding that is seen inside."""
    inwards: Callable[[TensorSharding], TensorSharding]
    """What is seen inside of the sharding that is seen outside."""


class Elementwise(OpTrait):
    """Each element of the results depends only on the elements of the operands at the same place.

    An operand that is broadcast, such as a scalar predicate, has its elements at all the places it is broadcast to.
    """


class ShardingRuleInterface(OpTrait, ABC):
    """The operation makes its own sharding rule."""

    @abstractmethod
    def sharding_rule(self, op: Operation) -> OpShardingRule:
        """The rule of `op`, for its current types and attributes."""

    def keeps_result_shardings_divisible(self, op: Operation) -> bool:
        """Whether the axes of a result must divide its dimensions, so that no device holds padding."""
        return False


class ShardableDataFlow(OpTrait, ABC):
    """The operation has data-flow edges.

    By default each result owns an edge that has no other target, no block argument owns one, and the shardings of
    results are in the attribute `sdy.sharding`.
    """

    def result_edge_owners(self, op: Operation) -> Sequence[SSAValue]:
        """The results that own an edge; the shardings of such results come in this order."""
        return op.results

    def block_argument_edge_owners(self, op: Operation) -> Sequence[BlockArgument]:
        """The block arguments that own an edge; the shardings of such arguments come in this order."""
        return ()

    @abstractmethod
    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """The uses that are the sources of the edge of `owner`."""

    def edge_owner_from_target(self, op: Operation, target: SSAValue) -> SSAValue:
        """The owner of the edge that `target` belongs to."""
        return target

    def non_owner_targets(self, op: Operation, owner: SSAValue) -> Sequence[SSAValue]:
        """The other targets of the edge of `owner`."""
        return ()

    def result_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        """The sharding of each result that owns an edge."""
        attribute = op.attributes.get(SHARDING)
        if isinstance(attribute, TensorShardingPerValueAttr):
            return attribute.data
        return (None,) * len(self.result_edge_owners(op))

    def set_result_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        """Give each result that owns an edge its sharding."""
        op.attributes[SHARDING] = TensorShardingPerValueAttr(tuple(shardings))

    def block_argument_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        """The sharding of each block argument that owns an edge."""
        return (None,) * len(self.block_argument_edge_owners(op))

    def set_block_argument_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        """Give each block argument that owns an edge its sharding."""
        raise NotImplementedError(f"'{op.name}' cannot keep shardings of block arguments")

    def sides(self, op: Operation, target: SSAValue) -> Sides | None:
        """How shardings of `target` look from the other side of `op`; None where they look alike from both."""
        return None

    def outside_sharding(self, op: Operation, target: SSAValue, sharding: TensorSharding) -> TensorSharding:
        """`sharding` of `target` as seen outside of `op`: by the sources of a block argument, the users of a result."""
        sides = self.sides(op, target)
        return sharding if sides is None else sides.outwards(sharding)

    def inside_sharding(self, op: Operation, target: SSAValue, sharding: TensorSharding) -> TensorSharding:
        """`sharding` of `target` as seen inside of `op`: by the users of a block argument, the sources of a result."""
        sides = self.sides(op, target)
        return sharding if sides is None else sides.inwards(sharding)

    def keeps_owner_shardings_divisible(self, op: Operation) -> bool:
        """Whether the axes of an edge must divide the dimensions of its owner, so that no device holds padding."""
        return False


def defining_op(value: SSAValue) -> Operation | None:
    """The operation that `value` is a result of, or in whose region it is a block argument."""
    # The classes of values are abstract ones, with which isinstance is slow to say no.
    if type(value) is OpResult:
        return value.op
    assert isinstance(value, BlockArgument)
    return value.block.parent_op()


def data_flow_of(op: Operation) -> ShardableDataFlow | None:
    """The interface of `op` if it has data-flow edges."""
    return trait_of(op, ShardableDataFlow)
