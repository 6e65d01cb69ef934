"""A partitioned program as a function of global arrays for jax.

Each device runs the local program under `jax.shard_map`, which passes it shards of the arguments and assembles the
results. The collectives and their replica groups are in the program, so that nothing depends on the kind of devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp

from sdy import gc_control
from sdy.diagnostics import DiagnosticError, error, op_error
from sdy.dialect.meshes import device_count, named_meshes
from sdy.ir.companions import clone_alone
from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.passes.driver import partition, run_passes
from sdy.passes.for_xla.renumber_devices import RenumberDevicesPass
from sdy.passes.jax.bindings.python_callbacks import callback_problem
from sdy.passes.jax.device_mesh import AnyMesh, Device, DeviceMesh
from sdy.passes.jax.jax_internals import without_mesh
from sdy.passes.jax.program.custom_calls import prepare_custom_calls
from sdy.passes.jax.program.interface import Interface, Port, WithPorts
from sdy.passes.jax.program.local_program import LocalProgram
from sdy.passes.jax.program.plain_module import drop_shardings, for_xla, without_shardings
from sdy.passes.pipelines import ForXlaPipeline
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.kernel_order import has_ordering_barriers
from sdy.passes.spmd.local_module import is_local
from sdy.plugins import plugin_dialect
from sdy.type_helpers import is_tuple

_ONE_DEVICE = Mesh.of({"device": 1})


@dataclass(frozen=True, repr=False)
class ShardedProgram(WithPorts):
    """A program over the devices of `mesh`, called with global arrays, traced or not.

    With an abstract mesh it can only be traced and lowered.
    """

    local: LocalProgram
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    mesh: AnyMesh
    problem: DiagnosticError | None = None
    """The error of calling it, for a program that can only be inspected."""
    memory_limit: int = 0
    """The bytes of a device within which XLA has to keep the order of operations, since values are recomputed, or 0."""

    @classmethod
    @gc_control.paused()
    def of(
        cls,
        module: ModuleOp,
        devices: Sequence[Device] | None = None,
        like: AbstractMesh | None = None,
        tokens: int = 0,
    ) -> "ShardedProgram":
        """Partition `module`, if it is not yet partitioned, and return its program; the module is copied.

        Args:
            module: the module.
            devices: the devices that its mesh numbers, by default `jax.devices()`; may be empty.
            like: a mesh whose axis types the arrays have, if it has the axes of the module's mesh.
            tokens: the number of leading arguments and results that are tokens.

        Raises:
            DiagnosticError: there are too few devices, or the program cannot be run.
        """
        local = clone_alone(module)
        _, interface, grid = make_local(local, jax.devices() if devices is None else devices, like, tokens)
        run_passes(local, [RenumberDevicesPass()])
        memory_limit = peak_bytes(local) if has_ordering_barriers(local) else 0
        drop_shardings(local)
        return replace(cls._of(local, interface, grid), memory_limit=memory_limit)

    @classmethod
    def unpartitioned(cls, module: ModuleOp, device: Device | None = None) -> "ShardedProgram":
        """Return the program of the unpartitioned `module` for one device, without shardings.

        Raises:
            DiagnosticError: the program is written for several devices, such as one with `sdy.manual_computation`.
        """
        grid = DeviceMesh.over([device or jax.devices()[0]], [_ONE_DEVICE], (), module)
        return cls._of(without_shardings(module), Interface.without_shardings(module), grid)

    @classmethod
    def partitioned_by_xla(cls, module: ModuleOp, devices: Sequence[Device]) -> "ShardedProgram":
        """Return the unpartitioned `module` as a program that XLA partitions."""
        interface = Interface.of(module)
        placed = [*filter(None, (*interface.inputs, *interface.outputs))]
        grid = DeviceMesh.over(devices, _meshes(module), placed, module)
        return WholeProgram._of(for_xla(module), interface, grid)

    @classmethod
    def _of(cls, local: ModuleOp, interface: Interface, grid: DeviceMesh) -> "ShardedProgram":
        prepare_for_xla(local)
        program = LocalProgram.of(local, interface.main, interface.tokens)
        inputs, outputs = interface.ports(grid)
        return cls(program, tuple(inputs), tuple(outputs), grid.mesh, callback_problem(local))

    def __repr__(self) -> str:
        return f"<a program {self.signature}>"

    @property
    def signature(self) -> str:
        """The mesh and the numbers of arguments and results, for messages."""
        mesh = ", ".join(f"{name}={size}" for name, size in self.mesh.shape.items())
        return f"for the mesh {mesh}: arrays in: {len(self.inputs)}, out: {len(self.outputs)}"

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices in the order of the mesh; none if it is abstract."""
        return () if isinstance(self.mesh, AbstractMesh) else tuple(self.mesh.devices.flat)

    @cached_property
    def _mapped(self) -> Any:
        return jax.shard_map(
            self._local_results,
            mesh=self.mesh,
            in_specs=tuple(port.spec for port in self.inputs if _has_elements(port)),
            out_specs=tuple(port.spec for port in self.outputs),
            check_vma=False,
        )

    def _local_results(self, *arguments: jax.Array) -> Sequence[jax.Array]:
        """Call the local program, whose arguments without elements are created here: XLA drops their shardings."""
        given = iter(arguments)
        return self.local(*(next(given) if _has_elements(port) else _without_elements(port) for port in self.inputs))

    def lower(self, out_shardings: Sequence[NamedSharding | None] | None = None) -> jax.stages.Lowered:
        """Lower the program with 64-bit types enabled and without the mesh of `jax.set_mesh`.

        Args:
            out_shardings: Instead of those of the results; the compiler chooses a sharding for None.
        """
        with without_mesh(), jax.enable_x64(True):
            jitted = jax.jit(
                self,
                in_shardings=self.in_shardings,
                out_shardings=self.out_shardings if out_shardings is None else tuple(out_shardings),
                donate_argnums=[index for index, port in enumerate(self.inputs) if port.donated],
            )
            return jitted.lower(*(jax.ShapeDtypeStruct(port.shape, port.dtype) for port in self.inputs))

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        if self.problem is not None:
            raise self.problem
        if says_layout(self.mesh):
            # On explicit axes jax checks the shardings in the types of the arguments.
            arguments = jax.sharding.reshard(arguments, tuple(map(in_type, self.in_shardings)))
        pairs = zip(self.inputs, arguments, strict=True)
        results = self._mapped(*(argument for port, argument in pairs if _has_elements(port)))
        return tuple(map(self._as_named, results, self.out_shardings))

    def _as_named(self, result: jax.Array, sharding: NamedSharding) -> jax.Array:
        """Return the result with the same sharding on the mesh that the user named."""
        return result if sharding.mesh == self.mesh else jax.lax.with_sharding_constraint(result, sharding)


