"""The collectives of a partitioned program, with their runs, their bytes and their causes."""

from dataclasses import dataclass, replace

from xdsl.ir import Operation

from sdy.diagnostics import Location, location_of
from sdy.dialect.meshes import main_mesh
from sdy.interpreter.grid import Grid
from sdy.passes.account.causes import Cause, Purpose, TracedProgram
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.network import AxisNames, Message
from sdy.passes.spmd.costs.step_time import axes_of, message_of


@dataclass(frozen=True, eq=False)
class Collective:
    """A collective of the partitioned program, and its cause."""

    op: Operation
    times: int
    """The number of runs in a step."""
    bytes: float
    """The bytes that a device receives in all of these runs, averaged over devices."""
    axes: AxisNames
    message: Message
    """The runs as one message, for predicted times."""
    cause: Cause | None
    """None if the operation itself exchanges data (halo exchange, sort), or if the cause is unknown."""
    source: Operation | None
    """The operation of the unpartitioned program that requires it, or None if it is unknown."""

    @property
    def kind(self) -> str:
        """The kind in XLA's spelling, such as `all-gather`."""
        return kind_of(self.op)

    @property
    def is_reshard(self) -> bool:
        """True if it reshards a tensor."""
        return self.cause is not None and self.cause.purpose is Purpose.RESHARD

    @property
    def place(self) -> Location | None:
        """The source location of the operation that requires it."""
        return location_of(self.source) or location_of(self.op)


def kind_of(op: Operation) -> str:
    """Return the kind of a collective in XLA's spelling, such as `all-gather`."""
    return op.name.rpartition(".")[2].replace("_", "-")


def collectives(traced: TracedProgram) -> list[Collective]:
    """Return the collectives of a partitioned program, in program order."""
    mesh = main_mesh(traced.local)
    grid = Grid(1, mesh.size)
    by_operation: dict[Operation, Collective] = {}
    for each in received(traced.local):
        op = each.collective
        before = by_operation.get(op)
        if before is not None:
            times, bytes_ = before.times + each.times, before.bytes + each.bytes
            message = before.message._replace(times=times, bytes=bytes_)
            by_operation[op] = replace(before, times=times, bytes=bytes_, message=message)
            continue
        cause = traced.causes.get(op)
        source = cause.operation if cause else traced.sources.get(op)
        axes = axes_of(op, grid, mesh)
        by_operation[op] = Collective(op, each.times, each.bytes, axes, message_of(each, axes), cause, source)
    return [*by_operation.values()]
