"""What one operation costs each device, for the shardings of its operands and results: the partitioner's own answer.

Where the shardings agree, and no device needs what another has but for sums, that follows from the operation's rule.
Otherwise the operation is partitioned alone, in a function of its own, and what came of it is read off. Either is done
once for all operations that are equal.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import set_result_shardings
from sdy.interpreter.grid import Grid
from sdy.ir.captures import captured_values
from sdy.ir.shapes import num_elements, shape_of
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import partition
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.passes.spmd.costs.step_time import AxisNames, axes_of, compute_seconds, seconds_of_messages
from sdy.passes.spmd.costs.work import Work, seconds_of
from sdy.passes.spmd.outline import outline
from sdy.passes.spmd.reshards.operation_plan import Tensors, plan_operation
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding
from sdy.stablehlo import AllGatherOp, AllToAllOp, CollectivePermuteOp, DynamicSliceOp
from sdy.stablehlo.shape import ReshapeOp

_RESHARDING = AllGatherOp | AllToAllOp | CollectivePermuteOp | DynamicSliceOp | ReshapeOp
"""What brings an operand to another sharding before it is used."""

Shardings = tuple[TensorSharding | None, ...]
Seconds = Mapping[AxisNames, float]


@dataclass(frozen=True, slots=True)
class OperandReshard:
    """What an operand goes through before anything is computed; users that want the same share it."""

    operand: int
    steps: tuple[str, ...]
    """What is done to it, by which two of these are equal."""
    bytes: int
    """What it is then, on each device."""
    communication: Seconds


@dataclass(frozen=True, slots=True)
class OperationCost:
    """What an operation costs each device."""

    compute: float
    communication: Seconds
    """Of what it does itself, such as sums."""
    reshards: tuple[OperandReshard, ...] = ()


class OperationCosts:
    """The costs of a module's operations on some hardware, found when they are first asked for."""

    def __init__(self, module: ModuleOp, mesh_name: str, mesh: Mesh, hardware: Hardware) -> None:
        self._module = module
        self._mesh_name = mesh_name
        self._mesh = mesh
        self._hardware = hardware
        self._reshards: dict[tuple[Attribute, TensorSharding | None, TensorSharding | None], Seconds] = {}
        self._costs: dict[tuple[int, Work, Shardings], OperationCost] = {}

    def of(self, op: Operation, key: int, work: Work, shardings: Shardings) -> OperationCost:
        """What `op` costs where its operands and results have `shardings`; equal operations have one `key`."""
        found = self._costs.get((key, work, shardings))
        if found is None:
            found = self._of_agreeing(op, work, shardings) or self._alone(op, shardings)
            self._costs[key, work, shardings] = found
        return found

    def of_reshard(self, value: SSAValue, source: TensorSharding | None, target: TensorSharding | None) -> Seconds:
        """What is sent where `value` goes from one sharding to another."""
        key = value.type, source, target
        if key not in self._reshards:
            whole = TensorSharding.replicated_closed(self._mesh_name, len(shape_of(value)))
            reshard = ReshardOp(value, target or whole)
            cost = self._alone(reshard, (source, target))
            reshard.drop_all_references()
            sent: dict[AxisNames, float] = defaultdict(float)
            for seconds in (cost.communication, *(each.communication for each in cost.reshards)):
                for axes, each in seconds.items():
                    sent[axes] += each
            self._reshards[key] = sent
        return self._reshards[key]

    def _of_agreeing(self, op: Operation, work: Work, shardings: Shardings) -> OperationCost | None:
        """The cost where nothing but sums is exchanged; None where that may not be so."""
        if not op.operands:
            return OperationCost(self._seconds_of_parts(op, work, shardings, 1), {})
        rule = sharding_rule(op)
        if rule is None:
            return None
        values = (*op.operands, *op.results)
        tensors = Tensors(rule, shardings, tuple(map(num_elements, values)))
        plan = plan_operation(tensors, self._mesh_name, {self._mesh_name: self._mesh}, isinstance(op, ReshapeOp))
        exchanged = (*rule.need_replication, *rule.permutation)
        parts_per_factor = [total_size(axes, self._mesh) for axes in plan.axes_per_factor]
        is_uneven = any(size % parts for size, parts in zip(rule.factor_sizes, parts_per_factor, strict=True))
        if any(plan.shardings) or any(plan.axes_per_factor[factor] for factor in exchanged) or is_uneven:
            return None
        parts = math.prod(parts_per_factor)
        summed = sum(map(self.local_bytes, op.results, shardings[len(op.operands) :]))
        compute = self._seconds_of_parts(op, work, shardings, parts)
        return OperationCost(compute, self._of_sum(plan.reduction_axes, summed))

    def _seconds_of_parts(self, op: Operation, work: Work, shardings: Shardings, parts: int) -> float:
        """How long a device computes that does one of so many parts, and has its parts of operands and results."""
        local_bytes = map(self.local_bytes, (*op.operands, *op.results), shardings)
        return work.seconds(parts, local_bytes, self._hardware)

    def _of_sum(self, axes: Sequence[AxisRef], summed: float) -> Seconds:
        if not axes or not summed:
            return {}
        names = tuple([name for name in self._mesh.axis_names if any(axis.name == name for axis in axes)])
        parts = total_size(axes, self._mesh)
        bytes_ = 2 * summed * (parts - 1) / parts
        return {names: seconds_of_messages(names, bytes_, 1, self._mesh, self._hardware)}

    def local_bytes(self, value: SSAValue, sharding: TensorSharding | None) -> float:
        """The bytes of `value` that a device has."""
        whole = value_bytes(value)
        if sharding is None or not whole:
            return whole
        sizes = shape_of(value)
        local = math.prod(
            -(-size // total_size(axes, self._mesh)) for size, axes in zip(sizes, sharding.dim_axes, strict=True)
        )
        return whole * local / math.prod(sizes)

    def _alone(self, op: Operation, shardings: Shardings) -> OperationCost:
        """The cost of `op` as the partitioner has it alone; of what cannot be, of the whole on each device."""
        values = (*op.operands, *op.results)
        if captured_values(op) or not all(isinstance(value.type, TensorType) for value in values):
            return OperationCost(seconds_of(op, self._hardware, FusedValues()), {})
        closed = [
            sharding or TensorSharding.replicated_closed(self._mesh_name, len(shape_of(value)))
            for value, sharding in zip(values, shardings, strict=True)
        ]
        inputs, outputs = closed[: len(op.operands)], closed[len(op.operands) :]
        local, function = outline(self._module, op, inputs, outputs)
        del function.properties["sym_visibility"]  # partitioning drops private functions that nobody calls
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
        """What there is in a partitioned function of one operation."""
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
                if (found := of_collective.get(inner)) is not None:
                    axes = axes_of(inner, Grid(1, self._mesh.size), self._mesh)
                    seconds = seconds_of_messages(axes, found.bytes, found.times, self._mesh, self._hardware)
                    (communication if operand is None else sent[operand])[axes] += seconds
        return OperationCost(
            compute_seconds(local, self._hardware),
            dict(communication),
            tuple([_reshard(operand, steps[operand], seconds) for operand, seconds in sent.items()]),
        )


def _reshard(operand: int, steps: Sequence[Operation], seconds: Seconds) -> OperandReshard:
    names = tuple([f"{op.name} {op.results[0].type}" for op in steps])
    return OperandReshard(operand, names, value_bytes(steps[-1].results[0]), dict(seconds))
