"""Planners: what devices send each other so that each can compute its shard of every operation.

A pass with the option `least-communication` chooses a planner. The code below it asks the planner:

    sdy-insert-explicit-reshards       which shardings an operation runs in
    sdy-resolve-permutation-factors    which rows devices exchange
    sdy-reshard-to-collectives         which collectives a reshard is lowered to
    sdy-pad-for-divisibility           how much padding a dimension gets
    sdy-convert-global-to-local        what a gather of a padded tensor sends
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from xdsl.ir import Use
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import after_value, used_value
from sdy.mesh import Mesh
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.spmd.plan.operation_plan import OperationShardings, Tensors, plan_operation
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation
from sdy.passes.spmd.reshard.collective_plan import plan_collectives
from sdy.passes.spmd.reshard.collective_steps import AxesPerDim, Collective
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges, full_shards
from sdy.passes.spmd.shards.reshaped_layouts import ReshapedLayouts
from sdy.rule import OpShardingRule
from sdy.stablehlo.shape import ReshapeOp


class Planner(ABC):
    """Communication strategy of a partitioned program.

    `ShardyPlanner` makes the choices of Shardy. `LeastCommunicationPlanner` minimizes the bytes that devices receive.
    """

    rematerializes: ClassVar[bool]
    """True if a reshard may use another value than its operand: the result of an earlier reshard to the same sharding,
    or a copy of the operand that each device recomputes from values that are cheaper to reshard."""

    trims_messages: ClassVar[bool]
    """True if devices send only the rows that others read, instead of full shards."""

    splits_windows: ClassVar[bool]
    """True if a convolution may be split in ways that its sharding rule does not allow: its kernel like its input, and
    along dimensions whose windows need no halo."""

    reshards_concatenations: ClassVar[bool]
    """True if a concatenation may be computed locally, with reshards around it, or directly in the sharding that its
    result is resharded to, instead of exchanging or gathering its rows."""

    names_meshes: ClassVar[bool]
    """True if a mesh with another order of devices becomes a named mesh of the module. Otherwise it is inlined, for a
    module that next becomes a single-device program."""

    minimizes_padding: ClassVar[bool]
    """True if a dimension is padded to a multiple of its number of shards, and devices exchange the rows that a change
    of its padded size moves. Otherwise all dimensions of one size get one padded size."""

    preserves_semantics: bool = True
    """True if no result changes: padding is masked wherever an operation reads it, and no device computes an operation
    with incompatible shardings from its own shards. Shardy leaves some padding unmasked, and computes from the shards.
    """

    @abstractmethod
    def operation_rule(self, operation: ShardedOperation) -> OpShardingRule | None:
        """Return the rule that the shardings of an operation must satisfy, or None to leave the operation alone."""

    @abstractmethod
    def operation_plan(
        self, operation: ShardedOperation, tensors: Tensors, manual_axes: ManualAxes
    ) -> OperationShardings:
        """Plan the shardings in which an operation runs without communication, except for reductions.

        Args:
            operation: The operation.
            tensors: Its operands and results, with the rule that `operation_rule` returned.
            manual_axes: The manual axes around the operations of the module.
        """

    @abstractmethod
    def reshard_point(self, use: Use) -> InsertPoint:
        """Return where the used value is resharded that flows into a region or out of it: its definition or its use."""

    @abstractmethod
    def collectives(
        self, source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh, reorder_devices: bool
    ) -> tuple[Collective, ...]:
        """Return the collectives that reshard from `source` to `target`, in order; see `plan_collectives`."""

    @abstractmethod
    def exchange(self, ranges: ReadRanges, furthest: int | None = None) -> Exchange:
        """Plan the halo exchange along one dimension.

        Args:
            ranges: The rows that each shard needs.
            furthest: The greatest distance in shards over which full shards are sent.
        """

    @abstractmethod
    def exchanges_in_reshape(self, sides: ReshapedLayouts) -> bool:
        """Return whether devices may exchange the elements that a reshape moves, instead of gathering them."""

    @abstractmethod
    def reversal_pays(self, sent: float, gathered: float) -> bool:
        """Return whether to permute reversed shards, which receives `sent` shards, instead of gathering `gathered`."""

    @abstractmethod
    def prefers_all_reduce(self, reduced: int, scattered: int) -> bool:
        """Return whether an all-reduce and a slice replace a reduce-scatter of an uneven dimension.

        Args:
            reduced: The bytes of the unpadded operand.
            scattered: The bytes of all padded shards of the result.
        """


class ShardyPlanner(Planner):
    """Planner that makes the same choices as Shardy, except that it may preserve semantics where Shardy does not."""

    rematerializes = False
    trims_messages = False
    splits_windows = False
    reshards_concatenations = False
    names_meshes = True
    minimizes_padding = False

    def __init__(self, preserves_semantics: bool = True) -> None:
        self.preserves_semantics = preserves_semantics

    def operation_rule(self, operation: ShardedOperation) -> OpShardingRule | None:
        """Return the rule of the operation, or None for an opaque operation."""
        return None if operation.is_opaque else without_lost_sums(operation, operation.rule)

    def operation_plan(
        self, operation: ShardedOperation, tensors: Tensors, manual_axes: ManualAxes
    ) -> OperationShardings:
        """Return the plan that keeps the shardings of the largest tensors."""
        return plan_operation(
            tensors, operation.mesh_name, operation.meshes, reshapes=isinstance(operation.op, ReshapeOp)
        )

    def reshard_point(self, use: Use) -> InsertPoint:
        """Return the point behind the definition of the value."""
        return after_value(used_value(use))

    def collectives(
        self, source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh, reorder_devices: bool
    ) -> tuple[Collective, ...]:
        """Return the fewest collectives."""
        return plan_collectives(source, target, shape, mesh, reorder_devices)

    def exchange(self, ranges: ReadRanges, furthest: int | None = None) -> Exchange:
        """Plan an exchange of full shards."""
        return full_shards(ranges, furthest)

    def exchanges_in_reshape(self, sides: ReshapedLayouts) -> bool:
        """Return whether each moving group has a single dimension before or after the reshape."""
        return not sides.regroups_moving_dims

    def reversal_pays(self, sent: float, gathered: float) -> bool:
        """Return True."""
        return True

    def prefers_all_reduce(self, reduced: int, scattered: int) -> bool:
        """Return False."""
        return False


def without_lost_sums(operation: ShardedOperation, rule: OpShardingRule) -> OpShardingRule:
    """Return `rule` with its reduction factors replicated if no collective combines partial results."""
    return rule if operation.reduction is not None else rule.with_replicated(rule.reduction)
