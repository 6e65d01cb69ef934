"""A module as a function on jax arrays: compiled once, called many times."""

from collections.abc import Sequence

import jax
from jax.sharding import NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.dialect.meshes import named_meshes
from sdy.ir.companions import clone
from sdy.passes.jax.custom_calls import wrong_calls_told
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.interface import Argument
from sdy.passes.jax.sharded_program import ShardedProgram, in_type
from sdy.passes.layouts import cheapest, is_propagated, propagated_layouts


class CompiledProgram:
    """A program compiled for its devices: call it with global arrays, jax's or numpy's, to get a tuple of jax arrays.

    An argument that is not yet laid out as `in_shardings` says is moved there first; one that the module lends to its
    results, as a donated argument of jax, is gone afterwards. `inputs` and `outputs` describe the arguments and the
    results, `devices` are those that it runs on.
    """

    def __init__(self, program: ShardedProgram):
        self.inputs = program.inputs
        self.outputs = program.outputs
        self.devices: tuple[Device, ...] = program.devices
        self._signature = program.signature
        self._compiled = program.lower().compile()

    def __repr__(self) -> str:
        return f"<a compiled program {self._signature}>"

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
        return self._compiled.as_text()

    def temporary_bytes(self) -> int | None:
        """The memory that each device needs while it runs, besides arguments and results; None if XLA does not say."""
        memory = self._compiled.memory_analysis()
        return None if memory is None else memory.temp_size_in_bytes

    def peak_bytes(self) -> int | None:
        """The memory that each device needs in all, an argument that is lent to a result once."""
        return peak_bytes_of(self._compiled)

    def __call__(self, *arguments: Argument) -> tuple[jax.Array, ...]:
        """Run the program. Raises TypeError or ValueError, naming the argument, where one does not fit."""
        with jax.enable_x64(True):
            try:
                return self._compiled(*arguments)
            except (TypeError, ValueError, NotImplementedError):
                # jax runs what is laid out as it should be, and refuses anything else before it does anything.
                # It does not put arrays of NumPy where partial results go.
                return self._compiled(*self._laid_out(arguments))

    def _laid_out(self, arguments: Sequence[Argument]) -> list[jax.Array]:
        if len(arguments) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} arguments, not {len(arguments)}") from None
        checked = [port.check(argument) for port, argument in zip(self.inputs, arguments, strict=True)]
        placed = jax.device_put(checked, [_reduced(sharding) for sharding in self.in_shardings])
        return [_as_partial(array, sharding) for array, sharding in zip(placed, self.in_shardings, strict=True)]


def _reduced(sharding: NamedSharding) -> NamedSharding:
    """Return the sharding of the sums of partial results that lie as `sharding` says."""
    if not sharding.spec.unreduced:
        return sharding
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec.partitions), memory_kind=sharding.memory_kind)


def _as_partial(array: jax.Array, sharding: NamedSharding) -> jax.Array:
    """Return an array as partial results along the unreduced axes of `sharding`, if it has any."""
    if not sharding.spec.unreduced:
        return array
    return jax.jit(lambda whole: jax.sharding.reshard(whole, in_type(sharding)))(array)


def peak_bytes_of(compiled: jax.stages.Compiled) -> int | None:
    """The memory that each device needs in all, an argument that is lent to a result once; None if XLA does not say."""
    memory = compiled.memory_analysis()
    if memory is None:
        return None
    lent = memory.alias_size_in_bytes
    return memory.argument_size_in_bytes + memory.output_size_in_bytes - lent + memory.temp_size_in_bytes


def compile(  # noqa: A001
    module: ModuleOp, devices: Sequence[Device] | jax.sharding.Mesh | None = None, *, compare_layouts: bool = True
) -> CompiledProgram:
    """Compile `module` for the devices of its mesh, numbered as in `devices` (by default, as in `jax.devices()`).

    These may also be a mesh of jax that has the axes of the module's. A module that is not partitioned yet is
    partitioned first, as a copy, and one that is not propagated is propagated before, with `compare_layouts` as
    `sdy.jit` does. Raises DiagnosticError where there are too few devices or the mesh is another, and where the program
    is one that cannot be run.
    """
    with wrong_calls_told(module):
        if not is_propagated(module):
            module = cheapest(propagated_layouts(clone(module), compare=compare_layouts)).local
        if not isinstance(devices, jax.sharding.Mesh):
            return CompiledProgram(ShardedProgram.of(module, devices))
        given, own = dict(devices.shape), [dict(mesh.axes) for mesh in named_meshes(module).values() if mesh.axes]
        if given not in own:
            raise error(module, f"the mesh has the axes {given}, but the module is for {own or 'one device'}")
        return CompiledProgram(ShardedProgram.of(module, tuple(devices.devices.flat), devices.abstract_mesh))


def compile_unpartitioned(module: ModuleOp, device: Device | None = None) -> CompiledProgram:
    """Compile `module`, which is not partitioned, for one device, as if it had no shardings: what to compare with.

    Raises DiagnosticError for a program that is written for several devices, as `sdy.manual_computation` is.
    """
    with wrong_calls_told(module):
        return CompiledProgram(ShardedProgram.unpartitioned(module, device))


def compile_by_xla(module: ModuleOp, devices: Sequence[Device]) -> CompiledProgram:
    """Compile `module`, which is not partitioned, for `devices`, with XLA's own partitioner: what to compare with.

    That is what `jax.jit` does with a program. Raises DiagnosticError where it is one that cannot be run.
    """
    with wrong_calls_told(module):
        return CompiledProgram(ShardedProgram.partitioned_by_xla(module, devices))
