"""The collectives of a device's program, each with all of its runs, and with the operation that it is for."""

from dataclasses import dataclass, replace

from xdsl.ir import Operation

from sdy.diagnostics import Location, location_of
from sdy.dialect.meshes import main_mesh
from sdy.interpreter.grid import Grid
from sdy.passes.account.causes import Cause, Purpose, TracedProgram
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.step_time import AxisNames, axes_of


@dataclass(frozen=True, eq=False)
class Collective:
    """A collective of the program of one device, and why it is there."""

    op: Operation
    times: int
    bytes: float
    """What a device receives in all of these times, on average."""
    axes: AxisNames
    cause: Cause | None
    """None where an operation of the program needs it for itself, or nothing is known."""
    source: Operation | None
    """The operation of the whole program that asks for it, where that is known."""

    @property
    def kind(self) -> str:
        """Its name in words: `all-gather`."""
        return self.op.name.rpartition(".")[2].replace("_", "-")

    @property
    def is_reshard(self) -> bool:
        """Whether it is there because a tensor lies otherwise than it is needed."""
        return self.cause is not None and self.cause.purpose is Purpose.RESHARD

    @property
    def place(self) -> Location | None:
        """Where in the source that is which asks for it."""
        return location_of(self.source) or location_of(self.op)


def collectives(traced: TracedProgram) -> list[Collective]:
    """What devices exchange, in the order of the program."""
    mesh = main_mesh(traced.local)
    grid = Grid(1, mesh.size)
    found: dict[Operation, Collective] = {}
    for each in received(traced.local):
        op = each.collective
        before = found.get(op)
        if before is not None:
            found[op] = replace(before, times=before.times + each.times, bytes=before.bytes + each.bytes)
            continue
        cause = traced.causes.get(op)
        source = cause.operation if cause else traced.sources.get(op)
        found[op] = Collective(op, each.times, each.bytes, axes_of(op, grid, mesh), cause, source)
    return [*found.values()]
