"""Cost of one operation per device, given the shardings of its operands and results, as the partitioner implements it.

If the shardings are compatible, and devices exchange only partial sums, the cost follows from the operation's sharding
rule, and that of most reshards from their plans. Otherwise the operation is outlined into a function, partitioned, and
the cost of the result is computed. Costs are memoized for equal operations.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from sdy.axes import AxisRef, total_size
from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.meshes import enclosing_module
from sdy.dialect.shardings import set_result_shardings
from sdy.interpreter.grid import Grid
from sdy.ir.shapes import num_elements, shape_of
from sdy.ir.walking import captured_values
from sdy.mesh import Mesh
from sdy.passes.auto.planned_reshard import OperandReshard, Seconds, planned_reshard
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.common.properties import value_bytes
from sdy.passes.driver import run_passes
from sdy.passes.exporting.close_shardings import close_sharding
from sdy.passes.partitioning.convert_global_to_local import ConvertGlobalToLocalPass
from sdy.passes.partitioning.pad_for_divisibility import PadForDivisibilityPass
from sdy.passes.pipelines import PartitionPipeline, insert_reshards
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.network import AxisNames, Message, Network
from sdy.passes.spmd.costs.step_time import axes_of, compute_seconds, message_of
from sdy.passes.spmd.costs.traffic import Times, times_in_memory
from sdy.passes.spmd.costs.work import OperationTimes, OperationWork, padding
from sdy.passes.spmd.outline import outline
from sdy.passes.spmd.plan.operation_plan import Tensors, plan_operation
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding
from sdy.stablehlo import AllGatherOp, AllToAllOp, CollectivePermuteOp, DynamicSliceOp, SliceOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.shape import ReshapeOp

_RESHARDING = AllGatherOp | AllToAllOp | CollectivePermuteOp | DynamicSliceOp | ReshapeOp | SliceOp
"""Operations that reshard an operand, or exchange its halos, before it is used."""

_MOVE = (
    *insert_reshards(explicit_collectives=True, least_communication=True),
    PadForDivisibilityPass(least_communication=True),
    ConvertGlobalToLocalPass(combine_multi_dimension_reduce_scatter=True, compute_whole=True, least_communication=True),
)
"""The passes of `sdy-partition-pipeline` that change a barrier of one value."""

_PLANNER = planner_of(least_communication=True)

Shardings = tuple[TensorSharding | None, ...]


@dataclass(frozen=True, slots=True)
class OperationCost:
    """Cost of an operation per device, in seconds."""

    compute: float
    communication: Seconds
    """The collectives other than reshards of operands, such as all-reduces of partial sums."""
    reshards: tuple[OperandReshard, ...] = ()
    scratch: int = 0
    """The bytes per device of temporaries while it runs, without resharded operands: partial sums, for example."""
    received: float = 0.0
    """The bytes that a device receives, other than in reshards of operands."""


class OperationCosts:
    """Memoized costs of a module's operations on some hardware."""

    def __init__(self, module: ModuleOp, mesh_name: str, mesh: Mesh, hardware: Hardware) -> None:
        self._module = module
        self._mesh_name = mesh_name
        self._mesh = mesh
        self._hardware = hardware
        self._network = Network(mesh, hardware)
        self._costs: dict[tuple[int, OperationWork, Shardings], OperationCost | None] = {}
        """The costs of operations; None where the operation must be partitioned to find it."""
        self._moves: dict[tuple[Attribute, Shardings], OperationCost] = {}
        """The costs of barriers of one value, by its type and its shardings before and after."""
        self._after_propagation: dict[TensorSharding, TensorSharding] = {}
        self._manual_axes = ManualAxes(ModuleOp([]))
        """There are none around an outlined operation."""
        self.planned = 0
        """The number of operations whose shardings the partitioner planned."""
        self.partitioned = 0
        """The number of operations that were partitioned."""

    def of(self, op: Operation, key: int, work: OperationWork, shardings: Shardings) -> OperationCost:
        """Return the cost of `op`.

        Args:
            op: The operation.
            key: A number that equal operations share.
            work: The work of the operation.
            shardings: The shardings of the operands, then of the results.
        """
        cost = self.of_unpartitioned(op, key, work, shardings)
        if cost is None:
            closed = self._closed(shardings)
            cost = self._costs[key, work, closed] = self._of_incompatible(op, key, work, closed)
        return cost

    def of_unpartitioned(
        self, op: Operation, key: int, work: OperationWork, shardings: Shardings
    ) -> OperationCost | None:
        """Return the cost of `op`, as `of` does, or None if the operation must be partitioned to find it."""
        closed = self._closed(shardings)
        if (key, work, closed) not in self._costs:
            self._costs[key, work, closed] = self._of_compatible(op, work, closed)
        return self._costs[key, work, closed]

    def _closed(self, shardings: Shardings) -> Shardings:
        """Return the shardings that costs depend on: open dimensions are as closed ones after propagation.

        A value on a single device, such as a callback's, costs as much as a replicated one.
        """
        shardings = tuple([each if each and each.mesh == self._mesh_name else None for each in shardings])
        closed = [each and self._after_propagation.get(each) for each in shardings]
        for index, sharding in enumerate(shardings):
            if sharding and closed[index] is None:
                closed[index] = self._after_propagation[sharding] = close_sharding(sharding)
        return tuple(closed)

    def of_reshard(
        self, value: SSAValue, source: TensorSharding | None, target: TensorSharding | None
    ) -> OperationCost:
        """Return the cost of resharding `value` from `source` to `target`."""
        moved = _Sum(OperationCost(0.0, {}))
        moved.add_behind(self._of_moved(value, (source, target)), 0.0)
        return moved.cost()

    def _of_compatible(self, op: Operation, work: OperationWork, shardings: Shardings) -> OperationCost | None:
        """Return the cost if the shardings are compatible and only partial sums are exchanged, or else None."""
        if not op.operands:
            return OperationCost(self._seconds_per_shard(op, work, shardings, 1), {})
        rule = sharding_rule(op)
        if rule is None:
            return None
        values = (*op.operands, *op.results)
        tensors = Tensors(rule, shardings, tuple(map(num_elements, values)))
        plan = plan_operation(tensors, self._mesh_name, {self._mesh_name: self._mesh}, isinstance(op, ReshapeOp))
        communicating = (*rule.need_replication, *rule.permutation)
        shards_per_factor = [total_size(axes, self._mesh) for axes in plan.axes_per_factor]
        if any(plan.shardings) or any(plan.axes_per_factor[factor] for factor in communicating):
            return None
        num_shards = math.prod(map(_full_shards, rule.factor_sizes, shards_per_factor))
        result_bytes = sum(map(self.local_bytes, op.results, shardings[len(op.operands) :]))
        compute = self._seconds_per_shard(op, work, shardings, num_shards)
        partial_sums = int(result_bytes) if plan.reduction_axes else 0
        communication, bytes_ = self._of_all_reduce(plan.reduction_axes, result_bytes)
        return OperationCost(compute, communication, scratch=partial_sums, received=bytes_)

    def _seconds_per_shard(self, op: Operation, work: OperationWork, shardings: Shardings, num_shards: float) -> float:
        """Return the compute time in seconds of one of `num_shards` equal shards of the operation."""
        local_bytes = map(self.local_bytes, (*op.operands, *op.results), shardings)
        local_shapes = map(self._local_shape, op.operands, shardings)
        return work.seconds(num_shards, local_bytes, self._hardware, padding(op, [*local_shapes], self._hardware))

    def _of_all_reduce(self, axes: Sequence[AxisRef], local_bytes: float) -> tuple[Seconds, float]:
        """Return the communication seconds of an all-reduce, and the bytes that a device receives."""
        if not axes or not local_bytes:
            return {}, 0.0
        names = tuple([name for name in self._mesh.axis_names if any(axis.name == name for axis in axes)])
        devices = total_size(axes, self._mesh)
        bytes_ = 2 * local_bytes * (devices - 1) / devices
        return {names: self._network.seconds(Message("all_reduce", names, devices, bytes_, 1))}, bytes_

    def _local_shape(self, value: SSAValue, sharding: TensorSharding | None) -> Sequence[int]:
        """Return the shape per device of `value`, including padding."""
        sizes = shape_of(value)
        if sharding is None or not sharding.dims:
            return sizes
        return [-(-size // total_size(axes, self._mesh)) for size, axes in zip(sizes, sharding.dim_axes, strict=True)]

    def local_bytes(self, value: SSAValue, sharding: TensorSharding | None) -> float:
        """Return the bytes per device of `value`, including padding."""
        total = value_bytes(value)
        if sharding is None or not total:
            return total
        return total * math.prod(self._local_shape(value, sharding)) / math.prod(shape_of(value))

    def _of_incompatible(self, op: Operation, key: int, work: OperationWork, shardings: Shardings) -> OperationCost:
        """Return the cost of an operation that communicates: the sum over its reshards and what it does between them.

        Operations and shardings share these costs, so that few combinations need a partitioning of their own.
        """
        values = (*op.operands, *op.results)
        if isinstance(op, OptimizationBarrierOp):
            count = len(op.operands)
            total = _Sum(OperationCost(0.0, {}))
            for index, value in enumerate(op.operands):
                total.add_before(self._of_moved(value, (shardings[index], shardings[count + index])), index)
            return total.cost()
        # The partitioner replicates these operations.
        if captured_values(op) or not all(isinstance(value.type, TensorType) for value in values):
            return OperationCost(OperationTimes(self._hardware, FusedValues()).of(op), {})
        planned = self._planned(op, shardings)
        # A value that is resharded is in memory: no kernel keeps it to itself.
        in_memory = [given != new for given, new in zip(shardings, planned, strict=True)]
        work = replace(work, times=tuple(map(max, work.times, in_memory)))
        cost = self.of_unpartitioned(op, key, work, planned)
        if cost is None:
            cost = self._costs[key, work, planned] = self._of_partitioned(op, planned, work.times)
        total = _Sum(cost)
        for index, (value, given, new) in enumerate(zip(values, shardings, planned, strict=True)):
            if given == new:
                continue
            if index < len(op.operands):
                total.add_before(self._of_moved(value, (given, new)), index)
            else:
                total.add_behind(self._of_moved(value, (new, given)), self.local_bytes(value, new))
        return total.cost()

    def _planned(self, op: Operation, shardings: Shardings) -> Shardings:
        """Return the shardings in which the partitioner computes `op`, as far as they are independent of reshards.

        Results of an operation with partial sums keep their shardings, as one collective reduces and reshards them.
        """
        self.planned += 1
        closed = self._replicated_unless_sharded(op, shardings)
        with capture():
            operation = ShardedOperation.of(self._outlined(op, closed), closed)
            rule = None if operation is None or operation.operator else _PLANNER.operation_rule(operation)
            if operation is None or rule is None:
                return shardings
            plan = _PLANNER.operation_plan(operation, operation.tensors(rule), self._manual_axes)
        num_planned = len(op.operands) if plan.reduction_axes else len(shardings)
        new = [*plan.shardings[:num_planned], *[None] * (len(shardings) - num_planned)]
        return self._closed(tuple([each or old for each, old in zip(new, shardings, strict=True)]))

    def _of_moved(self, value: SSAValue, shardings: Shardings) -> OperationCost:
        """Return the cost of a barrier of one value, given its shardings before and after."""
        key = value.type, shardings
        if key not in self._moves:
            self._moves[key] = self._of_planned_move(value, shardings) or self._of_partitioned_move(value, shardings)
        return self._moves[key]

    def _of_planned_move(self, value: SSAValue, shardings: Shardings) -> OperationCost | None:
        """Return the cost of a barrier of one value from the plan of its reshard, or None if that is not enough."""
        if not isinstance(value.type, TensorType) or any(each is not None and each.unreduced for each in shardings):
            return None
        replicated = ((),) * len(shape_of(value))
        before, after = (replicated if each is None else each.dim_axes for each in shardings)
        planned = planned_reshard(tensor_type(value), before, after, self._mesh, self._network)
        return planned and OperationCost(0.0, {}, (planned.reshard,) if planned.reshard else (), planned.scratch)

    def _of_partitioned_move(self, value: SSAValue, shardings: Shardings) -> OperationCost:
        barrier = OptimizationBarrierOp.build(operands=[[value]], result_types=[[value.type]])
        cost = self._of_partitioned(barrier, shardings, (), _MOVE)
        barrier.drop_all_references()
        return cost

    def _of_partitioned(
        self, op: Operation, shardings: Shardings, times: Times, passes: Sequence[ModulePass] = (PartitionPipeline(),)
    ) -> OperationCost:
        """Partition `op` in a function of its own by `passes` and return its cost.

        `times` are its memory reads and writes in the program: an operand that it does not read is fused into it.
        """
        self.partitioned += 1
        copy = self._outlined(op, self._replicated_unless_sharded(op, shardings))
        alone = times_in_memory(copy, FusedValues())
        reads = zip(range(len(op.operands)), alone, times, strict=False)
        fused = [index for index, read_alone, read in reads if read_alone and not read]
        local = enclosing_module(copy)
        assert local is not None
        try:
            with capture():
                run_passes(local, passes)
        except DiagnosticError:
            return OperationCost(math.inf, {})
        return self._read(local, fused)

    def _outlined(self, op: Operation, shardings: Sequence[TensorSharding]) -> Operation:
        """Return a copy of `op` in a function of its own."""
        inputs, outputs = shardings[: len(op.operands)], shardings[len(op.operands) :]
        _, function = outline(self._module, op, inputs, outputs)
        del function.properties["sym_visibility"]  # partitioning drops private functions without callers
        copy = function.body.block.first_op
        assert copy is not None
        set_result_shardings(copy, outputs)
        return copy

    def _replicated_unless_sharded(self, op: Operation, shardings: Shardings) -> tuple[TensorSharding, ...]:
        return tuple(
            [
                sharding or TensorSharding.replicated_closed(self._mesh_name, len(shape_of(value)))
                for value, sharding in zip((*op.operands, *op.results), shardings, strict=True)
            ]
        )

    def _read(self, local: ModuleOp, fused: Sequence[int]) -> OperationCost:
        """Compute the cost of a partitioned function of one operation, given the operands that are fused into it."""
        operands: dict[SSAValue, int] = {value: index for index, value in enumerate(main_function(local).args)}
        steps: dict[int, list[Operation]] = defaultdict(list)
        sent: dict[int, dict[AxisNames, float]] = defaultdict(lambda: defaultdict(float))
        bytes_of: dict[int | None, float] = defaultdict(float)
        communication: dict[AxisNames, float] = defaultdict(float)
        of_collective = {each.collective: each for each in received(local) if each.bytes}
        for op in main_function(local).body.block.ops:
            operand = operands.get(op.operands[0]) if isinstance(op, _RESHARDING) else None
            if operand is not None:
                operands[op.results[0]] = operand
                steps[operand].append(op)
            for inner in op.walk():
                if (traffic := of_collective.get(inner)) is not None:
                    axes = axes_of(inner, Grid(1, self._mesh.size), self._mesh)
                    seconds = self._network.seconds(message_of(traffic, axes))
                    (communication if operand is None else sent[operand])[axes] += seconds
                    bytes_of[operand] += traffic.bytes
        reshards = tuple([_reshard(index, steps[index], seconds, bytes_of[index]) for index, seconds in sent.items()])
        scratch = max(_temporary_bytes(local, self._hardware.backend) - sum(each.bytes for each in reshards), 0)
        arguments = main_function(local).args
        compute = compute_seconds(
            local, self._hardware, FusedValues([arguments[index] for index in fused], is_whole=False)
        )
        return OperationCost(compute, dict(communication), reshards, scratch, bytes_of[None])


class _Sum:
    """Accumulator for the cost of an operation and of the reshards around it."""

    def __init__(self, cost: OperationCost) -> None:
        self._compute = cost.compute
        self._communication = dict(cost.communication)
        self._reshards = [*cost.reshards]
        self._scratch = cost.scratch
        self._received = cost.received

    def add_before(self, moved: OperationCost, operand: int) -> None:
        """Add the reshard of an operand, which is read as it arrives."""
        self._send(moved.communication)
        self._received += moved.received
        self._reshards += [replace(each, operand=operand) for each in moved.reshards]
        self._scratch += moved.scratch

    def add_behind(self, moved: OperationCost, bytes_: float) -> None:
        """Add the reshard of a result, given the bytes per device of the result before it."""
        for seconds in (moved.communication, *(each.communication for each in moved.reshards)):
            self._send(seconds)
        self._received += moved.received + sum(each.received for each in moved.reshards)
        self._scratch += int(bytes_) + moved.scratch

    def cost(self) -> OperationCost:
        """Return the sum."""
        return OperationCost(self._compute, self._communication, tuple(self._reshards), self._scratch, self._received)

    def _send(self, seconds: Seconds) -> None:
        for axes, each in seconds.items():
            self._communication[axes] = self._communication.get(axes, 0.0) + each


def _full_shards(size: int, count: int) -> float:
    """Return how many shards as large as the largest of `count` shards have `size` elements in total."""
    return size / -(-size // count) if size else 1.0


def _temporary_bytes(local: ModuleOp, backend: Backend) -> int:
    """Return the peak bytes of a per-device program besides its arguments and results.

    Its arguments have the required orders of dimensions: most are results of other operations, which write them so.
    """
    main = main_function(local)
    terminator = main.get_return_op()
    assert terminator is not None
    return peak_bytes(local, backend, copies=False) - sum(map(value_bytes, {*main.args, *terminator.operands}))


def _reshard(operand: int, steps: Sequence[Operation], seconds: Seconds, received_bytes: float) -> OperandReshard:
    names = tuple([f"{op.name} {op.results[0].type}" for op in steps])
    return OperandReshard(operand, names, value_bytes(steps[-1].results[0]), dict(seconds), received_bytes)
