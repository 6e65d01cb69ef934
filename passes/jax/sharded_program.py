"""The program of one device and where its arguments and results lie: together, a function of whole arrays for jax.

Each device runs the local program that partitioning made; jax gives it the device's shards of the arguments and puts
the shards of the results together. Nothing here depends on the kind of devices: the collectives stand in the program,
with the groups of devices that take part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from sdy.passes.driver import partition
from sdy.passes.jax.custom_calls import prepare_custom_calls
from sdy.passes.jax.device_mesh import AnyMesh, Device, DeviceMesh
from sdy.passes.jax.device_order import renumber_devices
from sdy.passes.jax.fft_layouts import constrain_fft_layouts
from sdy.passes.jax.interface import Interface, Port
from sdy.passes.jax.jax_internals import without_mesh
from sdy.passes.jax.local_program import LocalProgram
from sdy.passes.jax.nan_in_collectives import keep_nan
from sdy.passes.jax.plain_module import drop_shardings, for_xla, without_shardings
from sdy.passes.jax.python_callbacks import callback_problem
from sdy.passes.jax.small_reductions import combine_small_reductions
from sdy.passes.jax.unsigned_bits import draw_unsigned_bits
from sdy.passes.spmd.local_module import is_local
from sdy.plugins import plugin_dialect
from sdy.type_guards import is_tuple

_ONE_DEVICE = Mesh.of({"device": 1})


@dataclass(frozen=True, repr=False)
class ShardedProgram:
    """A program over the devices of `mesh`: call it with global arrays, traced or not, to get those that it makes.

    Where the mesh is abstract, there are no devices, and it can be traced and lowered only.
    """

    local: LocalProgram
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    mesh: AnyMesh
    problem: DiagnosticError | None = None
    """Why it can be looked at but not called."""

    @classmethod
    @gc_control.paused()
    def of(
        cls,
        module: ModuleOp,
        devices: Sequence[Device] | None = None,
        like: AbstractMesh | None = None,
        tokens: int = 0,
    ) -> "ShardedProgram":
        """The program of `module`, whose mesh numbers `devices` (by default, as in `jax.devices()`), or for no devices.

        Its arrays lie on a mesh with the axis types of `like`, if that has the axes of the module's mesh. A module
        that is not partitioned yet is partitioned, as a copy. The first of its arguments and results, so many as there
        are `tokens`, are no arrays. Raises DiagnosticError where there are too few devices, and where the program is
        one that cannot be run.
        """
        local = clone_alone(module)
        mesh, interface, grid = make_local(local, jax.devices() if devices is None else devices, like, tokens)
        renumber_devices(local, mesh)
        return cls._of(local, interface, grid)

    @classmethod
    def unpartitioned(cls, module: ModuleOp, device: Device | None = None) -> "ShardedProgram":
        """The program of `module`, which is not partitioned, for one device, as if it had no shardings.

        Raises DiagnosticError for a program that is written for several devices, as `sdy.manual_computation` is.
        """
        grid = DeviceMesh.over([device or jax.devices()[0]], [_ONE_DEVICE], (), module)
        return cls._of(without_shardings(module), Interface.without_shardings(module), grid)

    @classmethod
    def partitioned_by_xla(cls, module: ModuleOp, devices: Sequence[Device]) -> "ShardedProgram":
        """The program of `module`, which is not partitioned, as XLA makes it of the shardings that are given."""
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
        """What it is for, in a few words."""
        mesh = ", ".join(f"{name}={size}" for name, size in self.mesh.shape.items())
        return f"for the mesh {mesh}: arrays in: {len(self.inputs)}, out: {len(self.outputs)}"

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that the program runs on, in the order of the mesh; none where that is abstract."""
        return () if isinstance(self.mesh, AbstractMesh) else tuple(self.mesh.devices.flat)

    @property
    def in_shardings(self) -> tuple[NamedSharding, ...]:
        """How each argument is laid out over the devices."""
        return tuple(port.sharding for port in self.inputs)

    @property
    def out_shardings(self) -> tuple[NamedSharding, ...]:
        """How each result is laid out over the devices."""
        return tuple(port.sharding for port in self.outputs)

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
        """The local program applied to those arguments that have elements: XLA loses track of the others."""
        given = iter(arguments)
        return self.local(*(next(given) if _has_elements(port) else _without_elements(port) for port in self.inputs))

    def lower(self) -> jax.stages.Lowered:
        """The program as jax hands it to XLA. Its types are those of the program, of which some have 64 bits.

        Its mesh is its own, whatever `jax.set_mesh` has set.
        """
        with without_mesh(), jax.enable_x64(True):
            jitted = jax.jit(
                self,
                in_shardings=self.in_shardings,
                out_shardings=self.out_shardings,
                donate_argnums=[index for index, port in enumerate(self.inputs) if port.donated],
            )
            return jitted.lower(*(jax.ShapeDtypeStruct(port.shape, port.dtype) for port in self.inputs))

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        if self.problem is not None:
            raise self.problem
        if says_layout(self.mesh):
            # There jax checks that the types of the arguments say how they are laid out.
            arguments = jax.sharding.reshard(arguments, tuple(map(in_type, self.in_shardings)))
        pairs = zip(self.inputs, arguments, strict=True)
        results = self._mapped(*(argument for port, argument in pairs if _has_elements(port)))
        return tuple(map(self._as_named, results, self.out_shardings))

    def _as_named(self, result: jax.Array, sharding: NamedSharding) -> jax.Array:
        """The result on the mesh that a person knows, which is the same layout."""
        return result if sharding.mesh == self.mesh else jax.lax.with_sharding_constraint(result, sharding)


