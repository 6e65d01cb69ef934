"""Compiled programs of shards."""

import gc
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from typing import Any

import jax
import numpy as np

from sdy.diagnostics import DiagnosticError, error
from sdy.passes.blocks.arrays import Array, is_shareable
from sdy.passes.blocks.graph import BlockOp, Shard, ShardProgram
from sdy.passes.blocks.memory import return_free_memory
from sdy.passes.jax.bindings.python_callbacks import callback_problem
from sdy.passes.jax.jax_internals import without_mesh
from sdy.passes.jax.program.custom_calls import explain_wrong_calls
from sdy.passes.jax.program.interface import Interface
from sdy.passes.jax.program.local_program import LocalProgram
from sdy.passes.jax.program.plain_module import without_shardings
from sdy.passes.jax.program.sharded_program import prepare_for_xla
from sdy.progress import track
from sdy.text import parse

Kernel = Callable[..., Sequence[jax.Array]]

_KERNELS = 4096
"""The number of compiled programs that are memoized."""


def run_shard(shard: Shard, operands: Sequence[Array]) -> list[Array]:
    """Return the chunks that a shard writes.

    Raises:
        DiagnosticError: The operation cannot be run; the location is the operation.
    """
    work = shard.work
    if not isinstance(work, BlockOp):
        return [np.array(operand) for operand in operands]
    with _located(work):
        return run_program(work.program(shard.number), [*operands, *work.offsets[shard.number]])


def compile_shards(shards: Iterable[Shard], then: Callable[[], None]) -> None:
    """Compile the distinct programs of shards, as many as are memoized; call `then` after the first one.

    Raises:
        DiagnosticError: A program cannot be compiled; the location is the operation.
    """
    programs = {shard.work.program(shard.number): shard.work for shard in shards if isinstance(shard.work, BlockOp)}
    for number, (program, work) in enumerate(track("program", [*programs.items()][:_KERNELS], lambda: len(programs))):
        with _located(work):
            kernel(program)
        if number == 0:
            then()


@contextmanager
def _located(work: BlockOp) -> Generator[None]:
    """Locate errors of the `with` block at an operation."""
    try:
        yield
    except DiagnosticError as problem:
        raise error(work.op, problem.message, *(note.message for note in problem.notes)) from problem


def run_program(program: ShardProgram, operands: Sequence[Any]) -> list[Array]:
    """Run the program of a shard. Large operands are read in place, where the alignment allows it."""
    run = kernel(program)
    with jax.enable_x64(True):
        device = jax.devices("cpu")[0]
        given: list[Any] = [
            jax.device_put(each, device, may_alias=True) if is_shareable(each) else each for each in operands
        ]
        return [np.asarray(result) for result in run(*given)]


def release_operands() -> None:
    """Drop the references to arrays of Python that XLA has read: JAX does so when the garbage collector runs."""
    gc.collect(0)


@lru_cache(_KERNELS)
def kernel(program: ShardProgram) -> Kernel:
    """Compile the program of a shard for the host's processor; memoized.

    Raises:
        DiagnosticError: XLA cannot compile it.
    """
    module = parse(program.text)
    problem = callback_problem(module)
    if problem is not None:
        raise problem
    with explain_wrong_calls(module):
        local = without_shardings(module)
        prepare_for_xla(local)
        interface = Interface.without_shardings(local)
        call = LocalProgram.of(local, interface.main)
        arguments = [jax.ShapeDtypeStruct(port.shape, port.dtype) for port in interface.arguments()]
        device = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
        options = _quick_options() if program.is_short else None
        with without_mesh(), jax.enable_x64(True):
            lowered = jax.jit(call, in_shardings=device, out_shardings=device).lower(*arguments)
            compiled = lowered.compile(compiler_options=options)
    return_free_memory()  # of the compiler, which took more than a block
    return compiled


@cache
def _quick_options() -> dict[str, str | bool]:
    """Return the options with which XLA compiles in half the time, those that this version of XLA knows."""
    options: dict[str, str | bool] = {
        "xla_backend_optimization_level": "1",
        "xla_cpu_parallel_codegen_split_count": "1",
        "xla_cpu_use_fusion_emitters": False,
    }
    known: dict[str, str | bool] = {}
    nothing = jax.jit(lambda: 0).lower()
    for name, value in options.items():
        with suppress(jax.errors.JaxRuntimeError):
            nothing.compile(compiler_options={name: value})
            known[name] = value
    return known
