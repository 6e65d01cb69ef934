"""Why a device's program has each of its collectives: which operation of the whole program asks for it, and what for.

A pass gives what it makes the location of what it makes it from. So for as long as a program is partitioned, the
location of each of its operations tells which one it is; and that of each reshard, once there are reshards, for what it
stands there.
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
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from sdy.dialect.collectives import AllReduceOp, CollectiveOp, ReduceScatterOp
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.companions import clone
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
    """What a collective is for."""

    RESHARD = "reshard"
    """A tensor lies otherwise than an operation needs it, or than its users want the result."""
    SUM = "partial results"
    """Each device has computed a part of each element, and the parts are combined."""
    EXCHANGE = "exchange"
    """The operation itself needs what other devices hold, as windows and sorts do."""


@dataclass(frozen=True)
class Cause:
    """Why there is a collective: an operation of the whole program, and what it needs."""

    purpose: Purpose
    operation: Operation
    tensor: SSAValue | None = None
    """The tensor of the whole program that is resharded or summed; None where it is none of that program's."""
    before: TensorSharding | None = None
    """Of what is resharded, how it lies; None is replicated."""
    after: TensorSharding | None = None
    """And how it is to lie."""


@dataclass(frozen=True)
class TracedProgram:
    """The program of one device, and which operation of the whole program each of its operations was made from."""

    module: ModuleOp
    """The whole program, with its shardings."""
    local: ModuleOp
    sources: Mapping[Operation, Operation]
    """An operation that was made of none is not in here."""
    causes: Mapping[Operation, Cause]
    """The causes of collectives, and of what else was made for the same."""


def traced_program(layouts: Sequence[PropagatedLayout]) -> TracedProgram:
    """The cheapest of `layouts`, partitioned, with where all of it comes from.

    Raises DiagnosticError where none can be partitioned.
    """
    traced: dict[ModuleOp, TracedProgram] = {}

    def partitioned(module: ModuleOp) -> ModuleOp:
        program = traced_partition(module)
        traced[program.local] = program
        return program.local

    layout = cheapest(layouts, partitioned)
    return traced.get(layout.local) or traced_partition(layout.module)


def traced_partition(module: ModuleOp) -> TracedProgram:
    """What one device runs of `module`, which has its shardings and stays as it is; with where all of it comes from.

    A program of one device is its own source. Raises DiagnosticError where it cannot be partitioned.
    """
    if is_local(module):
        return TracedProgram(module, module, {op: op for op in operations(module)}, {})
    tracer = _Tracer(operations(module))
    local = clone(module)
    tracer.mark_sources(local)
    run_passes(local, [PartitionPipeline()], before_each=tracer.before, after_each=tracer.after)
    return tracer.traced(module, local)


_INSERT_RESHARDS = InsertExplicitReshardsPass | ResolvePermutationFactorsPass

_SOURCE = "sdy.source."
_CAUSE = "sdy.cause."


