"""Compile a program lowered by JAX: propagate, partition, choose the cheaper layout.

Compile times are logged as jax logs those of its own steps.
"""

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType

from sdy.dialect.attributes import HARDWARE
from sdy.dialect.meshes import named_meshes
from sdy.ir.companions import clone, companion
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.jax.bindings.from_jax import module_of
from sdy.passes.jax.bindings.to_bindings import module_to_bindings
from sdy.passes.jax.callbacks.lowered_layouts import lowered_layouts
from sdy.passes.jax.compiler_context import (
    Compiler,
    compares_layouts,
    hardware_of_compilers,
    memory_of,
    policy_of,
)
from sdy.passes.jax.device_hardware import offloading_hardware
from sdy.passes.jax.device_mesh import AnyMesh, Device, name_mesh
from sdy.passes.jax.jax_internals import ForXla, ToCompile
from sdy.passes.jax.program.manual_program import make_manual
from sdy.passes.jax.program.sharded_program import ShardedProgram
from sdy.passes.jax.sharding_constraint import give_to_main
from sdy.passes.layouts import PartitionedLayout, Partitioner, PropagatedLayout, cheapest
from sdy.passes.spmd.remat.recomputed import Recomputed


@dataclass(frozen=True)
class PropagatedProgram:
    """A propagated program, which can be partitioned several times: its callbacks run once.

    Attributes:
        declared: the module as jax lowered it.
        layouts: the candidate layouts.
        devices: the devices; none for an abstract mesh.
        like: a mesh whose axis types the arrays have, if it has the axes of the module's mesh.
        callbacks: the Python functions that custom calls refer to by index.
        function: the name of the function.
    """

    declared: ModuleOp
    layouts: Sequence[PropagatedLayout]
    devices: tuple[Device, ...]
    like: jax.sharding.AbstractMesh | None
    callbacks: tuple[Any, ...]
    function: str

    @classmethod
    def of(cls, lowered: ToCompile, compilers: Sequence[Compiler]) -> "PropagatedProgram":
        """Propagate a lowered module with the options of `compilers`. Raises DiagnosticError."""
        meshes = [*_meshes(lowered, compilers)]
        abstract = next((mesh.size for mesh in meshes if isinstance(mesh, jax.sharding.AbstractMesh)), None)
        devices = lowered.devices
        if abstract is not None and len(devices) == 1 < abstract:
            devices = ()  # jax has picked one device for an abstract mesh
        like = next((mesh.abstract_mesh for mesh in meshes if not devices or mesh.size == len(devices)), None)
        with elapsed_time_logged("parsing", lowered.function):
            declared = module_of(lowered.module)
        if like is not None and like.size > 1:
            name_mesh(declared, like)
        module = clone(declared)
        give_to_main(module)
        if hardware := _hardware(compilers, devices):
            module.attributes[HARDWARE] = StringAttr(hardware)
        with elapsed_time_logged("propagation", lowered.function):
            policy, compare = policy_of(compilers), compares_layouts(compilers)
            callbacks = list(lowered.callbacks)
            layouts = lowered_layouts(module, policy, compare, devices, lowered.kept_alive, callbacks)
        return cls(declared, layouts, devices, like, tuple(callbacks), lowered.function)

    def partitioned(self, partitioner: Partitioner) -> "Compilation":
        """Partition the layouts, and take the cheapest. Raises DiagnosticError."""
        with elapsed_time_logged("partitioning", self.function):
            layout = cheapest(self.layouts, partitioner)
        return Compilation(self.declared, layout, self.devices, self.like, self.callbacks)


def _hardware(compilers: Sequence[Compiler], devices: Sequence[Device]) -> str:
    """Return the hardware to partition for; within a memory limit, none whose devices cannot offload values."""
    given = hardware_of_compilers(compilers)
    if not memory_of(compilers):
        return given
    offloading = offloading_hardware(devices)
    return offloading and (given or offloading)


@dataclass(frozen=True)
class Compilation:
    """A propagated and partitioned program.

    Attributes:
        declared: the module as jax lowered it.
        layout: the propagated and the partitioned module.
        devices: the devices; none for an abstract mesh.
        like: a mesh whose axis types the arrays have, if it has the axes of the module's mesh.
        callbacks: the Python functions that custom calls refer to by index.
    """

    declared: ModuleOp
    layout: PartitionedLayout
    devices: tuple[Device, ...]
    like: jax.sharding.AbstractMesh | None
    callbacks: tuple[Any, ...]

    def before_propagation(self) -> ModuleOp:
        """Return a copy of the module before propagation, with calls inlined."""
        module = self.with_shardings()
        inline_calls(module)
        return module

    def with_shardings(self) -> ModuleOp:
        """Return a copy of the module as jax lowered it, with the given shardings at its arguments and results."""
        module = clone(self.declared)
        give_to_main(module)
        return module

    @property
    def is_sharded(self) -> bool:
        """True if the program declares a mesh with axes."""
        return any(mesh.axes for mesh in named_meshes(self.declared).values())

    def program(self) -> ShardedProgram:
        """Return the program as a function of global arrays."""
        return ShardedProgram.of(self.layout.local, self.devices, self.like, self._tokens)

    def manual(self, context: ir.Context) -> ForXla:
        """Return the program as a manual computation, a module in `context` for XLA.

        It consumes `layout.local`: no other method may be called afterwards.
        """
        module = self.layout.local
        shardings = make_manual(module, self.declared, self.devices, self.like, self._tokens)
        predicted = companion(module, Recomputed).memory
        return ForXla(module_to_bindings(module, context), shardings, self.callbacks, predicted)

    @property
    def _tokens(self) -> int:
        """The number of leading arguments and results that are tokens."""
        return sum(not isinstance(type_, TensorType) for type_ in main_function(self.declared).function_type.inputs)


def inner_compilers(lowered: ToCompile) -> list[Compiler]:
    """Return the compilers of the functions of `sdy.jit` inside the lowered program."""
    return [each for each in lowered.kept_alive if isinstance(each, Compiler)]


def _meshes(lowered: ToCompile, compilers: Sequence[Compiler]) -> Iterator[AnyMesh]:
    """Yield candidates for the mesh of a program that names none."""
    yield from (compiler.mesh for compiler in compilers if compiler.mesh is not None)
    if not (of_context := jax.sharding.get_abstract_mesh()).empty:
        yield of_context
    yield from lowered.meshes


_LOGGER = logging.getLogger(__name__)


@contextmanager
def elapsed_time_logged(step: str, function: str) -> Generator[None]:
    """Log the seconds of a `step` of compiling `function` below the logger "sdy"; a warning with `jax_log_compiles`."""
    start = time.perf_counter()
    yield
    is_wanted: bool = jax.config.jax_log_compiles  # pyright: ignore[reportAttributeAccessIssue]
    level = logging.WARNING if is_wanted else logging.INFO
    _LOGGER.log(level, "Finished %s of jit(%s) in %.9f sec", step, function, time.perf_counter() - start)
