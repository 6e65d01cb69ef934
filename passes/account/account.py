"""`sdy.account`: what a program costs each of its devices, as predicted and as XLA compiled it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import Location, location_of
from sdy.dialect.meshes import device_count, named_meshes
from sdy.mesh import Mesh
from sdy.passes.account.partitioned_program import Program, partitioned_program
from sdy.passes.account.shown import shown_account
from sdy.passes.jax.compile import CompiledProgram, compile, peak_bytes_of
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.hlo_collectives import Traffic, collectives
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.layouts import PartitionedLayout
from sdy.passes.propagation.provenance.ways import Choice
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import peak_bytes


@dataclass(frozen=True, slots=True)
class Received:
    """The collectives of one kind that one line of the source asks for.

    They run so many `times`, and a device receives so many `bytes` in all of them, on average.
    """

    collective: str
    where: Location | None
    times: int
    bytes: float


@dataclass(frozen=True)
class Compiled:
    """What XLA made of a program.

    `collectives` are those that stand in its text, with the bytes of their results; `bytes_received` is what a device
    receives in a run, on average, and `memory` the bytes that it needs in all, None if XLA does not say.
    """

    devices: tuple[Device, ...]
    collectives: Mapping[str, Traffic]
    bytes_received: float
    memory: int | None

    @classmethod
    def of(cls, devices: Sequence[Device], hlo: str, memory: int | None) -> "Compiled":
        """What the optimised text `hlo` says of a program for `devices`."""
        return cls(tuple(devices), collectives(hlo), bytes_received(hlo, len(devices)), memory)

    @classmethod
    def of_program(cls, program: CompiledProgram) -> "Compiled":
        """What XLA made of a module."""
        return cls.of(program.devices, program.compiled_text(), program.peak_bytes())


@dataclass(frozen=True, repr=False)
class Account:
    """What a partitioned program costs each device; as text, a table.

    `layout` is that which was taken where there were several, with what the others would have cost. `received` has the
    collectives line by line of the source, the most bytes first; `memory` is the bytes that are predicted to be needed
    at once, arguments and results among them.
    """

    layout: Choice | None
    meshes: Mapping[str, Mesh]
    received: tuple[Received, ...]
    memory: int
    _compile: Callable[[], Compiled | None] = field(compare=False)

    @classmethod
    def of(cls, layout: PartitionedLayout, compile: Callable[[], Compiled | None]) -> "Account":  # noqa: A002
        """The account of a partitioned program, which `compile` compiles when that is asked for."""
        local = layout.local
        return cls(layout.choice, named_meshes(local), _by_line(local), peak_bytes(local), compile)

    @property
    def bytes_received(self) -> float:
        """What a device is predicted to receive in a run, on average, in bytes."""
        return sum(line.bytes for line in self.received)

    @cached_property
    def compiled(self) -> Compiled | None:
        """What XLA makes of the program, compiled when this is first asked; None where there are too few devices."""
        return self._compile()

    def __str__(self) -> str:
        return shown_account(self)

    __repr__ = __str__


def account(program: Program, *args: Any, **kwargs: Any) -> Account:
    """What a program costs each device: bytes received, by collective and source line, and memory.

        print(sdy.account(step, params, batch))

    `program` is a function, of `sdy.jit` or any other, for `args` and `kwargs`, arrays or `jax.ShapeDtypeStruct`s; or
    what `step.lower(...)` returned, or a module. What has not been propagated is, as a copy. The program is compiled
    when the account is first asked what XLA made of it, as its text is. Raises TypeError for arguments of what has its
    arguments already, and DiagnosticError where the program cannot be partitioned.
    """
    if isinstance(program, Lowerable):
        return account(program.lower(*args, **kwargs))
    layout = partitioned_program(program, *args, **kwargs)
    return Account.of(layout, lambda: compiled_costs(program if isinstance(program, Lowered) else layout.local))


def compiled_costs(program: ModuleOp | Lowered) -> Compiled | None:
    """What XLA makes of a program of one device, or of what was lowered; None where there are too few devices."""
    if isinstance(program, Lowered):
        devices = program.program.devices
        if not devices:
            return None
        made = program.compile()
        return Compiled.of(devices, made.as_text() or "", peak_bytes_of(made))
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
