"""Compile a module into a function on jax arrays."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.dialect.attributes import HARDWARE
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import func_result_sharding
from sdy.ir.companions import clone
from sdy.passes.jax.device_hardware import limited_memory_options, offloading_hardware
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.memory_limit import peak_bytes_of
from sdy.passes.jax.program.custom_calls import explain_wrong_calls
from sdy.passes.jax.program.interface import Argument, WithPorts, function_to_run
from sdy.passes.jax.program.sharded_program import ShardedProgram, in_type
from sdy.passes.layouts import cheapest, is_propagated, propagated_layouts


class CompiledProgram(WithPorts):
    """A program compiled for its devices: call it with global arrays, jax's or numpy's, to get a tuple of jax arrays.

    An argument with another sharding than in `in_shardings` is resharded first. A donated argument is deleted.

    Attributes:
        inputs: the arguments.
        outputs: the results.
        devices: the devices that the program runs on.
    """

    def __init__(self, program: ShardedProgram):
        self.inputs = program.inputs
        self.outputs = program.outputs
        self.devices: tuple[Device, ...] = program.devices
        self._signature = program.signature
        self._compiled = program.lower().compile(_xla_options(program))

    def __repr__(self) -> str:
        return f"<a compiled program {self._signature}>"

    def compiled_text(self) -> str:
        """Return the program optimized by XLA, as HLO text."""
        return self._compiled.as_text()

    def memory_analysis(self) -> Any:
        """Return XLA's memory statistics of a device, as `jax.stages.Compiled` does."""
        return self._compiled.memory_analysis()

    def temporary_bytes(self) -> int | None:
        """Return the bytes of temporaries on each device; None if XLA does not report them."""
        memory = self._compiled.memory_analysis()
        return None if memory is None else memory.temp_size_in_bytes

    def peak_bytes(self) -> int | None:
        """Return the peak memory of each device in bytes; None if XLA does not report it."""
        return peak_bytes_of(self._compiled)

    def __call__(self, *arguments: Argument) -> tuple[jax.Array, ...]:
        """Run the program.

        Raises:
            TypeError: an argument, which the message names, is not an array or has another element type.
            ValueError: an argument, which the message names, has another shape.
        """
        with jax.enable_x64(True):
            try:
                return self._compiled(*arguments)
            except (TypeError, ValueError, NotImplementedError):
                # jax runs arguments with the right shardings, and rejects others before it changes anything.
                # It cannot place NumPy arrays as partial results.
                return self._compiled(*self._placed(arguments))

    def _placed(self, arguments: Sequence[Argument]) -> list[jax.Array]:
        if len(arguments) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} arguments, not {len(arguments)}") from None
        checked = [port.check(argument) for port, argument in zip(self.inputs, arguments, strict=True)]
        placed = jax.device_put(checked, [_reduced(sharding) for sharding in self.in_shardings])
        return [_as_partial(array, sharding) for array, sharding in zip(placed, self.in_shardings, strict=True)]


def _xla_options(program: ShardedProgram) -> dict[str, str | bool] | None:
    """Return the options with which XLA keeps the order and the copies of recomputed operations, if there are any."""
    return {**limited_memory_options(program.devices, program.memory_limit)} if program.memory_limit else None


def _reduced(sharding: NamedSharding) -> NamedSharding:
    """Return `sharding` without its unreduced axes."""
    if not sharding.spec.unreduced:
        return sharding
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec.partitions), memory_kind=sharding.memory_kind)


def _as_partial(array: jax.Array, sharding: NamedSharding) -> jax.Array:
    """Reshard an array to partial results along the unreduced axes of `sharding`, if it has any."""
    if not sharding.spec.unreduced:
        return array
    return jax.jit(lambda whole: jax.sharding.reshard(whole, in_type(sharding)))(array)


def compile(  # noqa: A001
    module: ModuleOp, devices: Sequence[Device] | jax.sharding.Mesh | None = None, *, compare_layouts: bool = True
) -> CompiledProgram:
    """Compile `module` for the devices of its mesh.

    A module that is not propagated or not partitioned is propagated and partitioned first, as a copy.

    Args:
        module: a module, at any stage.
        devices: the devices that the mesh numbers, by default `jax.devices()`, or a mesh of jax with the same axes.
        compare_layouts: as in `sdy.jit`.

    Raises:
        DiagnosticError: there are too few devices, the mesh has other axes, or the program cannot be run.
    """
    with explain_wrong_calls(module):
        if not is_propagated(module):
            module = clone(module)
            in_use = devices.devices.flat if isinstance(devices, jax.sharding.Mesh) else devices or jax.devices()
            if not offloading_hardware([*in_use]):
                module.attributes.pop(HARDWARE, None)
            module = cheapest(propagated_layouts(module, compare=compare_layouts)).local
        if not isinstance(devices, jax.sharding.Mesh):
            return CompiledProgram(ShardedProgram.of(module, devices))
        given, own = dict(devices.shape), [dict(mesh.axes) for mesh in named_meshes(module).values() if mesh.axes]
        if given not in own:
            raise error(module, f"the mesh has the axes {given}, but the module is for {own or 'one device'}")
        return CompiledProgram(ShardedProgram.of(module, tuple(devices.devices.flat), devices.abstract_mesh))


def compile_unpartitioned(module: ModuleOp, device: Device | None = None) -> CompiledProgram:
    """Compile the unpartitioned `module` for one device, without its shardings, as a reference.

    Raises:
        DiagnosticError: the program is written for several devices, such as one with `sdy.manual_computation`.
    """
    with explain_wrong_calls(module):
        return CompiledProgram(ShardedProgram.unpartitioned(module, device))


def compile_by_xla(module: ModuleOp, devices: Sequence[Device]) -> CompiledProgram:
    """Compile the unpartitioned `module` for `devices` with XLA's partitioner, as `jax.jit` does, as a reference.

    Raises:
        DiagnosticError: the program cannot be run.
    """
    with explain_wrong_calls(module):
        return CompiledProgram(ShardedProgram.partitioned_by_xla(module, devices))


def partitioned_by_xla(module: ModuleOp, devices: Sequence[Device]) -> jax.stages.Compiled:
    """Compile the unpartitioned `module` for `devices` as `jax.jit` does, which leaves results open without shardings.

    Raises:
        DiagnosticError: the program cannot be run.
    """
    with explain_wrong_calls(module):
        program = ShardedProgram.partitioned_by_xla(module, devices)
        main = function_to_run(module)
        given = [
            sharding if func_result_sharding(main, index) else None
            for index, sharding in enumerate(program.out_shardings)
        ]
        return program.lower(given).compile()
