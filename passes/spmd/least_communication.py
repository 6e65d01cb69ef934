"""Planner that minimizes the bytes that devices receive."""

from xdsl.ir import Use
from xdsl.rewriter import InsertPoint

from sdy.mesh import Mesh
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.spmd.ops import partitioning_of
from sdy.passes.spmd.plan.cheapest_operation import cheapest_operation
from sdy.passes.spmd.plan.operation_plan import OperationShardings, Tensors
from sdy.passes.spmd.plan.planner import Planner, without_lost_sums
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation
from sdy.passes.spmd.plan.special_rules import replicated_unless_passing_through
from sdy.passes.spmd.plan.spread_dot import spread
from sdy.passes.spmd.reshard.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshard.collective_steps import AxesPerDim, Collective
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges, needed_rows
from sdy.passes.spmd.shards.reshaped_layouts import ReshapedLayouts
from sdy.rule import OpShardingRule
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.shape import ReshapeOp


class LeastCommunicationPlanner(Planner):
    """Planner that minimizes the bytes that devices receive."""

    rematerializes = True
    trims_messages = True
    splits_windows = True
    reshards_concatenations = True
    names_meshes = False
    minimizes_padding = True

    def operation_rule(self, operation: ShardedOperation) -> OpShardingRule | None:
        """Return the rule with factors replicated or relaxed as the partitioner supports it.

        Of an opaque operation, only factors that pass through it are split. A sum over zero elements needs no
        all-reduce. The class of the operation may have a special rule; see `OperationPartitioning.rule`.
        """
        rule = operation.rule
        if operation.is_opaque:
            rule = replicated_unless_passing_through(rule)
        rule = without_lost_sums(operation, rule)
        rule = rule.with_replicated([factor for factor in rule.reduction if rule.factor_sizes[factor] == 0])
        special_rule = partitioning_of(operation.op).rule
        return special_rule(operation.op, rule, operation.shardings, operation.mesh) if special_rule else rule

    def operation_plan(
        self, operation: ShardedOperation, tensors: Tensors, manual_axes: ManualAxes
    ) -> OperationShardings:
        """Return the cheapest of several plans: operands may be gathered instead of all-reducing partial results."""
        op, mesh_name, mesh = operation.op, operation.mesh_name, operation.mesh
        plan = cheapest_operation(op, tensors, mesh_name, operation.meshes, reshapes=isinstance(op, ReshapeOp))
        if isinstance(op, DotOp | DotGeneralOp):
            return spread(op, tensors, plan, mesh_name, mesh, manual_axes.free(op, mesh))
        return plan

    def reshard_point(self, use: Use) -> InsertPoint:
        """Return the point in front of the use: a value from outside that one branch returns is resharded there."""
        return InsertPoint.before(use.operation)

    def collectives(
        self, source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh, reorder_devices: bool
    ) -> tuple[Collective, ...]:
        """Return the collectives that receive the fewest elements."""
        return cheapest_plan(source, target, shape, mesh, reorder_devices)

    def exchange(self, ranges: ReadRanges, furthest: int | None = None) -> Exchange:
        """Plan an exchange of needed rows."""
        return needed_rows(ranges)

    def exchanges_in_reshape(self, sides: ReshapedLayouts) -> bool:
        """Return True."""
        return True

    def reversal_pays(self, sent: float, gathered: float) -> bool:
        """Return whether devices receive no more shards than in a gather."""
        return sent <= gathered

    def prefers_all_reduce(self, reduced: int, scattered: int) -> bool:
        """Return whether devices receive fewer bytes in the all-reduce.

        For one row over eight devices, padded to eight rows, a device receives seven rows in a reduce-scatter, and
        2 * 7/8 rows in an all-reduce.
        """
        return 2 * reduced < scattered
