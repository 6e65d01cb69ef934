"""`sdy.account`: communication and memory cost of a program per device, predicted and as compiled by XLA."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error, location_of
from sdy.dialect.meshes import device_count, named_meshes
from sdy.formatting import escape_line, format_bytes
from sdy.mesh import Mesh
from sdy.passes.account.collectives import kind_of
from sdy.passes.account.cost_tables import (
    ALONE,
    BESIDE,
    DIFFERS,
    UNDER,
    CostColumn,
    Received,
    by_kind,
    by_line,
    received_table,
    totals_table,
)
from sdy.passes.account.keywords import check_keywords
from sdy.passes.account.partitioned_program import Program, partitioned_program, program_of
from sdy.passes.account.summary import name_of_place
from sdy.passes.account.unsharded import unsharded_hint
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.immutable import Immutable
from sdy.passes.jax.api.compile import CompiledProgram, compile, partitioned_by_xla
from sdy.passes.jax.device_hardware import backend_of
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.hlo_collectives import Traffic, collectives
from sdy.passes.jax.hlo_received import received_collectives
from sdy.passes.jax.memory_limit import peak_bytes_of
from sdy.passes.jax.stages import Lowered, LoweredProgram
from sdy.passes.layouts import PartitionedLayout
from sdy.passes.propagation.provenance.history import LayoutChoice
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import host_bytes, peak_bytes
from sdy.passes.spmd.remat.recomputed import describe_recomputed


@dataclass(frozen=True)
class PickledDevice:
    """A device of another process."""

    id: int
    platform: str
    device_kind: str

    @classmethod
    def of(cls, device: "Device | PickledDevice") -> "PickledDevice":
        """Return what a pickle keeps of a device."""
        return cls(device.id, device.platform, device.device_kind)


@dataclass(frozen=True)
class Compiled(Immutable):
    """Costs of a program as compiled by XLA.

    Attributes:
        devices: The devices that the program was compiled for; in another process, their numbers and kinds.
        collectives: The collectives in the optimized HLO by kind, with the bytes of their results; a loop counts once.
        bytes_received: The bytes that a device receives in a run, averaged over devices.
        memory: The peak memory per device in bytes, or None if XLA does not report it.
        received: The collectives of a run by source line, in decreasing order of bytes received.
    """

    devices: tuple[Device | PickledDevice, ...]
    collectives: Mapping[str, Traffic]
    bytes_received: float
    memory: int | None
    received: tuple[Received, ...] = ()

    @classmethod
    def of(cls, devices: Sequence[Device], hlo: str, memory: int | None) -> "Compiled":
        """Read the costs from `hlo`, the optimized HLO text of a program compiled for `devices`."""
        found = received_collectives(hlo, len(devices))
        rows = by_line(Received(each.kind, each.where, each.times, each.bytes) for each in found)
        return cls(tuple(devices), collectives(hlo), sum(each.bytes for each in found), memory, rows)

    @classmethod
    def of_program(cls, program: CompiledProgram) -> "Compiled":
        """Read the costs from a compiled program."""
        return cls.of(program.devices, program.compiled_text(), program.peak_bytes())

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "devices": tuple(map(PickledDevice.of, self.devices))}


@dataclass(frozen=True, repr=False)
class Account(Immutable):
    """Costs of a partitioned program per device; `str` formats them as tables.

    Attributes:
        layout: The propagated layout that was selected among several, with the costs of the others, or None if there
            was only one.
        meshes: The meshes of the program by name.
        received: The collectives by source line, in decreasing order of bytes received.
        memory: The predicted peak memory in bytes, including arguments and results but not what is on the host.
        host_memory: The predicted peak bytes in the memory of the host: offloaded values, arguments and results.
        under: The costs of the program as XLA partitions it under `jax.jit`, if they were asked for.
        recomputed: A description of the values that are recomputed because of a memory limit; empty without any.
        hint: The hint if no sharding is given; empty otherwise.
    """

    layout: LayoutChoice | None
    meshes: Mapping[str, Mesh]
    received: tuple[Received, ...]
    memory: int
    _compile: Callable[[], Compiled | None] = field(compare=False)
    host_memory: int = 0
    under: Compiled | None = None
    recomputed: str = ""
    hint: str = ""

    @classmethod
    def of(
        cls,
        layout: PartitionedLayout,
        compile: Callable[[], Compiled | None],  # noqa: A002
        under: Compiled | None = None,
        backend: Backend = Backend.CPU,
    ) -> "Account":
        """Build the account of a partitioned program, with the memory that it needs if `backend` compiles it.

        `compile` runs on the first access to `compiled`.
        """
        local = layout.local
        names = {given_name(argument) for argument in main_function(local).args}
        found = (
            Received(
                kind_of(each.collective),
                location_of(each.collective),
                each.times,
                each.bytes,
                tuple(name for name in [name_of_place(each.collective)] if name in names),
            )
            for each in received(local)
        )
        memory, host = peak_bytes(local, backend), host_bytes(local, backend)
        recomputed = describe_recomputed(local)
        meshes, hint = named_meshes(local), unsharded_hint(layout.module)
        return cls(layout.choice, meshes, by_line(found), memory, compile, host, under, recomputed, hint)

    @property
    def bytes_received(self) -> float:
        """The predicted bytes that a device receives in a run, averaged over devices."""
        return sum(line.bytes for line in self.received)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The costs as compiled by XLA, or None if there are fewer devices than the mesh has.

        The first access compiles the program; so does pickling the account.
        """
        return self._compile()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "compiled": self.compiled, "_compile": None}

    def __str__(self) -> str:
        return format_account(self)

    __repr__ = __str__


