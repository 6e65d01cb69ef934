"""`sdy.account`: communication and memory cost of a program per device, predicted and as compiled by XLA."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import Location, location_of
from sdy.dialect.meshes import device_count, named_meshes
from sdy.formatting import columns, escape_line, format_bytes
from sdy.mesh import Mesh
from sdy.passes.account.partitioned_program import Program, partitioned_program
from sdy.passes.jax.api.compile import CompiledProgram, compile, peak_bytes_of
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.hlo_collectives import Traffic, collectives, total
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.layouts import PartitionedLayout
from sdy.passes.propagation.provenance.history import LayoutChoice
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import host_bytes, peak_bytes

_MOST_LINES = 10
"""Number of rows shown in the table of collectives; the rest are summed."""

_END_OF_NUMBERS = 3
"""Columns before this one, except for the first, are numbers and right-aligned."""


@dataclass(frozen=True, slots=True)
class Received:
    """The collectives of one kind that stem from one source line.

    Attributes:
        collective: The kind, such as `all-gather`.
        where: The source line, or None if it is unknown.
        times: How often they run in a step.
        bytes: The bytes that a device receives in all of these runs, averaged over devices.
    """

    collective: str
    where: Location | None
    times: int
    bytes: float


@dataclass(frozen=True)
class Compiled:
    """Costs of a program as compiled by XLA.

    Attributes:
        devices: The devices that the program was compiled for.
        collectives: The collectives in the optimized HLO by kind, with the bytes of their results.
        bytes_received: The bytes that a device receives in a run, averaged over devices.
        memory: The peak memory per device in bytes, or None if XLA does not report it.
    """

    devices: tuple[Device, ...]
    collectives: Mapping[str, Traffic]
    bytes_received: float
    memory: int | None

    @classmethod
    def of(cls, devices: Sequence[Device], hlo: str, memory: int | None) -> "Compiled":
        """Read the costs from `hlo`, the optimized HLO text of a program compiled for `devices`."""
        return cls(tuple(devices), collectives(hlo), bytes_received(hlo, len(devices)), memory)

    @classmethod
    def of_program(cls, program: CompiledProgram) -> "Compiled":
        """Read the costs from a compiled program."""
        return cls.of(program.devices, program.compiled_text(), program.peak_bytes())


@dataclass(frozen=True, repr=False)
class Account:
    """Costs of a partitioned program per device; `str` formats them as tables.

    Attributes:
        layout: The propagated layout that was selected among several, with the costs of the others, or None if there
            was only one.
        meshes: The meshes of the program by name.
        received: The collectives by source line, in decreasing order of bytes received.
        memory: The predicted peak memory in bytes, including arguments and results but not what is on the host.
        host_memory: The predicted peak bytes in the memory of the host: offloaded values, arguments and results.
    """

    layout: LayoutChoice | None
    meshes: Mapping[str, Mesh]
    received: tuple[Received, ...]
    memory: int
    _compile: Callable[[], Compiled | None] = field(compare=False)
    host_memory: int = 0

    @classmethod
    def of(cls, layout: PartitionedLayout, compile: Callable[[], Compiled | None]) -> "Account":  # noqa: A002
        """Build the account of a partitioned program; `compile` runs on the first access to `compiled`."""
        local = layout.local
        return cls(layout.choice, named_meshes(local), _by_line(local), peak_bytes(local), compile, host_bytes(local))

    @property
    def bytes_received(self) -> float:
        """The predicted bytes that a device receives in a run, averaged over devices."""
        return sum(line.bytes for line in self.received)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The costs as compiled by XLA, or None if there are fewer devices than the mesh has.

        The first access compiles the program.
        """
        return self._compile()

    def __str__(self) -> str:
        return format_account(self)

    __repr__ = __str__


def account(program: Program, *args: Any, **kwargs: Any) -> Account:
    """Return the cost of a program per device: bytes received, by collective and source line, and peak memory.

        print(sdy.account(step, params, batch))

    A program that has not been propagated is propagated, on a copy. `Account.compiled` and the text of the account
    compile the program with XLA.

    Args:
        program: A function (of `sdy.jit` or any other), the result of `step.lower(...)`, or a module.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: The keyword arguments of a function.

    Raises:
        TypeError: `args` or `kwargs` are given for a lowered program or a module.
        DiagnosticError: The program cannot be partitioned.
    """
    if isinstance(program, Lowerable):
        return account(program.lower(*args, **kwargs))
    layout = partitioned_program(program, *args, **kwargs)
    return Account.of(layout, lambda: compiled_costs(program if isinstance(program, Lowered) else layout.local))


