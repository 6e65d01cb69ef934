"""Conversion of one operation to the shards of its operands and results: the target, the operation, its padded form.

Padding leaves the unpadded elements of the results as they are. Along a pass-through factor, an element depends on
elements at the same position only, so the padding of an operand only affects the padding of the result. Along a
reduction factor, the padding is filled with the identity element. Sizes and indices in attributes are changed to those
of the padded tensors.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.diagnostics import error
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.padding import Insertion, Padding
from sdy.passes.spmd.local_module import Channels
from sdy.passes.spmd.plan.planner import Planner, ShardyPlanner
from sdy.passes.spmd.shards.layout import Layout
from sdy.rule import FactorKind, OpShardingRule
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import DeviceIdOp, IotaOp, PartitionIdOp, ReplicaIdOp
from sdy.stablehlo.emitter import Emitter


@dataclass(frozen=True)
class Target:
    """Options of partitioning, as documented by the passes that have them."""

    device_id: type[DeviceIdOp] = PartitionIdOp
    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    groups_by_axes: bool = False
    allow_replication: bool = True
    planner: Planner = field(default_factory=ShardyPlanner)
    channels: Channels = field(default_factory=Channels)


def device_id_op(where: Operation, replica_count: int, partition_count: int) -> type[DeviceIdOp]:
    """Return the operation that computes the id of the running device.

    Raises:
        DiagnosticError: Both counts are greater than 1.
    """
    if replica_count > 1 and partition_count > 1:
        raise error(where, "devices are replicas or partitions: one of replica-count and partition-count must be 1")
    return ReplicaIdOp if replica_count > 1 else PartitionIdOp


OpT = TypeVar("OpT", bound=Operation, covariant=True)


@dataclass(frozen=True)
class OpConversion(Generic[OpT]):
    """An operation, the layouts of its operands and results, and the target of the program.

    The types of the operands and results are those of shards; the layouts have the unpartitioned types.
    """

    op: OpT
    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    target: Target
    manual_axes: tuple[str, ...] = ()
    """The manual axes of the computations around the operation."""

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts of the operands, followed by those of the results."""
        return self.operands + self.results

    @property
    def is_split(self) -> bool:
        """True if an operand or result is sharded."""
        return any(layout.is_split for layout in self.layouts)

    @property
    def mesh(self) -> Mesh:
        """The mesh of the sharded operands and results, or of a replicated one if none is sharded."""
        with_mesh = [layout for layout in self.layouts if layout.sharding is not None]
        return next((layout for layout in with_mesh if layout.is_split), with_mesh[0]).mesh

    def before(self) -> Emitter:
        """Return an emitter in front of the operation."""
        return Emitter(InsertPoint.before(self.op), self.op, self.target.device_id)

    def after(self) -> Emitter:
        """Return an emitter behind the operation."""
        return Emitter(InsertPoint.after(self.op), self.op, self.target.device_id)

    def replace(self, *values: SSAValue) -> None:
        """Replace the results by `values` and erase the operation."""
        Rewriter.replace_op(self.op, [], values)


def unless_empty(lower: Callable[[OpConversion[Any]], None]) -> Callable[[OpConversion[Any]], None]:
    """Decorate `lower` to replace an empty result by a constant, without communication."""

    def or_constant(conversion: OpConversion[Any]) -> None:
        (result,) = map(tensor_type, conversion.op.results)
        if 0 in result.get_shape():
            conversion.replace(conversion.before().filled(result, 0))
        else:
            lower(conversion)

    return or_constant


_CREATES_ELEMENTS = (BroadcastInDimOp, IotaOp)


@dataclass(frozen=True)
class PaddedConversion(Generic[OpT]):
    """An operation whose operands and results have padded types already, but whose attributes are unpadded."""

    conversion: OpConversion[OpT]
    rule: OpShardingRule | None
    padding: Padding

    @property
    def op(self) -> OpT:
        """The operation."""
        return self.conversion.op

    @property
    def operands(self) -> tuple[Layout, ...]:
        """The layouts of the operands, with unpadded shapes."""
        return self.conversion.operands

    @property
    def results(self) -> tuple[Layout, ...]:
        """The layouts of the results, with unpadded shapes."""
        return self.conversion.results

    def fill(self, operand: int, dims: Collection[int], element: float | SSAValue) -> None:
        """Fill the padding of an operand along `dims` with `element`."""
        op = self.conversion.op
        value = op.operands[operand]
        op.operands[operand] = self.padding.fill(Insertion.before(op), value, self.operands[operand], dims, element)

    def reduced_dims(self, operand: int) -> list[int]:
        """Return the uneven dimensions of an operand that have a reduction factor."""
        if self.rule is None:
            return []
        mapping, reduction = self.rule.operands[operand], self.rule.reduction
        return [
            dim for dim in self.operands[operand].uneven_dims if any(factor in reduction for factor in mapping[dim])
        ]

    def carries(self, *kinds: FactorKind, moved: Mapping[int, Collection[int]] = MappingProxyType({})) -> bool:
        """Return whether each uneven dimension is a single pass-through factor, of equal padded size in all tensors.

        The padding of the operands then affects the padding of the results only.

        Args:
            kinds: Other factor kinds to accept.
            moved: For each tensor, by its index with the operands first, the dimensions to ignore.
        """
        if (rule := self.rule) is None:
            return False
        padded_sizes: dict[int, set[int]] = {}
        tensors = list(zip(rule.tensors, self.conversion.layouts, strict=True))
        for index, (mapping, layout) in enumerate(tensors):
            for dim in layout.uneven_dims:
                if dim in moved.get(index, ()):
                    continue
                if len(mapping[dim]) != 1:
                    return False
                padded_sizes[mapping[dim][0]] = set()
        for mapping, layout in tensors:
            for factors, size, padded in zip(mapping, layout.shape, layout.padded_shape, strict=True):
                for factor in padded_sizes.keys() & set(factors):
                    if len(factors) > 1 or size != rule.factor_sizes[factor]:
                        return False
                    padded_sizes[factor].add(padded)
        return all(
            len(sizes) == 1 and (rule.kind(factor) in kinds or self._passes_through(rule, factor))
            for factor, sizes in padded_sizes.items()
        )

    def _passes_through(self, rule: OpShardingRule, factor: int) -> bool:
        goes_in, comes_out = (
            any((factor,) in mapping for mapping in tensors) for tensors in (rule.operands, rule.results)
        )
        is_created = not goes_in and isinstance(self.op, _CREATES_ELEMENTS)
        return rule.kind(factor) is FactorKind.PASS_THROUGH and comes_out and (goes_in or is_created)


def carries(conversion: PaddedConversion[Any]) -> bool:
    """Return whether the padding of operands affects only the padding of results.

    This is enough to pad an operation whose attributes have no sizes or indices.
    """
    return conversion.carries()
