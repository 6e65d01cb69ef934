"""A module as a function on jax arrays.

Each device runs the local program that partitioning made; jax gives it the device's shards of the arguments and puts
the shards of the results together. Nothing here depends on the kind of devices: the collectives stand in the program,
with the groups of devices that take part.
"""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Sequence
from typing import cast

import jax
from jax.sharding import NamedSharding
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.dialect.meshes import named_meshes
from sdy.mesh import Mesh
from sdy.passes.driver import partition
from sdy.passes.execution.device_mesh import Device, DeviceMesh
from sdy.passes.execution.device_order import renumber_devices
from sdy.passes.execution.interface import Argument, Interface, Port, main_function
from sdy.passes.execution.local_program import LocalProgram
from sdy.passes.execution.plain_module import without_shardings
from sdy.passes.partitioning.local_module import is_local
from sdy.text import format

_ONE_DEVICE = Mesh.of({"device": 1})


class CompiledProgram:
    """A program compiled for its devices: call it with global arrays, jax's or numpy's, to get a tuple of jax arrays.

    An argument that is not yet laid out as `in_shardings` says is moved there first. `inputs` and `outputs` describe
    the arguments and the results, `devices` are those that it runs on.
    """

    def __init__(self, program: LocalProgram, inputs: Sequence[Port], outputs: Sequence[Port], devices: DeviceMesh):
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.devices: tuple[Device, ...] = tuple(devices.mesh.devices.flat)
        run = jax.shard_map(
            program,
            mesh=devices.mesh,
            in_specs=tuple(port.sharding.spec for port in inputs),
            out_specs=tuple(port.sharding.spec for port in outputs),
            check_vma=False,
        )
        # The types are those of the program, whatever jax would make of 64-bit ones by itself.
        with jax.enable_x64(True):
            jitted = jax.jit(run, in_shardings=self.in_shardings, out_shardings=self.out_shardings)
            lowered = jitted.lower(*(jax.ShapeDtypeStruct(port.shape, port.dtype) for port in inputs))
            self._compiled = lowered.compile()

    @property
    def in_shardings(self) -> tuple[NamedSharding, ...]:
        """How each argument is laid out over the devices."""
        return tuple(port.sharding for port in self.inputs)

    @property
    def out_shardings(self) -> tuple[NamedSharding, ...]:
        """How each result is laid out over the devices."""
        return tuple(port.sharding for port in self.outputs)

    def compiled_text(self) -> str:
        """The program as XLA optimised it, as HLO text."""
        return cast(str, self._compiled.as_text())

    def __call__(self, *arguments: Argument) -> tuple[jax.Array, ...]:
        """Run the program. Raises TypeError or ValueError, naming the argument, where one does not fit."""
        if len(arguments) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} arguments, not {len(arguments)}")
        checked = [port.check(argument) for port, argument in zip(self.inputs, arguments, strict=True)]
        with jax.enable_x64(True):
            return tuple(self._compiled(*jax.device_put(checked, list(self.in_shardings))))


def compile(module: ModuleOp, devices: Sequence[Device] | None = None) -> CompiledProgram:  # noqa: A001
    """Compile `module` for the devices of its mesh, numbered as in `devices` (by default, as in `jax.devices()`).

    A module that is not partitioned yet is partitioned first, as a copy. Raises DiagnosticError where there are too
    few devices, and where the program is one that cannot be run.
    """
    if not is_local(module):
        module = module.clone()
        partition(module)
    interface = Interface.of(main_function(module))
    meshes = _meshes(module)
    available = jax.devices() if devices is None else devices
    if len(available) < device_count(module):
        needed = f"the program's mesh has {device_count(module)} devices"
        raise error(module, f"{needed}, but there are only {len(available)} to run it on")
    grid = DeviceMesh.over(
        available[: device_count(module)], meshes, [*filter(None, (*interface.inputs, *interface.outputs))], module
    )
    local = without_shardings(module)
    renumber_devices(local, meshes[0])
    return _compile(local, interface, grid)


def compile_unpartitioned(module: ModuleOp, device: Device | None = None) -> CompiledProgram:
    """Compile `module`, which is not partitioned, for one device, as if it had no shardings: what to compare with.

    Raises DiagnosticError for a program that is written for several devices, as `sdy.manual_computation` is.
    """
    grid = DeviceMesh.over([device or jax.devices()[0]], [_ONE_DEVICE], (), module)
    return _compile(without_shardings(module), Interface.without_shardings(main_function(module)), grid)


def device_count(module: ModuleOp) -> int:
    """The number of devices that `module` is a program for."""
    return _meshes(module)[0].size


def _meshes(module: ModuleOp) -> list[Mesh]:
    return [mesh for mesh in named_meshes(module).values() if mesh.axes] or [_ONE_DEVICE]


def _compile(local: ModuleOp, interface: Interface, grid: DeviceMesh) -> CompiledProgram:
    program = LocalProgram.of(format(local, generic=True), interface.main)
    return CompiledProgram(program, *interface.ports(grid), grid)
