"""Causes of collectives: for each collective of the partitioned program, the operation that requires it and the reason.

A pass gives each operation that it creates the location of the operation that it replaces. During partitioning, marks
in the locations therefore identify the unpartitioned operation that each operation stems from, and the reshard that
each collective stems from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FusedLoc,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
)
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from sdy.dialect.collectives import AllReduceOp, CollectiveOp, ReduceScatterOp
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.building import unchecked
from sdy.ir.companions import clone_alone
from sdy.ir.locations import fused_parts
from sdy.ir.walking import operations, operations_of
from sdy.passes.driver import run_passes
from sdy.passes.exporting.insert_explicit_reshards import InsertExplicitReshardsPass
from sdy.passes.layouts import PropagatedLayout, cheapest
from sdy.passes.partitioning.resolve_permutation_factors import ResolvePermutationFactorsPass
from sdy.passes.pipelines import PartitionPipeline
from sdy.passes.spmd.local_module import is_local
from sdy.sharding import TensorSharding, equivalent


class Purpose(Enum):
    """The purpose of a collective."""

    RESHARD = "reshard"
    """An operand or a result has a different sharding from the one that an operation or its users require."""
    SUM = "partial results"
    """Each device has a partial sum of each element."""
    EXCHANGE = "exchange"
    """The operation itself reads elements of other devices, as windows (halo exchange) and sorts do."""


@dataclass(frozen=True)
class Cause:
    """The reason for a collective: an unpartitioned operation, and the tensor that is resharded or summed for it."""

    purpose: Purpose
    operation: Operation
    tensor: SSAValue | None = None
    """The resharded or summed tensor of the unpartitioned program, or None if it exists only after partitioning."""
    before: TensorSharding | None = None
    """The sharding before a reshard; None is replicated."""
    after: TensorSharding | None = None
    """The sharding after a reshard; None is replicated."""


@dataclass(frozen=True)
class TracedProgram:
    """A partitioned program with the provenance of its operations."""

    module: ModuleOp
    """The unpartitioned program, with its shardings."""
    local: ModuleOp
    """The program of one device."""
    sources: Mapping[Operation, Operation]
    """The unpartitioned operation that each operation of `local` stems from, for those that stem from one."""
    causes: Mapping[Operation, Cause]
    """The causes of collectives, and of the other operations of the same reshard or sum."""


def traced_program(layouts: Sequence[PropagatedLayout], memory: str = "") -> TracedProgram:
    """Partition the cheapest of `layouts` and trace its operations back to the unpartitioned program.

    Args:
        layouts: The candidate layouts.
        memory: The limit of the predicted memory of a device, such as "2G"; empty without limit.

    Raises:
        DiagnosticError: None of the layouts can be partitioned.
    """
    traced: dict[ModuleOp, TracedProgram] = {}

    def partitioned(module: ModuleOp) -> ModuleOp:
        program = traced_partition(module, memory)
        traced[program.local] = program
        return program.local

    layout = cheapest(layouts, partitioned)
    return traced.get(layout.local) or traced_partition(layout.module, memory)


def traced_partition(module: ModuleOp, memory: str = "") -> TracedProgram:
    """Partition a copy of the propagated `module` and trace its operations back to it.

    In a module that is partitioned already, each operation is its own source.

    Raises:
        DiagnosticError: The module cannot be partitioned.
    """
    if is_local(module):
        return TracedProgram(module, module, {op: op for op in operations(module)}, {})
    tracer = _Tracer(operations(module))
    local = clone_alone(module)
    tracer.mark_sources(local)
    run_passes(local, [PartitionPipeline(memory=memory)], before_each=tracer.before, after_each=tracer.after)
    return tracer.traced(module, local)


_INSERT_RESHARDS = InsertExplicitReshardsPass | ResolvePermutationFactorsPass

_SOURCE = "sdy.source."
_CAUSE = "sdy.cause."


class _Tracer:
    """Marks locations during partitioning; afterwards reads the marks and removes them."""

    def __init__(self, sources: Sequence[Operation]) -> None:
        self._sources = sources
        self._causes: list[Cause] = []
        self._marks = _Marks()
        self._present: set[Operation] = set()

    def mark_sources(self, local: ModuleOp) -> None:
        """Mark each operation of a copy of the unpartitioned program with its number."""
        for number, op in enumerate(operations(local)):
            op.location = _marked(f"{_SOURCE}{number}", op.location)

    def before(self, step: ModulePass, local: ModuleOp) -> None:
        """Record the operations that exist before reshards are inserted."""
        if isinstance(step, _INSERT_RESHARDS):
            self._present = {*operations(local)}

    def after(self, step: ModulePass, local: ModuleOp) -> None:
        """Mark the inserted reshards and collectives with their causes."""
        if not isinstance(step, _INSERT_RESHARDS):
            return
        for op in operations_of(local, ReshardOp, CollectiveOp):
            cause = None if self._marks.number(op, _CAUSE) is not None else self._cause_of(op)
            if cause is not None:
                op.location = _marked(f"{_CAUSE}{len(self._causes)}", op.location)
                self._causes.append(cause)

    def traced(self, module: ModuleOp, local: ModuleOp) -> TracedProgram:
        """Read the marks, and remove them."""
        local_ops = operations(local)
        sources = {op: source for op in local_ops if (source := self._source_of(op)) is not None}
        causes = {
            op: self._causes[number] for op in local_ops if (number := self._marks.number(op, _CAUSE)) is not None
        }
        for op in local_ops:
            op.location = self._marks.removed(op.location)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.args:
                        argument.location = argument.location and self._marks.removed(argument.location)
        return TracedProgram(module, local, sources, causes)

    def _cause_of(self, op: ReshardOp | CollectiveOp) -> Cause | None:
        """Return the cause of a reshard or collective, or None if it stems from no unpartitioned operation."""
        source = self._source_of(op)
        if op in self._present and source is not None:
            purpose = Purpose.SUM if isinstance(op, AllReduceOp | ReduceScatterOp) else Purpose.RESHARD
            return Cause(purpose, source, self._unpartitioned(op.operands[0]), *_ends(op))
        tensor = self._unpartitioned(op.operands[0])
        if isinstance(op, CollectiveOp):
            return source and Cause(Purpose.SUM, source, tensor)
        before, after = _ends(op)
        if isinstance(tensor, OpResult) and equivalent(get_sharding(tensor), after):
            return Cause(Purpose.RESHARD, tensor.op, tensor, before, after)
        user = next((self._source_of(use.operation) for use in op.results[0].uses), None) or source
        return user and Cause(Purpose.RESHARD, user, tensor, before, after)

    def _unpartitioned(self, value: SSAValue) -> SSAValue | None:
        """Return the tensor of the unpartitioned program that `value` is or replaces."""
        if isinstance(value, OpResult):
            if isinstance(value.op, ReshardOp | CollectiveOp) and value.op not in self._present:
                return self._unpartitioned(value.op.operands[0])
            source = self._source_of(value.op)
            result = source.results[value.index] if source and value.index < len(source.results) else None
            # The expansion of an operation has results that are not results of the operation.
            return result if result is not None and result.type == value.type else None
        assert isinstance(value, BlockArgument)
        return self._unpartitioned_argument(value)

    def _unpartitioned_argument(self, argument: BlockArgument) -> SSAValue | None:
        around = argument.block.parent_op()
        source = around and self._source_of(around)
        if around is None or source is None or len(source.regions) != len(around.regions):
            return None
        block = source.regions[around.regions.index(argument.block.parent_region())].block
        return block.args[argument.index] if argument.index < len(block.args) else None

    def _source_of(self, op: Operation) -> Operation | None:
        number = self._marks.number(op, _SOURCE)
        return None if number is None else self._sources[number]


def _ends(op: ReshardOp | CollectiveOp) -> tuple[TensorSharding | None, TensorSharding | None]:
    """Return the shardings of the operand and of the result."""
    return get_sharding(op.operands[0]), get_sharding(op.results[0])


def _marked(mark: str, location: LocationAttr) -> LocationAttr:
    return unchecked(NameLoc, desc=unchecked(StringAttr, data=mark), location=location)


class _Marks:
    """Reads and removes the marks in locations; walks a location that many operations share, as a call stack, once."""

    def __init__(self) -> None:
        self._unmarked: dict[int, Attribute] = {}
        """The locations without marks, by `id`, which is valid as long as the location is here."""

    def number(self, op: Operation, kind: str) -> int | None:
        """Return the number in the outermost mark of `kind`."""
        mark = self._find(op.location, kind)
        return None if mark is None else int(mark.removeprefix(kind))

    def removed(self, location: Attribute) -> LocationAttr:
        """Return `location` without marks."""
        if self._has_none(location):
            return cast(LocationAttr, location)
        match location:
            case NameLoc() if _is_mark(location):
                return self.removed(location.location)
            case NameLoc():
                return NameLoc(location.desc, self.removed(location.location))
            case CallSiteLoc():
                return CallSiteLoc(self.removed(location.callee), self.removed(location.caller))
            case _:
                assert isinstance(location, FusedLoc)
                return FusedLoc(ArrayAttr([self.removed(part) for part in _parts(location)]), location.metadata)

    def _find(self, location: Attribute, kind: str) -> str | None:
        if self._has_none(location):
            return None
        if isinstance(location, NameLoc) and location.desc.data.startswith(kind):
            return location.desc.data
        return next((mark for part in _parts(location) if (mark := self._find(part, kind))), None)

    def _has_none(self, location: Attribute) -> bool:
        if id(location) in self._unmarked:
            return True
        if _is_mark(location) or not all(map(self._has_none, _parts(location))):
            return False
        self._unmarked[id(location)] = location
        return True


def _is_mark(location: Attribute) -> bool:
    return isinstance(location, NameLoc) and location.desc.data.startswith((_SOURCE, _CAUSE))


def _parts(location: Attribute) -> Sequence[Attribute]:
    match location:
        case NameLoc():
            return (location.location,)
        case CallSiteLoc():
            return location.callee, location.caller
        case FusedLoc():
            return fused_parts(location)
        case _:
            return ()
