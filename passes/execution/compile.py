"""A module as a function on jax arrays.

Each device runs the local program that partitioning made; jax gives it the device's shards of the arguments and puts
the shards of the results together. Nothing here depends on the kind of devices: the collectives stand in the program,
with the groups of devices that take part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import jax
import numpy as np
from jax.sharding import NamedSharding
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.diagnostics import error
from sdy.dialect.meshes import mesh_of, named_meshes
from sdy.dialect.shardings import func_arg_sharding, func_result_sharding
from sdy.mesh import Mesh
from sdy.passes.driver import partition
from sdy.passes.execution.array_types import array_type
from sdy.passes.execution.device_mesh import DeviceMesh
from sdy.passes.execution.device_order import renumber_devices
from sdy.passes.execution.local_program import LocalProgram
from sdy.passes.execution.plain_module import without_shardings
from sdy.passes.partitioning.local_module import is_local
from sdy.sharding import TensorSharding
from sdy.text import format

Argument: TypeAlias = jax.Array | np.ndarray | np.generic | bool | int | float | complex

_ONE_DEVICE = Mesh.of({"device": 1})


@dataclass(frozen=True)
class Port:
    """An argument or a result of a program: its name, the shape of the whole array, its element type, its sharding."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    sharding: NamedSharding

    def check(self, value: Argument) -> jax.Array | np.ndarray:
        """`value` as an array of this type. Raises TypeError or ValueError where it has another."""
        if isinstance(value, (bool, int, float, complex)):
            value = np.asarray(value, self.dtype)
        if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
            raise TypeError(f"{self.name} must be an array, not {type(value).__name__}")
        if value.dtype != self.dtype:
            raise TypeError(f"{self.name} must have elements of type {self.dtype}, not {value.dtype}")
        if value.shape != self.shape:
            raise ValueError(f"{self.name} must have shape {self.shape}, not {value.shape}")
        return np.asarray(value) if isinstance(value, np.generic) else value


class CompiledProgram:
    """A program compiled for its devices: call it with global arrays, jax's or numpy's, to get a tuple of jax arrays.

    An argument that is not yet laid out as `in_shardings` says is moved there first.
    """

    def __init__(self, program: LocalProgram, inputs: Sequence[Port], outputs: Sequence[Port], devices: DeviceMesh):
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        run = jax.shard_map(
            program,
            mesh=devices.mesh,
            in_specs=tuple(port.sharding.spec for port in inputs),
            out_specs=tuple(port.sharding.spec for port in outputs),
            check_vma=False,
        )
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


def compile(module: ModuleOp, devices: Sequence[jax.Device] | None = None) -> CompiledProgram:  # noqa: A001
    """Compile `module` for the devices of its mesh, numbered as in `devices` (all devices of the default backend).

    A module that is not partitioned yet is partitioned first, as a copy. Raises DiagnosticError where there are too
    few devices, and where the program is one that cannot be run.
    """
    if not is_local(module):
        module = module.clone()
        partition(module)
    main = _main(module)
    meshes = [mesh for mesh in named_meshes(module).values() if mesh.axes] or [_ONE_DEVICE]
    shardings = [_placed(main, sharding) for sharding in _shardings(main)]
    sub_axes = [
        (axis, mesh) for sharding, mesh in shardings if sharding for axis in sharding.axes() if not axis.is_full
    ]
    grid = DeviceMesh.over(_enough(devices, meshes[0], module), meshes, sub_axes, module)
    ports = [
        _port(name, type_, grid, sharding, mesh, main)
        for (name, type_), (sharding, mesh) in zip(_values(main), shardings, strict=True)
    ]
    local = without_shardings(module)
    renumber_devices(local, meshes[0])
    return _compiled(local, ports, grid)


def compile_unpartitioned(module: ModuleOp, device: jax.Device | None = None) -> CompiledProgram:
    """Compile `module`, which is not partitioned, for one device, as if it had no shardings: what to compare with.

    Raises DiagnosticError for a program that is written for several devices, as `sdy.manual_computation` is.
    """
    main = _main(module)
    grid = DeviceMesh.over([device or jax.devices()[0]], [_ONE_DEVICE], (), module)
    ports = [_port(name, type_, grid, None, _ONE_DEVICE, main) for name, type_ in _values(main)]
    return _compiled(without_shardings(module), ports, grid)


def _compiled(local: ModuleOp, ports: list[Port], grid: DeviceMesh) -> CompiledProgram:
    main = _main(local)
    count = len(main.function_type.inputs)
    results = tuple(jax.core.ShapedArray(*array_type(type_, main)) for type_ in main.function_type.outputs)
    return CompiledProgram(LocalProgram(format(local, generic=True), results), ports[:count], ports[count:], grid)


def _main(module: ModuleOp) -> FuncOp:
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            return op
    raise error(module, "there is no function @main to run")


def _values(main: FuncOp) -> list[tuple[str, Attribute]]:
    """The name and the type of each argument, then of each result."""
    inputs = [(f"argument {i}", type_) for i, type_ in enumerate(main.function_type.inputs)]
    return inputs + [(f"result {i}", type_) for i, type_ in enumerate(main.function_type.outputs)]


def _shardings(main: FuncOp) -> list[TensorSharding | None]:
    inputs = [func_arg_sharding(main, i) for i in range(len(main.function_type.inputs))]
    return inputs + [func_result_sharding(main, i) for i in range(len(main.function_type.outputs))]


def _placed(main: FuncOp, sharding: TensorSharding | None) -> tuple[TensorSharding | None, Mesh]:
    if sharding is None:
        return None, _ONE_DEVICE
    mesh = mesh_of(sharding, main)
    if mesh.is_maximal:
        raise error(main, "an argument or result that a single device of many holds cannot be passed yet")
    if sharding.unreduced:
        raise error(main, "an argument or result that is still to be reduced cannot be passed yet")
    return sharding, mesh


def _port(
    name: str, type_: Attribute, grid: DeviceMesh, sharding: TensorSharding | None, mesh: Mesh, main: FuncOp
) -> Port:
    shape, dtype = array_type(type_, main)
    if sharding is not None:
        shape = sharding.global_shape(shape, mesh)
    return Port(name, shape, dtype, grid.sharding(sharding, mesh))


def _enough(devices: Sequence[jax.Device] | None, mesh: Mesh, module: ModuleOp) -> Sequence[jax.Device]:
    available = jax.devices() if devices is None else devices
    if len(available) < mesh.size:
        raise error(module, f"the mesh of this program needs {mesh.size} devices, but there are {len(available)}")
    return available[: mesh.size]
