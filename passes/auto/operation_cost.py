"""Cost of one operation per device, given the shardings of its operands and results, as the partitioner implements it.

If the shardings are compatible, and devices exchange only partial sums, the cost follows from the operation's sharding
rule. Otherwise the operation is outlined into a function, partitioned, and the cost of the result is computed. Costs
are memoized for equal operations.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import set_result_shardings
from sdy.interpreter.grid import Grid
from sdy.ir.shapes import num_elements, shape_of
from sdy.ir.walking import captured_values
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.driver import partition
from sdy.passes.exporting.close_shardings import close_sharding
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.network import AxisNames, Message, Network
from sdy.passes.spmd.costs.step_time import axes_of, compute_seconds, message_of
from sdy.passes.spmd.costs.work import OperationWork, padding, seconds_of
from sdy.passes.spmd.outline import outline
from sdy.passes.spmd.plan.operation_plan import Tensors, plan_operation
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding
from sdy.stablehlo import AllGatherOp, AllToAllOp, CollectivePermuteOp, DynamicSliceOp
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.shape import ReshapeOp

_RESHARDING = AllGatherOp | AllToAllOp | CollectivePermuteOp | DynamicSliceOp | ReshapeOp
"""Operations that reshard an operand before it is used."""

Shardings = tuple[TensorSharding | None, ...]
Seconds = Mapping[AxisNames, float]
"""Communication time by the mesh axes of the collectives."""


@dataclass(frozen=True, slots=True)
class OperandReshard:
    """Reshard of an operand before the operation; users with equal reshards of a value share one."""

    operand: int
    """The index of the operand."""
    steps: tuple[str, ...]
    """The names and types of the resharding operations; reshards with equal steps are equal."""
    bytes: int
    """The bytes per device of the resharded operand."""
    communication: Seconds


@dataclass(frozen=True, slots=True)
class OperationCost:
    """Cost of an operation per device, in seconds."""

    compute: float
    communication: Seconds
    """The collectives other than reshards of operands, such as all-reduces of partial sums."""
    reshards: tuple[OperandReshard, ...] = ()
    scratch: int = 0
    """The bytes per device of temporaries while it runs, without resharded operands: partial sums, for example."""


class OperationCosts:
    """Memoized costs of a module's operations on some hardware."""

    def __init__(self, module: ModuleOp, mesh_name: str, mesh: Mesh, hardware: Hardware) -> None:
        self._module = module
        self._mesh_name = mesh_name
        self._mesh = mesh
        self._hardware = hardware
        self._network = Network(mesh, hardware)
        self._reshards: dict[tuple[Attribute, TensorSharding | None, TensorSharding | None], Seconds] = {}
        self._costs: dict[tuple[int, OperationWork, Shardings], OperationCost] = {}
        self._moves: dict[tuple[Attribute, Shardings], OperationCost] = {}
        """The costs of barriers of one value, by its type and its shardings before and after."""
        self._after_propagation: dict[TensorSharding, TensorSharding] = {}
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
            cost = self._costs[key, work, closed] = self._of_incompatible(op, closed)
        return cost

    def of_unpartitioned(
        self, op: Operation, key: int, work: OperationWork, shardings: Shardings
    ) -> OperationCost | None:
        """Return the cost of `op`, as `of` does, or None if the operation must be partitioned to find it."""
        closed = self._closed(shardings)
        cost = self._costs.get((key, work, closed))
        if cost is None and (cost := self._of_compatible(op, work, closed)):
            self._costs[key, work, closed] = cost
        return cost

    def _closed(self, shardings: Shardings) -> Shardings:
        """Return the shardings that costs depend on: open dimensions are as closed ones after propagation."""
        closed = [each and self._after_propagation.get(each) for each in shardings]
        for index, sharding in enumerate(shardings):
            if sharding and closed[index] is None:
                closed[index] = self._after_propagation[sharding] = close_sharding(sharding)
        return tuple(closed)

    def of_reshard(self, value: SSAValue, source: TensorSharding | None, target: TensorSharding | None) -> Seconds:
        """Return the communication seconds of resharding `value` from `source` to `target`."""
        key = value.type, source, target
        if key not in self._reshards:
            replicated = TensorSharding.replicated_closed(self._mesh_name, len(shape_of(value)))
            reshard = ReshardOp(value, target or replicated)
            cost = self._of_partitioned(reshard, (source, target))
            reshard.drop_all_references()
            sent: dict[AxisNames, float] = defaultdict(float)
            for seconds in (cost.communication, *(each.communication for each in cost.reshards)):
                for axes, each in seconds.items():
                    sent[axes] += each
            self._reshards[key] = sent
        return self._reshards[key]

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
        return OperationCost(compute, self._of_all_reduce(plan.reduction_axes, result_bytes), scratch=partial_sums)

    def _seconds_per_shard(self, op: Operation, work: OperationWork, shardings: Shardings, num_shards: float) -> float:
        """Return the compute time in seconds of one of `num_shards` equal shards of the operation."""
        local_bytes = map(self.local_bytes, (*op.operands, *op.results), shardings)
        local_shapes = map(self._local_shape, op.operands, shardings)
        return work.seconds(num_shards, local_bytes, self._hardware, padding(op, [*local_shapes], self._hardware))

    def _of_all_reduce(self, axes: Sequence[AxisRef], local_bytes: float) -> Seconds:
        if not axes or not local_bytes:
            return {}
        names = tuple([name for name in self._mesh.axis_names if any(axis.name == name for axis in axes)])
        devices = total_size(axes, self._mesh)
        bytes_ = 2 * local_bytes * (devices - 1) / devices
        return {names: self._network.seconds(Message("all_reduce", names, devices, bytes_, 1))}

    def _local_shape(self, value: SSAValue, sharding: TensorSharding | None) -> Sequence[int]:
        """Return the shape per device of `value`, including padding."""
        sizes = shape_of(value)
        if sharding is None:
            return sizes
        return [-(-size // total_size(axes, self._mesh)) for size, axes in zip(sizes, sharding.dim_axes, strict=True)]

    def local_bytes(self, value: SSAValue, sharding: TensorSharding | None) -> float:
        """Return the bytes per device of `value`, including padding."""
        total = value_bytes(value)
        if sharding is None or not total:
            return total
        return total * math.prod(self._local_shape(value, sharding)) / math.prod(shape_of(value))

    def _of_incompatible(self, op: Operation, shardings: Shardings) -> OperationCost:
        """Return the cost of a partitioned operation; of a barrier, the sum over its values, which move one by one."""
        if not isinstance(op, OptimizationBarrierOp):
            return self._of_partitioned(op, shardings)
        count = len(op.operands)
        compute, communication = 0.0, dict[AxisNames, float]()
        reshards, scratch = list[OperandReshard](), 0
        for index, value in enumerate(op.operands):
            moved = self._of_moved(value, (shardings[index], shardings[count + index]))
            compute += moved.compute
            for axes, seconds in moved.communication.items():
                communication[axes] = communication.get(axes, 0.0) + seconds
            reshards += [replace(each, operand=index) for each in moved.reshards]
            scratch += moved.scratch
        return OperationCost(compute, communication, tuple(reshards), scratch)

    def _of_moved(self, value: SSAValue, shardings: Shardings) -> OperationCost:
        """Return the cost of a barrier of one value, given its shardings before and after."""
        key = value.type, shardings
        if key not in self._moves:
            barrier = OptimizationBarrierOp.build(operands=[[value]], result_types=[[value.type]])
            self._moves[key] = self._of_partitioned(barrier, shardings)
            barrier.drop_all_references()
        return self._moves[key]

    def _of_partitioned(self, op: Operation, shardings: Shardings) -> OperationCost:
        """Partition `op` in a function of its own and return its cost.

        An operation that captures values or has operands other than tensors is costed as replicated.
        """
        values = (*op.operands, *op.results)
        if captured_values(op) or not all(isinstance(value.type, TensorType) for value in values):
            return OperationCost(seconds_of(op, self._hardware, FusedValues()), {})
        closed = [
            sharding or TensorSharding.replicated_closed(self._mesh_name, len(shape_of(value)))
            for value, sharding in zip(values, shardings, strict=True)
        ]
        self.partitioned += 1
        inputs, outputs = closed[: len(op.operands)], closed[len(op.operands) :]
        local, function = outline(self._module, op, inputs, outputs)
        del function.properties["sym_visibility"]  # partitioning drops private functions without callers
        copy = function.body.block.first_op
        assert copy is not None
        if not isinstance(copy, ReshardOp):
            set_result_shardings(copy, outputs)
        try:
            with capture():
                partition(local)
        except DiagnosticError:
            return OperationCost(math.inf, {})
        return self._read(local)

    def _read(self, local: ModuleOp) -> OperationCost:
        """Compute the cost of a partitioned function of one operation."""
        operands: dict[SSAValue, int] = {value: index for index, value in enumerate(main_function(local).args)}
        steps: dict[int, list[Operation]] = defaultdict(list)
        sent: dict[int, dict[AxisNames, float]] = defaultdict(lambda: defaultdict(float))
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
        reshards = tuple([_reshard(operand, steps[operand], seconds) for operand, seconds in sent.items()])
        scratch = max(_temporary_bytes(local) - sum(each.bytes for each in reshards), 0)
        return OperationCost(compute_seconds(local, self._hardware), dict(communication), reshards, scratch)


def _full_shards(size: int, count: int) -> float:
    """Return how many shards as large as the largest of `count` shards have `size` elements in total."""
    return size / -(-size // count) if size else 1.0


def _temporary_bytes(local: ModuleOp) -> int:
    """Return the peak bytes of a per-device program besides its arguments and results."""
    main = main_function(local)
    terminator = main.get_return_op()
    assert terminator is not None
    return peak_bytes(local) - sum(map(value_bytes, {*main.args, *terminator.operands}))


def _reshard(operand: int, steps: Sequence[Operation], seconds: Seconds) -> OperandReshard:
    names = tuple([f"{op.name} {op.results[0].type}" for op in steps])
    return OperandReshard(operand, names, value_bytes(steps[-1].results[0]), dict(seconds))
