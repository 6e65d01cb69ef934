"""Execution of a shard through JAX."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from sdy.diagnostics import DiagnosticError, error
from sdy.passes.blocks.graph import BlockOp, Shard
from sdy.passes.blocks.local_operation import local_program, whole_program
from sdy.passes.blocks.reading import Array
from sdy.passes.jax.api.compile import CompiledProgram, compile_unpartitioned
from sdy.text import format, parse


def run_shard(shard: Shard, operands: Sequence[Array]) -> list[Array]:
    """Return the chunks that a shard writes.

    Raises:
        DiagnosticError: The operation cannot be run; the location is the operation.
    """
    program = shard_program(shard)
    if program is None:
        return list(operands)
    try:
        return run_program(program, operands)
    except DiagnosticError as problem:
        where = shard.work.op if isinstance(shard.work, BlockOp) else None
        raise error(where, problem.message, *(note.message for note in problem.notes)) from problem


def shard_program(shard: Shard) -> str | None:
    """Return the program of a shard as text, equal for shards of equal shapes; None for a copy."""
    work = shard.work
    if not isinstance(work, BlockOp):
        return None
    if work.blocks is None or shard.index is None:
        return format(whole_program(work.op))
    return format(local_program(work.op, work.blocks, shard.index))


def run_program(text: str, operands: Sequence[Array]) -> list[Array]:
    """Run a program of `shard_program`."""
    return [np.asarray(result) for result in compiled(text)(*operands)]


@lru_cache(256)
def compiled(text: str) -> CompiledProgram:
    """Compile a single-device program; memoized."""
    return compile_unpartitioned(parse(text))


def touched_shapes(shard: Shard) -> list[tuple[int, ...]]:
    """Return the shape of the region that a shard reads of each operand, 0 if it is all padding."""
    work, index = shard.work, shard.index
    if not isinstance(work, BlockOp) or work.blocks is None or index is None:
        return [tensor.shape for tensor in work.operands]
    return [tuple(access.touched(index).tolist()) for access in work.blocks.operands]
