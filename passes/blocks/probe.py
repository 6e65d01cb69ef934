"""Measured time and memory of blocks of an operation."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import jax
from xdsl.ir import Operation

from sdy.blocks import BlockOperation
from sdy.box import Box
from sdy.passes.blocks.local_operation import local_program
from sdy.passes.jax.api.compile import compile_unpartitioned
from sdy.passes.jax.program.inputs import random_inputs

_RUNS = 3


@dataclass(frozen=True)
class Probe:
    """Measurements of a block; 0 where the runtime does not report them.

    Attributes:
        seconds: The run time.
        intermediate_bytes: The memory besides operands and results.
    """

    seconds: float
    intermediate_bytes: int


def probe(op: Operation, blocks: BlockOperation, shape: Sequence[int]) -> Probe:
    """Measure the block of `shape` at the origin, on random numbers: the least time of several runs, and its memory.

    The cost of a block hardly depends on its position. The result is an input for `sdy.blocks.override_memory`.
    """
    program = compile_unpartitioned(local_program(op, blocks, Box.of_shape(shape)))
    operands = [jax.device_put(operand) for operand in random_inputs(program.inputs, seed=0)]
    jax.block_until_ready(program(*operands))
    seconds: list[float] = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        jax.block_until_ready(program(*operands))
        seconds.append(time.perf_counter() - start)
    return Probe(min(seconds), program.temporary_bytes() or 0)


def probe_per_step(op: Operation, blocks: BlockOperation, shape: Sequence[int]) -> list[Probe]:
    """Return the marginal cost of one more step along each axis.

    Computed from a block twice as long, divided by the number of additional steps; 0 for an axis too short to be
    doubled.
    """
    base = probe(op, blocks, shape)
    costs: list[Probe] = []
    for axis, (size, extent) in enumerate(zip(shape, blocks.index_shape, strict=True)):
        longer = min(2 * size, extent)
        if longer == size:
            costs.append(Probe(0.0, 0))
            continue
        other = probe(op, blocks, [longer if number == axis else part for number, part in enumerate(shape)])
        steps = longer - size
        intermediate = (other.intermediate_bytes - base.intermediate_bytes) // steps
        costs.append(Probe((other.seconds - base.seconds) / steps, intermediate))
    return costs
