"""Concatenation along a split dimension: each device receives the rows of its shard of the result.

Rows of a replicated operand are read locally, and rows of a slice are read from the sliced tensor. This exchange
replaces a local concatenation with reshards around it if those receive more bytes.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import erase_unused
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.compatibility import illegality_by_dims
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder, Tensor
from sdy.passes.spmd.emit.illegality import Illegality, Reason
from sdy.passes.spmd.emit.op_conversion import carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.operation_reshards import reshard_around
from sdy.passes.spmd.emit.replicated_factors import replicate_permuted
from sdy.passes.spmd.emit.resolution import Resolution, layout_of, pad_to, padded_over, unpad, zero_filler
from sdy.passes.spmd.ops.concatenate.origins import Rows, rows_of
from sdy.passes.spmd.ops.concatenate.part import ConcatenatedPart
from sdy.passes.spmd.ops.concatenate.redistribution import Message, Segment, messages, rounds
from sdy.passes.spmd.plan.operation_plan import Tensors, plan_operation
from sdy.passes.spmd.plan.reshard_cost import elements_around, elements_behind, elements_resharded
from sdy.passes.spmd.plan.special_rules import rule_of_concatenation
from sdy.passes.spmd.reshard.collective_cost import local_elements
from sdy.passes.spmd.shards.layout import Layout
from sdy.rule import FactorKind
from sdy.rules import sharding_rule
from sdy.rules.shape import concatenation_kind
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.emitter import before, with_shape
from sdy.stablehlo.shape import ConcatenateOp


def _exchange(op: ConcatenateOp, resolution: Resolution) -> bool:
    """Exchange rows if the result, or the tensor that it is only resharded to, is split along the dimension."""
    dim = op.dimension.value.data
    is_split = bool(layout_of(op.result).axes[dim])
    target = op.result if is_split or not resolution.planner.reshards_concatenations else _resharded_to(op.result)
    if not layout_of(target).axes[dim]:
        return True
    plan = _Redistribution.of(op, target)
    if plan is not None and plan.pays(resolution):
        plan.carry_out(resolution)
        return True
    return not is_split


def _needs_replication(op: ConcatenateOp) -> bool:
    """Return whether the concatenated factor needs replication: the operands are not slices that form a shift."""
    return concatenation_kind(op) is FactorKind.NEED_REPLICATION


def _plan_local_concatenation(op: ConcatenateOp) -> Sequence[TensorSharding | None]:
    """Plan shardings of operands, then the result, for a local concatenation; None keeps the current sharding."""
    result, rule, values = layout_of(op.result), sharding_rule(op), (*op.operands, op.result)
    assert result.sharding is not None
    assert rule is not None
    tensors = Tensors(rule, tuple(map(get_sharding, values)), tuple(math.prod(shape_of(value)) for value in values))
    name = result.sharding.mesh
    return plan_operation(tensors, name, {name: result.mesh}, reshapes=False).shardings


def _resharded_to(value: SSAValue) -> SSAValue:
    """Return the end of the chain of reshards, each the only use of the previous value, that begins at `value`."""
    while isinstance(user := value.get_user_of_unique_use(), ReshardOp):
        value = user.result
    return value


@dataclass(frozen=True)
class _Redistribution:
    """Plan of the row exchange of a concatenation.

    Attributes:
        op: The concatenation.
        target: Its result, or the end of the chain of reshards of it.
        layout: The layout of `target`.
        rows: The source of each range of rows of the result.
        split: The sources that are split along the concatenated dimension.
        kept: The rows of split sources that each device holds already.
        exchanged: The rows of split sources that devices send, in rounds of one message per device.
    """

    op: ConcatenateOp
    target: SSAValue
    layout: Layout
    rows: Sequence[Rows]
    split: Sequence[SSAValue]
    kept: Sequence[Message]
    exchanged: Sequence[Sequence[Message]]

    @classmethod
    def of(cls, op: ConcatenateOp, target: SSAValue) -> "_Redistribution | None":
        """Return the plan, or None if the sources are sharded differently from `target` in other dimensions."""
        dim, layout = op.dimension.value.data, layout_of(target)
        parts = layout.parts(dim)
        names = {axis.name for axis in layout.axes[dim]}
        elsewhere = {axis.name for other, axes in enumerate(layout.axes) if other != dim for axis in axes}
        rows = rows_of(op, dim, layout)
        if rows is None or 0 in layout.shape or names & elsewhere:
            return None
        sources = dict.fromkeys(each.source for each in rows)
        split = [source for source in sources if layout_of(source).axes[dim]]
        shards = [-(-shape_of(source)[dim] // parts) for source in split]
        segments = [
            Segment(split.index(each.source), each.start, each.place, each.size)
            for each in rows
            if each.source in split
        ]
        all_messages = list(messages(segments, shards, -(-layout.shape[dim] // parts)))
        kept = [message for message in all_messages if message.sender == message.receiver]
        exchanged = rounds([message for message in all_messages if message.sender != message.receiver])
        return cls(op, target, layout, rows, split, kept, exchanged)

    @property
    def _whole(self) -> TensorSharding:
        """The sharding of the result with the concatenated dimension replicated."""
        assert self.layout.sharding is not None
        dims = (DimSharding() if dim == self._dim else split for dim, split in enumerate(self.layout.sharding.dims))
        return replace(self.layout.sharding, dims=tuple(dims))

    @property
    def _dim(self) -> int:
        return self.op.dimension.value.data

    @property
    def _parts(self) -> int:
        return self.layout.parts(self._dim)

    @property
    def _length(self) -> int:
        """The number of rows in a shard of the result."""
        return -(-self.layout.shape[self._dim] // self._parts)

    def pays(self, resolution: Resolution) -> bool:
        """Return whether the exchange receives no more than the alternative.

        If the planner reshards concatenations, the alternative are the reshards of a local concatenation, which is kept
        if it needs none. Otherwise, and for shifts, it is gathering the sources.
        """
        if not resolution.planner.reshards_concatenations or not _needs_replication(self.op):
            gathered_rows = (self._parts - 1) * sum(
                -(-shape_of(source)[self._dim] // self._parts) for source in self.split
            )
            return sum(each[0].size for each in self.exchanged) <= gathered_rows
        row = local_elements(self.layout.axes, self.layout.shape, self.layout.mesh) // self._length
        moved = sum(each[0].size * len(each) for each in self.exchanged) * row * self.layout.mesh.size // self._parts
        for source in {each.source for each in self.rows}.difference(self.split):
            moved += elements_resharded(source, get_sharding(source), self._whole, self.op)
        current = [get_sharding(value) for value in (*self.op.operands, self.op.result)]
        if self.target is not self.op.result:
            return moved < elements_around(self.op, current)
        others = [new or old for new, old in zip(_plan_local_concatenation(self.op), current, strict=True)]
        alternative = elements_around(self.op, others)
        return alternative > 0 and moved + elements_behind(self.op.result, current[-1]) <= alternative

    def carry_out(self, resolution: Resolution) -> None:
        """Replace the concatenation by the exchange."""
        op, dim, parts, length, sharding = self.op, self._dim, self._parts, self._length, self.layout.sharding
        assert sharding is not None
        sources = list(dict.fromkeys(each.source for each in self.rows))
        names = {axis.name for axis in self.layout.axes[dim]}
        tensors = [
            _padded_operand(op, source, sharding if source in self.split else self._whole, self.layout.mesh, names)
            for source in sources
        ]
        builder = ExchangeBuilder(op, tensors, names, resolution.devices(self.layout.mesh))
        part_of_result = ConcatenatedPart(builder, sharding, dim, parts, length)
        arguments = dict(zip(sources, builder.arguments, strict=True))
        if self.split:
            pool = builder.tensors(sharding).concatenate([arguments[source] for source in self.split], dim)
            for kept in rounds(self.kept):
                part_of_result.keep(pool, kept)
            for each in self.exchanged:
                part_of_result.exchange(pool, each)
        for each in self.rows:
            if each.source not in self.split:
                begins = [part * length - each.place for part in range(parts)]
                places = [range(max(0, -begin), max(0, min(length, each.size - begin))) for begin in begins]
                part_of_result.put(arguments[each.source], [begin + each.start for begin in begins], places)
        shape = padded_over(self.layout, names)
        [padded_result] = builder.finish([part_of_result.rows()], [with_shape(op.result, shape)], [sharding])
        self.target.replace_all_uses_with(unpad(op, padded_result, self.layout.shape, sharding))
        erase_unused([self.target])


def _padded_operand(
    op: ConcatenateOp, value: SSAValue, wanted: TensorSharding, mesh: Mesh, names: Collection[str]
) -> Tensor:
    """Return `value` resharded to `wanted`, and padded so that the axes of these names divide its dimensions."""
    current = get_sharding(value)
    if current is None or current.dim_axes != wanted.dim_axes:
        value = before(op).insert(ReshardOp(value, wanted))
    shape = padded_over(Layout(value.type, wanted, mesh), names)
    if tuple(shape) != shape_of(value):
        value = pad_to(op, value, shape, zero_filler(op, value), wanted)
    return value, wanted


def _replicate(op: ConcatenateOp, resolution: Resolution) -> bool:
    if resolution.planner.reshards_concatenations and _needs_replication(op):
        reshard_around(op, _plan_local_concatenation(op))
        return False
    return replicate_permuted(op, resolution)


def _illegality(op: ConcatenateOp, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    dim = op.dimension.value.data
    return illegality_by_dims(operands, results, lambda other, parts, sizes: other != dim, Reason.CONCATENATED_DIM)


PARTITIONING: PartitioningTable = {
    ConcatenateOp: OperationPartitioning(
        _exchange, _replicate, carries, _illegality, absorbs_operands=True, rule=rule_of_concatenation
    ),
}