def account(program: Program, *args: Any, under: str | None = None, **kwargs: Any) -> Account:
    """Return the cost of a program per device: bytes received, by collective and source line, and peak memory.

        print(sdy.account(step, params, batch))

    A program that has not been propagated is propagated, on a copy. `Account.compiled` and the text of the account
    compile the program with XLA.

    Args:
        program: A function (of `sdy.jit` or any other), the result of `step.lower(...)`, a program of `sdy.compiler`, a
            module, or a file of one, such as `"step.mlir"`.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        under: "jax.jit" adds the costs of the program as XLA's partitioner compiles it, for as many devices as the mesh
            has.
        **kwargs: The keyword arguments of a function.

    Raises:
        ValueError: `under` is another text.
        TypeError: Arguments are given for a program that is not a function, or a function does not take a keyword.
        DiagnosticError: The program cannot be partitioned.
    """
    check_keywords(account, program, kwargs)
    stage = program_of(program, *args, **kwargs)
    layout = partitioned_program(stage)
    compiled_by_jax = costs_under(under, stage) if under else None
    devices = jax.devices() if isinstance(stage, ModuleOp) else stage.program.devices
    return Account.of(
        layout,
        lambda: compiled_costs(layout.local if isinstance(stage, ModuleOp) else stage),
        compiled_by_jax,
        backend_of(devices),
    )


def compiled_costs(program: ModuleOp | LoweredProgram) -> Compiled | None:
    """Compile a partitioned module or a lowered program with XLA and return its costs.

    Returns None if there are fewer devices than the mesh has.
    """
    if isinstance(program, ModuleOp):
        return None if device_count(program) > len(jax.devices()) else Compiled.of_program(compile(program))
    devices = program.program.devices
    if not devices:
        return None
    if not isinstance(program, Lowered):
        return Compiled.of_program(CompiledProgram(program.program))
    compiled = program.compile()
    return Compiled.of(devices, compiled.as_text() or "", peak_bytes_of(compiled))


def costs_under(under: str, program: ModuleOp | LoweredProgram) -> Compiled:
    """Return the costs of a program as `under` partitions it: "jax.jit", which is XLA's partitioner.

    Raises:
        ValueError: `under` is another text.
        DiagnosticError: There are fewer devices than the mesh has, or XLA cannot compile the program.
    """
    if under != UNDER:
        raise ValueError(f"under must be '{UNDER}', not '{under}'")
    is_module = isinstance(program, ModuleOp)
    module = program if is_module else program.lowered
    devices = (() if is_module else program.program.devices) or jax.devices()
    needed = device_count(module)
    if len(devices) < needed:
        hint = f"set JAX_NUM_CPU_DEVICES={needed} before JAX starts"
        raise error(
            module, f"XLA partitions the program for {needed} devices, but there are only {len(devices)}: {hint}"
        )
    compiled = partitioned_by_xla(module, devices[:needed])
    return Compiled.of(devices[:needed], compiled.as_text() or "", peak_bytes_of(compiled))


def format_account(account: Account) -> str:
    """Format the summary and the tables of an account."""
    compiled, under = account.compiled, account.under
    devices = f"{len(compiled.devices)} x {compiled.devices[0].device_kind}" if compiled else "too few for the mesh"
    head = [
        f"  mesh          {_meshes(account.meshes)}",
        f"  devices       {devices}",
        f"  each device   {_summary(account)}",
        f"  partitioned   {BESIDE if under else ALONE}",
        *(
            [f"  host          keeps {format_bytes(account.host_memory)} for each device"]
            if account.host_memory
            else ()
        ),
        *([f"  recomputed    {account.recomputed}"] if account.recomputed else ()),
        *([f"  layout        {account.layout}"] if account.layout else ()),
        *([f"  hint          {account.hint}"] if account.hint else ()),
    ]
    columns_ = [
        CostColumn("predicted", account.received, account.memory, account.host_memory),
        *([CostColumn("compiled", compiled.received, compiled.memory)] if compiled else ()),
        *([CostColumn(f"under {UNDER}", under.received, under.memory)] if under else ()),
    ]
    parts = [
        "\n".join(head),
        received_table(account.received) if account.received else "",
        received_table(under.received, f"under {UNDER}") if under and under.received else "",
        totals_table(columns_),
        DIFFERS if compiled and by_kind(account.received) != by_kind(compiled.received) else "",
    ]
    return "\n\n".join(filter(None, parts))


def format_under(account: Account) -> str:
    """Format the costs of a program as XLA partitions it, beside those of sdy; one line if they were not asked for."""
    under = account.under
    if under is None:
        return f"partitioned {ALONE}"
    totals = [
        CostColumn("by sdy", account.received, account.memory, account.host_memory),
        CostColumn(f"under {UNDER}", under.received, under.memory),
    ]
    rows = [received_table(under.received, f"under {UNDER}")] if under.received else []
    return "\n\n".join([f"partitioned {BESIDE}", *rows, totals_table(totals)])


def _meshes(meshes: Mapping[str, Mesh]) -> str:
    axes = (
        f"@{escape_line(name)} " + ", ".join(f"{escape_line(axis)}={size}" for axis, size in mesh.axes)
        for name, mesh in meshes.items()
        if mesh.axes
    )
    return "; ".join(axes) or "none"


def _summary(account: Account) -> str:
    """Format the predicted bytes; the tables below have the exact numbers and those of XLA."""
    received, memory = format_bytes(account.bytes_received), format_bytes(account.memory)
    return f"receives {received} and needs {memory} of memory (predicted)"