class WholeProgram(ShardedProgram):
    """A program of whole arrays: for XLA to partition, or of one device, whichever that is.

    jax says where it runs and where its results lie, as for any other operation.
    """

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        return self.local(*arguments)


def says_layout(mesh: jax.sharding.Mesh | AbstractMesh) -> bool:
    """Whether the types of arrays on `mesh` say how these are laid out over some of its axes."""
    return AxisType.Explicit in mesh.axis_types


def in_type(sharding: NamedSharding) -> NamedSharding:
    """What the type of an array says of its sharding."""
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))

    def explicit(axes: Any) -> Any:
        named = axes if is_tuple(axes) else (axes,)
        return tuple(axis for axis in named if axis is not None and types[axis] is AxisType.Explicit) or None

    spec = PartitionSpec(*map(explicit, sharding.spec.partitions), unreduced=sharding.spec.unreduced)
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def make_local(
    module: ModuleOp, devices: Sequence[Device], like: AbstractMesh | None = None, tokens: int = 0
) -> tuple[Mesh, Interface, DeviceMesh]:
    """Turn `module` into what one device of its mesh runs, which has no shardings, in place.

    Returns its mesh, its arguments and results, and that mesh over the first of `devices`, if any, on which these lie.
    For `like` and `tokens` see `ShardedProgram.of`. Raises DiagnosticError where it cannot be partitioned, or there
    are too few devices.
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
    drop_shardings(module)
    return meshes[0], interface, grid


def prepare_for_xla(local: ModuleOp) -> None:
    """Write what XLA would compute otherwise in another way, in place, and make ready what `local` calls.

    Raises DiagnosticError at an operation of a dialect of another package, which XLA does not know.
    """
    if outside := [*filter(plugin_dialect, {op.dialect_name() for op in operations(local)})]:
        unknown = next(op for op in operations(local) if op.dialect_name() in outside)
        raise op_error(unknown, "is of a dialect that XLA does not know: make StableHLO operations of it first")
    draw_unsigned_bits(local)
    keep_nan(local)
    combine_small_reductions(local)
    constrain_fft_layouts(local)
    prepare_custom_calls(local)


def _has_elements(port: Port) -> bool:
    return 0 not in port.shape


def _without_elements(port: Port) -> jax.Array:
    """One device's part of an argument that has no elements."""
    return jnp.zeros(port.sharding.shard_shape(port.shape), port.dtype)


def _meshes(module: ModuleOp) -> list[Mesh]:
    return [mesh for mesh in named_meshes(module).values() if mesh.axes] or [_ONE_DEVICE]
