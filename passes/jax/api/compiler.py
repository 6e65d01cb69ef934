"""`sdy.compiler`: a context in which sdy compiles the programs of jax.

    with sdy.compiler(mesh=mesh, policy=policy):
        trainer.fit()  # jax.jit, nnx.jit, eqx.filter_jit, ... somewhere inside

jax traces and lowers a program as usual. A hook has XLA compile the partitioned form of the lowered module instead;
arguments and results keep the shardings that jax knows.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any
from warnings import warn

import jax

from sdy import gc_control
from sdy.mesh import Mesh
from sdy.passes.jax.api.given_shardings import GivenShardings
from sdy.passes.jax.api.persistent_cache import remembered
from sdy.passes.jax.compilation import PropagatedProgram, inner_compilers
from sdy.passes.jax.compiled_programs import CompilerBlock, record, recording
from sdy.passes.jax.compiler_context import (
    Compiler,
    active_compilers,
    known_hardware,
    memory_limit,
    memory_of,
    use_compilers,
)
from sdy.passes.jax.device_hardware import limited_memory_options
from sdy.passes.jax.device_mesh import AnyMesh, refuse_abstract
from sdy.passes.jax.jax_internals import CompileByXla, Executable, ForXla, ToCompile, replace_compilation
from sdy.passes.jax.memory_limit import compile_within
from sdy.passes.jax.program.local_program import LocalProgram
from sdy.passes.layouts import partitioner_for
from sdy.passes.policy import Policy


@contextmanager
def compiler(
    *,
    mesh: jax.sharding.Mesh | Mesh | None = None,
    policy: Policy | None = None,
    compare_layouts: bool = True,
    memory: str | float | None = None,
    hardware: str | None = None,
) -> Generator[CompilerBlock]:
    """Compile the programs of jax for several devices with sdy, in a `with` block or a decorated function.

    This includes functions that libraries wrap in `jax.jit`. Functions that were compiled before are traced and
    compiled again.

        with sdy.compiler() as c:
            trainer.fit()
        print(*c.programs, sep="\\n")
        print(sdy.account(c.programs[-1]))

    Each program of `c.programs` has the attributes `name`, `source` (the line of its first operation), `lowered` (the
    module as jax lowered it) and `module` (with all shardings); `sdy.account`, `sdy.lint`, `sdy.report`, `sdy.explain`
    and `sdy.diff` take it.

    Args:
        mesh: the mesh of `jax.set_mesh` in the block: programs without shardings run on its devices. By default
            programs run on the devices of their arguments.
        policy: called for each program, as in `sdy.jit`.
        compare_layouts: as in `sdy.jit`.
        memory: as in `sdy.jit`.
        hardware: as in `sdy.jit`.

    Raises:
        ValueError: `memory` is not a size.
        DiagnosticError: the hardware is unknown; or when a program in the block is compiled and cannot be partitioned.
    """
    of_jax = GivenShardings.of(mesh, None, None).mesh
    install_hook()
    own = Compiler(of_jax, policy, compare_layouts, memory_limit(memory), known_hardware(hardware))
    with use_compilers((own,)), _mesh_of_context(of_jax), recording() as block:
        yield block


def _mesh_of_context(mesh: AnyMesh | None) -> AbstractContextManager[Any]:
    match mesh:
        case None:
            return nullcontext()
        case jax.sharding.AbstractMesh():
            return jax.sharding.use_abstract_mesh(mesh)
        case _:
            return jax.set_mesh(mesh)


@cache
def install_hook() -> None:
    """Install the hook by which sdy replaces the modules that XLA compiles, once in a process."""
    replace_compilation(_compiled)


def _compiled(lowered: ToCompile, compile_by_xla: CompileByXla) -> Executable | None:
    """Compile the partitioned form of a lowered module; None to compile the module itself."""
    asked = inner_compilers(lowered)
    compilers = [*active_compilers(), *asked]
    if not compilers or any(isinstance(each, LocalProgram) for each in lowered.kept_alive):
        return None
    record(lowered, compilers)
    _warn_of_other_devices(lowered, asked)
    if len(lowered.devices) == 1:
        of_context = jax.sharding.get_abstract_mesh()
        if of_context.size > jax.device_count() and lowered.names_meshes:
            refuse_abstract(lowered.function, of_context)
    memory = memory_of(compilers)
    if len(lowered.devices) == 1 and not memory:
        return None
    propagated = cache(lambda: PropagatedProgram.of(lowered, compilers))
    if not memory:
        program = _partitioned(lowered, compilers, propagated)
        return None if program is None else compile_by_xla(program, {})

    def compile_for(limit: int) -> tuple[Executable, int] | None:
        program = _partitioned(lowered, [*compilers, Compiler(memory=str(limit))], propagated)
        options = limited_memory_options(lowered.devices, limit)
        return None if program is None else (compile_by_xla(program, options), program.memory)

    return compile_within(int(memory), compile_for, lowered.function)


def _partitioned(
    lowered: ToCompile, compilers: Sequence[Compiler], propagated: Callable[[], PropagatedProgram]
) -> ForXla | None:
    """Return the partitioned form of a lowered module for XLA; None for a program that is not sharded.

    A program of one device that has a memory limit is returned, too: it recomputes values.
    """

    def make() -> ForXla | None:
        memory = memory_of(compilers)
        compilation = propagated().partitioned(partitioner_for(memory, warns=False))
        is_limited = bool(memory) and len(lowered.devices) == 1
        return compilation.manual(lowered.module.context) if is_limited or compilation.is_sharded else None

    with gc_control.paused(leaves_little=True):
        return remembered(lowered, compilers, make)


def _warn_of_other_devices(lowered: ToCompile, asked: Iterable[Compiler]) -> None:
    devices, name = lowered.devices, lowered.name
    for compiler in asked:
        if isinstance(compiler.mesh, jax.sharding.Mesh) and {*compiler.mesh.devices.flat} != {*devices}:
            lost = f"a function of sdy.jit is part of {name}, which jax compiles for {len(devices)} of the devices"
            help_ = f"its mesh, {dict(compiler.mesh.shape)}, is not used: call {name} within sdy.compiler(mesh=...)"
            warn(f"{lost}: {help_}", stacklevel=2)