def compiled_costs(program: ModuleOp | Lowered) -> Compiled | None:
    """Compile a partitioned module or a lowered program with XLA and return its costs.

    Returns None if there are fewer devices than the mesh has.
    """
    if isinstance(program, Lowered):
        devices = program.program.devices
        if not devices:
            return None
        compiled = program.compile()
        return Compiled.of(devices, compiled.as_text() or "", peak_bytes_of(compiled))
    if device_count(program) > len(jax.devices()):
        return None
    return Compiled.of_program(compile(program))


def _by_line(module: ModuleOp) -> tuple[Received, ...]:
    times: dict[tuple[str, Location | None], int] = defaultdict(int)
    bytes_: dict[tuple[str, Location | None], float] = defaultdict(float)
    for each in received(module):
        line = each.collective.name.rpartition(".")[2].replace("_", "-"), location_of(each.collective)
        times[line] += each.times
        bytes_[line] += each.bytes
    return tuple(Received(*line, times[line], bytes_[line]) for line in sorted(bytes_, key=lambda line: -bytes_[line]))


def format_account(account: Account) -> str:
    """Format the summary and the tables of an account."""
    compiled = account.compiled
    devices = f"{len(compiled.devices)} x {compiled.devices[0].device_kind}" if compiled else "too few for the mesh"
    parts = [
        f"  mesh          {_meshes(account.meshes)}\n  devices       {devices}\n  each device   {_summary(account)}"
        + (
            f"\n  host          keeps {format_bytes(account.host_memory)} for each device"
            if account.host_memory
            else ""
        )
        + (f"\n  layout        {account.layout}" if account.layout else ""),
        _received(account) if account.received else "",
        _totals(account),
        _collectives(compiled.collectives) if compiled else "",
    ]
    return "\n\n".join(filter(None, parts))


def _meshes(meshes: Mapping[str, Mesh]) -> str:
    axes = (
        f"@{escape_line(name)} " + ", ".join(f"{escape_line(axis)}={size}" for axis, size in mesh.axes)
        for name, mesh in meshes.items()
    )
    return "; ".join(axes) or "none"


def _summary(account: Account) -> str:
    """Format the predicted bytes; the tables below have the exact numbers and those of XLA."""
    received, memory = format_bytes(account.bytes_received), format_bytes(account.memory)
    return f"receives {received} and needs {memory} of memory (predicted)"


def _received(account: Account) -> str:
    rows = [["collective", "times", "bytes received", "at"]]
    rows += [
        [line.collective, f"{line.times:,}", f"{line.bytes:,.0f}", escape_line(str(line.where or "unknown location"))]
        for line in account.received[:_MOST_LINES]
    ]
    if others := account.received[_MOST_LINES:]:
        times, received = sum(line.times for line in others), sum(line.bytes for line in others)
        rows.append([f"{len(others)} others", f"{times:,}", f"{received:,.0f}", ""])
    return _table(rows)


def _totals(account: Account) -> str:
    compiled = account.compiled
    rows = [
        ["bytes per device", "predicted", "compiled"],
        ["received", f"{account.bytes_received:,.0f}", f"{compiled.bytes_received:,.0f}" if compiled else "-"],
        ["memory", f"{account.memory:,}", f"{compiled.memory:,}" if compiled and compiled.memory else "-"],
    ]
    if account.host_memory:
        rows.append(["on the host", f"{account.host_memory:,}", "-"])
    return _table(rows)


def _collectives(traffic: Mapping[str, Traffic]) -> str:
    rows = [["collective", "count", "bytes per device"]]
    rows += [[kind, f"{moved.count:,}", f"{moved.bytes:,}"] for kind, moved in sorted(traffic.items())]
    if len(traffic) != 1:
        everything = total(traffic)
        rows.append(["total" if traffic else "none", f"{everything.count:,}", f"{everything.bytes:,}"])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows in columns, with a rule below the first row."""
    lines = columns(rows, numbers=range(1, _END_OF_NUMBERS), gap=3)
    lines.insert(1, " " + "─" * max(map(len, lines)))
    return "\n".join(lines)