class _Tracer:
    """Marks locations while a program is partitioned, reads the marks in the end, and takes them away."""

    def __init__(self, sources: Sequence[Operation]) -> None:
        self._sources = sources
        self._causes: list[Cause] = []
        self._present: set[Operation] = set()

    def mark_sources(self, local: ModuleOp) -> None:
        """Mark each operation of a copy of the whole program."""
        for number, op in enumerate(operations(local)):
            op.location = _marked(f"{_SOURCE}{number}", op.location)

    def before(self, step: ModulePass, local: ModuleOp) -> None:
        """Remember what is there before reshards are inserted."""
        if isinstance(step, _INSERT_RESHARDS):
            self._present = {*operations(local)}

    def after(self, step: ModulePass, local: ModuleOp) -> None:
        """Mark what was inserted with its cause."""
        if not isinstance(step, _INSERT_RESHARDS):
            return
        for op in operations_of(local, ReshardOp, CollectiveOp):
            cause = None if _number(op, _CAUSE) is not None else self._cause_of(op)
            if cause is not None:
                op.location = _marked(f"{_CAUSE}{len(self._causes)}", op.location)
                self._causes.append(cause)

    def traced(self, module: ModuleOp, local: ModuleOp) -> TracedProgram:
        """What the marks say, which are gone afterwards."""
        found = operations(local)
        sources = {op: source for op in found if (source := self._source_of(op)) is not None}
        causes = {op: self._causes[number] for op in found if (number := _number(op, _CAUSE)) is not None}
        for op in found:
            op.location = _unmarked(op.location)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.args:
                        argument.location = argument.location and _unmarked(argument.location)
        return TracedProgram(module, local, sources, causes)

    def _cause_of(self, op: ReshardOp | CollectiveOp) -> Cause | None:
        """The cause of an operation that is to become collectives; None where nothing of the whole program is."""
        source = self._source_of(op)
        if op in self._present and source is not None:
            purpose = Purpose.SUM if isinstance(op, AllReduceOp | ReduceScatterOp) else Purpose.RESHARD
            return Cause(purpose, source, self._whole(op.operands[0]), *_ends(op))
        tensor = self._whole(op.operands[0])
        if isinstance(op, CollectiveOp):
            return source and Cause(Purpose.SUM, source, tensor)
        before, after = _ends(op)
        if isinstance(tensor, OpResult) and equivalent(get_sharding(tensor), after):
            return Cause(Purpose.RESHARD, tensor.op, tensor, before, after)
        user = next((self._source_of(use.operation) for use in op.results[0].uses), None) or source
        return user and Cause(Purpose.RESHARD, user, tensor, before, after)

    def _whole(self, value: SSAValue) -> SSAValue | None:
        """The tensor of the whole program that `value` is, or takes the place of."""
        if isinstance(value, OpResult):
            if isinstance(value.op, ReshardOp | CollectiveOp) and value.op not in self._present:
                return self._whole(value.op.operands[0])
            source = self._source_of(value.op)
            made = source.results[value.index] if source and value.index < len(source.results) else None
            # Of what an operation was expanded to, some is none of its results.
            return made if made is not None and made.type == value.type else None
        assert isinstance(value, BlockArgument)
        return self._whole_argument(value)

    def _whole_argument(self, argument: BlockArgument) -> SSAValue | None:
        around = argument.block.parent_op()
        source = around and self._source_of(around)
        if around is None or source is None or len(source.regions) != len(around.regions):
            return None
        block = source.regions[around.regions.index(argument.block.parent_region())].block
        return block.args[argument.index] if argument.index < len(block.args) else None

    def _source_of(self, op: Operation) -> Operation | None:
        number = _number(op, _SOURCE)
        return None if number is None else self._sources[number]


def _ends(op: ReshardOp | CollectiveOp) -> tuple[TensorSharding | None, TensorSharding | None]:
    """How a tensor lies before and after."""
    return get_sharding(op.operands[0]), get_sharding(op.results[0])


def _marked(mark: str, location: LocationAttr) -> LocationAttr:
    return NameLoc(StringAttr(mark), location)


def _number(op: Operation, kind: str) -> int | None:
    """The number in the outermost mark of a kind."""
    mark = _find(op.location, kind)
    return None if mark is None else int(mark.removeprefix(kind))


def _find(location: Attribute, kind: str) -> str | None:
    if isinstance(location, NameLoc) and location.desc.data.startswith(kind):
        return location.desc.data
    return next((mark for part in _parts(location) if (mark := _find(part, kind))), None)


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


def _unmarked(location: Attribute) -> LocationAttr:
    match location:
        case NameLoc() if location.desc.data.startswith((_SOURCE, _CAUSE)):
            return _unmarked(location.location)
        case NameLoc() if not isinstance(location.location, NoneAttr):
            return NameLoc(location.desc, _unmarked(location.location))
        case CallSiteLoc():
            return CallSiteLoc(_unmarked(location.callee), _unmarked(location.caller))
        case FusedLoc():
            return FusedLoc(ArrayAttr([_unmarked(part) for part in _parts(location)]), location.metadata)
        case _:
            return cast(LocationAttr, location)
