"""Propagation of shardings through MPMD operations: as if the program were a single SPMD program."""

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from sdy.dialect.data_flow import ComputationDataFlow
from sdy.dialect.interfaces import ShardableDataFlow


class FragmentDataFlow(ComputationDataFlow):
    """Data-flow edges of a fragment: from operands to block arguments, from returned values to results."""

    def keeps_owner_shardings_divisible(self, op: Operation) -> bool:
        return True


class ForDataFlow(ShardableDataFlow):
    """One data-flow edge per carried value, owned by the result; the index has none."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        assert isinstance(owner, OpResult)
        terminator = op.regions[0].block.last_op
        assert terminator is not None
        return Use(op, owner.index), Use(terminator, owner.index)

    def edge_owner_from_target(self, op: Operation, target: SSAValue) -> SSAValue:
        assert isinstance(target, OpResult | BlockArgument)
        return op.results[target.index]

    def non_owner_targets(self, op: Operation, owner: SSAValue) -> Sequence[SSAValue]:
        assert isinstance(owner, OpResult)
        return (op.regions[0].block.args[owner.index],)
