"""Data-flow edges of named and manual computations.

Both have an edge from each operand to the block argument of the same index, and one from each operand of the terminator
to the result of the same index. The body of a manual computation sees tensors that are already split over the manual
axes. These axes come first in each dimension of `in_shardings` and `out_shardings`, and do not occur in the shardings
inside: `in_shardings=[<@mesh, [{"m", "x"}]>] manual_axes={"m"}` gives the block argument `[{"x"}]`.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from sdy.dialect.attributes import ManualAxesAttr, TensorShardingPerValueAttr
from sdy.dialect.interfaces import OptionalShardings, ShardableDataFlow, Sides
from sdy.sharding import DimSharding, TensorSharding

IN_SHARDINGS = "in_shardings"
OUT_SHARDINGS = "out_shardings"


def without_manual_axes(sharding: TensorSharding, manual_axes: Sequence[str]) -> TensorSharding:
    """Return `sharding` as seen inside a manual computation: without manual axes, a prefix of each dimension."""
    if not manual_axes:
        return sharding
    return TensorSharding(
        sharding.mesh,
        tuple(replace(dim, axes=dim.axes[_count_manual(dim, manual_axes) :]) for dim in sharding.dims),
        tuple(axis for axis in sharding.replicated if axis.name not in manual_axes),
        tuple(axis for axis in sharding.unreduced if axis.name not in manual_axes),
        sharding.reduction,
    )


def with_manual_axes(outside: TensorSharding, inside: TensorSharding, manual_axes: Sequence[str]) -> TensorSharding:
    """Return `outside` with its free axes, and the openness of its dimensions, replaced by those of `inside`.

    Replicated and unreduced axes stay those of `outside`. If `inside` is on a maximal mesh, it has no dimensions, and
    those of `outside` remain, which the verifier then rejects.
    """
    dims = [
        replace(new, axes=old.axes[: _count_manual(old, manual_axes)] + new.axes)
        for old, new in zip(outside.dims, inside.dims, strict=False)
    ]
    return replace(outside, mesh=inside.mesh, dims=(*dims, *outside.dims[len(dims) :]))


def _count_manual(dim: DimSharding, manual_axes: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda axis: axis.name in manual_axes, dim.axes))


class ComputationDataFlow(ShardableDataFlow):
    """Data-flow edges of an operation that executes its single block once."""

    def block_argument_edge_owners(self, op: Operation) -> Sequence[BlockArgument]:
        return op.regions[0].block.args

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        if isinstance(owner, BlockArgument):
            return (Use(op, owner.index),)
        assert isinstance(owner, OpResult)
        terminator = op.regions[0].block.last_op
        assert terminator is not None
        return (Use(terminator, owner.index),)

    def result_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        return self._stored(op, OUT_SHARDINGS) or (None,) * len(op.results)

    def set_result_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        op.properties[OUT_SHARDINGS] = TensorShardingPerValueAttr(tuple(shardings))

    def block_argument_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        return self._stored(op, IN_SHARDINGS) or (None,) * len(op.operands)

    def set_block_argument_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        op.properties[IN_SHARDINGS] = TensorShardingPerValueAttr(tuple(shardings))

    @staticmethod
    def _stored(op: Operation, name: str) -> tuple[TensorSharding, ...]:
        attribute = op.properties.get(name)
        return attribute.data if isinstance(attribute, TensorShardingPerValueAttr) else ()


class ManualComputationDataFlow(ComputationDataFlow):
    """Data-flow edges of a manual computation, whose body does not see the manual axes."""

    def block_argument_edge_owner_shardings(self, op: Operation) -> OptionalShardings:
        axes = self._manual_axes(op)
        return tuple(without_manual_axes(sharding, axes) for sharding in self._stored(op, IN_SHARDINGS))

    def set_block_argument_edge_owner_shardings(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        axes = self._manual_axes(op)
        pairs = zip(self._stored(op, IN_SHARDINGS), shardings, strict=True)
        outside = tuple(with_manual_axes(old, new, axes) for old, new in pairs)
        op.properties[IN_SHARDINGS] = TensorShardingPerValueAttr(outside)

    def sides(self, op: Operation, target: SSAValue) -> Sides:
        assert isinstance(target, BlockArgument | OpResult)
        stored = self._stored(op, IN_SHARDINGS if isinstance(target, BlockArgument) else OUT_SHARDINGS)
        index, axes = target.index, self._manual_axes(op)

        def outwards(inside: TensorSharding) -> TensorSharding:
            return with_manual_axes(stored[index], inside, axes)

        def inwards(outside: TensorSharding) -> TensorSharding:
            return without_manual_axes(outside, axes)

        return Sides(outwards, inwards)

    def keeps_owner_shardings_divisible(self, op: Operation) -> bool:
        return True

    @staticmethod
    def _manual_axes(op: Operation) -> tuple[str, ...]:
        attribute = op.properties["manual_axes"]
        assert isinstance(attribute, ManualAxesAttr)
        return attribute.data