class WholeProgram(ShardedProgram):
    """An unpartitioned program, for one device or for XLA's partitioner; jax chooses its devices and shardings."""

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        return self.local(*arguments)


def says_layout(mesh: jax.sharding.Mesh | AbstractMesh) -> bool:
    """Return whether `mesh` has explicit axes, along which the types of arrays contain shardings."""
    return AxisType.Explicit in mesh.axis_types


def in_type(sharding: NamedSharding) -> NamedSharding:
    """Return the part of `sharding` along explicit axes, which the type of an array contains."""
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))

    def explicit(axes: Any) -> Any:
        named = axes if is_tuple(axes) else (axes,)
        return tuple(axis for axis in named if axis is not None and types[axis] is AxisType.Explicit) or None

    spec = PartitionSpec(*map(explicit, sharding.spec.partitions), unreduced=sharding.spec.unreduced)
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def make_local(
    module: ModuleOp, devices: Sequence[Device], like: AbstractMesh | None = None, tokens: int = 0
) -> tuple[Mesh, Interface, DeviceMesh]:
    """Partition `module` into the program of one device, in place; it keeps its meshes and shardings.

    Returns:
        The mesh, the interface, and the mesh over the first of `devices`.

    Raises:
        DiagnosticError: the module cannot be partitioned, or there are too few devices.
    """
    if not is_local(module):
        partition(module)
    interface = Interface.of(module, tokens)
    meshes = _meshes(module)
    count = device_count(module)
    if 0 < len(devices) < count:
        needed = f"the program's mesh has {count} devices"
        raise error(module, f"{needed}, but there are only {len(devices)} to run it on")
    placed = [*filter(None, (*interface.inputs, *interface.outputs))]
    grid = DeviceMesh.over(devices[:count] or None, meshes, placed, module, like)
    return meshes[0], interface, grid


def prepare_for_xla(local: ModuleOp) -> None:
    """Run `sdy-for-xla-pipeline` on `local`, and load the libraries that it calls.

    Raises:
        DiagnosticError: an operation belongs to a plugin's dialect, which XLA does not know.
    """
    if outside := [*filter(plugin_dialect, {op.dialect_name() for op in operations(local)})]:
        unknown = next(op for op in operations(local) if op.dialect_name() in outside)
        raise op_error(unknown, "belongs to a dialect that XLA does not know; lower it to StableHLO first")
    run_passes(local, [ForXlaPipeline()])
    prepare_custom_calls(local)


def _has_elements(port: Port) -> bool:
    return 0 not in port.shape


def _without_elements(port: Port) -> jax.Array:
    """Return the shard of an argument without elements."""
    return jnp.zeros(port.sharding.shard_shape(port.shape), port.dtype)


def _meshes(module: ModuleOp) -> list[Mesh]:
    return [mesh for mesh in named_meshes(module).values() if mesh.axes] or [_ONE_DEVICE]
