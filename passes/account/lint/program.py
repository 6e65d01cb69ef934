"""Program that lint rules inspect: the propagated and the partitioned module, with lazily cached analyses."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import Location
from sdy.dialect.meshes import find_mesh, main_mesh
from sdy.dialect.ops import ManualComputationOp, ReshardOp, ShardingConstraintOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape
from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.passes.account.causes import Cause, TracedProgram
from sdy.passes.account.collectives import Collective, collectives
from sdy.passes.account.lint.bounds import least_compute, least_memory
from sdy.passes.account.lint.explicit_types import passed_on
from sdy.passes.account.lint.optimizer_states import optimizer_states
from sdy.passes.account.lint.places import At, Places
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.account.lint.use_def import UseDefChains
from sdy.passes.account.lint.written import Costs, WrittenProgram, default_hardware
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import functions, main_function
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.propagation.provenance.explain import Explainer
from sdy.passes.propagation.provenance.explanation import Chain
from sdy.passes.propagation.provenance.history import PropagationRun, history_of
from sdy.passes.spmd.costs.footprint import Footprint, footprint
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.network import Network
from sdy.passes.spmd.costs.step_time import StepTimes
from sdy.sharding import TensorSharding


@dataclass(frozen=True, eq=False)
class LintedProgram:
    """A propagated and partitioned program, with analyses for lint rules."""

    traced: TracedProgram
    thresholds: Thresholds
    written: WrittenProgram | None = None
    """The program before propagation, or None if it is unknown."""
    hardware: Hardware = field(default_factory=default_hardware)
    """The hardware for which times are predicted."""

    @cached_property
    def times(self) -> StepTimes:
        """The predicted times of a step."""
        return StepTimes(self.local, main_mesh(self.local), self.hardware)

    @cached_property
    def costs(self) -> Costs:
        """The predicted costs of a step."""
        return Costs.of(self.times, self.footprint)

    @cached_property
    def least_costs(self) -> Costs:
        """Lower bounds of the costs with any layout: all is sharded over all devices, and nothing is received."""
        compute = least_compute(self.module, self.hardware, any_layout=True)
        return Costs(0.0, least_memory(self.module, self.hardware), compute, compute)

    @property
    def module(self) -> ModuleOp:
        """The unpartitioned program."""
        return self.traced.module

    @property
    def local(self) -> ModuleOp:
        """The program of one device."""
        return self.traced.local

    @cached_property
    def main(self) -> FuncOp:
        """The main function of the unpartitioned program."""
        return main_function(self.module)

    @cached_property
    def names(self) -> list[str]:
        """The names of the arguments of the main function."""
        return argument_names(self.main)

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh of the program, or one without axes if it has none."""
        return main_mesh(self.module)

    @cached_property
    def operations(self) -> list[Operation]:
        """The operations of the unpartitioned program, except for those in manual computations."""
        return [
            op
            for function in functions(self.module)
            for op in operations(function)
            if op is not function and not is_in_manual_computation(op)
        ]

    @cached_property
    def values(self) -> list[SSAValue]:
        """The tensors of the unpartitioned program: arguments of the main function and results of operations."""
        results = (result for op in self.operations for result in op.results)
        return [value for value in (*self.main.args, *results) if is_static_tensor(value.type) and shape(value.type)]

    @cached_property
    def optimizer_states(self) -> Mapping[BlockArgument, Sequence[BlockArgument]]:
        """The optimizer state of each parameter."""
        return optimizer_states(self.main)

    @cached_property
    def passed_on(self) -> Set[Operation]:
        """The constraints that only pass on the shardings of operands, as explicit axis types do."""
        return passed_on(self.module)

    @cached_property
    def collectives(self) -> list[Collective]:
        """The collectives of the partitioned program, in program order."""
        return collectives(self.traced)

    def seconds(self, collectives: Collection[Operation]) -> float:
        """Return the predicted seconds in a step of some of the collectives of the partitioned program."""
        network = Network(self.mesh, self.hardware)
        return sum(network.seconds(each.message) for each in self.collectives if each.op in collectives)

    @cached_property
    def collectives_by_cause(self) -> Mapping[Cause, list[Collective]]:
        """The collectives of each reshard and each sum."""
        by_cause: dict[Cause, list[Collective]] = {}
        for each in self.collectives:
            if each.cause is not None:
                by_cause.setdefault(each.cause, []).append(each)
        return by_cause

    @cached_property
    def use_def(self) -> UseDefChains:
        """The use-def chains of the unpartitioned program."""
        return UseDefChains(self.module)

    def is_argument(self, value: SSAValue) -> bool:
        """Return whether `value` is an argument of the main function, or a slice or a copy of one."""
        return any(at.owner is self.main.body.block for at in self.use_def.trace(value))

    @cached_property
    def footprint(self) -> Footprint:
        """The memory of a device over time."""
        return footprint(self.local, self.hardware.backend)

    @cached_property
    def host_values(self) -> Set[SSAValue]:
        """The values of the unpartitioned program that are in host memory."""
        return host_values(self.module)

    def local_bytes(self, value: SSAValue, sharding: TensorSharding | None) -> int:
        """Return the bytes per device of `value` with `sharding`: none of a value on the host."""
        if value in self.host_values:
            return 0
        return local_bytes(value.type, sharding, self.mesh_of(sharding))

    def mesh_of(self, sharding: TensorSharding | None) -> Mesh | None:
        """Return the mesh of a sharding."""
        return sharding and find_mesh(sharding, self.module)

    def initial_sharding(self, value: SSAValue) -> TensorSharding | None:
        """Return the sharding of a value before propagation, or None if it had none or the history is unknown."""
        for run in self._runs:
            node = run.binding.node_of(value)
            if node is not None:
                return run.solution.initial.get(node)
        return None

    def initial_result_sharding(self, index: int) -> TensorSharding | None:
        """Return the sharding of result `index` of the main function before propagation."""
        for run in self._runs:
            main = run.solution.snapshot.main
            if main is not None:
                return run.solution.initial.get(run.solution.snapshot.functions[main].results[index])
        return None

    @cached_property
    def _runs(self) -> list[PropagationRun]:
        return history_of(self.module).runs

    @cached_property
    def explainer(self) -> Explainer | None:
        """The explainer of shardings, or None if the module was propagated elsewhere."""
        return Explainer(self.module, self.main) if self._runs else None

    def chains(self, value: SSAValue) -> Iterator[Chain]:
        """Yield the propagation chain of each axis of `value`; none if the module was propagated elsewhere."""
        sharding = get_sharding(value)
        if self.explainer is None or sharding is None or value not in self.explainer.names:
            return
        for dimension, dim in enumerate(sharding.dims):
            for axis in dim.axes:
                yield from self.explainer.chains(value, dimension, axis)

    def is_constrained(self, value: SSAValue, axis: AxisRef) -> bool:
        """Return whether `axis` of `value` originates from a sharding constraint."""
        origins = (chain.origin.text for chain in self.chains(value) if chain.axis.overlaps(axis))
        return any(ShardingConstraintOp.name in text for text in origins)

    def called(self, value: SSAValue) -> str:
        """Describe a tensor by the argument, or the operation other than a reshard or a copy, that it stems from.

        An argument of a manual computation has the description of its operand.
        """
        at = value
        for at in self.use_def.trace(value):
            if isinstance(at, OpResult) and not isinstance(at.op, ReshardOp):
                return f"the result of {at.op.name}"
            if isinstance(at, BlockArgument) and at.block is self.main.body.block:
                return self.names[at.index]
        if isinstance(at, BlockArgument) and isinstance(around := at.block.parent_op(), ManualComputationOp):
            return self.called(around.operands[at.index])
        return "a loop-carried value"

    @cached_property
    def places(self) -> Places:
        """The source locations of the unpartitioned program."""
        return Places(self.module, self.use_def)

    def place(self, at: At) -> Location | None:
        """Return the source location of `at`."""
        return self.places.of(at)


def is_in_manual_computation(op: Operation) -> bool:
    """Return whether an operation is in a manual computation, whose tensors are parts of a device."""
    return manual_computation(op) is not None


def manual_computation(op: Operation) -> ManualComputationOp | None:
    """Return the innermost manual computation that contains an operation, or None."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ManualComputationOp):
        parent = parent.parent_op()
    return parent
