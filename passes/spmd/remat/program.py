"""Rematerialization of a per-device program under a memory limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.attributes import RECOMPUTES
from sdy.ir.companions import clone_alone
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.remat.choice import Recomputation, recomputation
from sdy.passes.spmd.remat.kernel_editor import KernelEditor
from sdy.passes.spmd.remat.order import order
from sdy.passes.spmd.remat.recompute import recompute
from sdy.passes.spmd.remat.timeline import Timeline

_MAX_ATTEMPTS = 5
"""Maximum number of limits that are tried for the memory of temporaries."""

_MIN_STEP = 0.01
"""The least fraction of the limit by which the limit of an attempt is below that of the attempt before."""


@dataclass(frozen=True)
class Rematerialized:
    """The result of rematerialization.

    Attributes:
        memory_before: The predicted peak memory in bytes without recomputation.
        memory: The predicted peak memory in bytes with recomputation.
        num_values: The number of values that are recomputed.
        seconds: The estimated time of the recomputation in a step.
    """

    memory_before: int
    memory: int
    num_values: int = 0
    seconds: float = 0.0


def rematerialize(module: ModuleOp, limit: int, hardware: Hardware) -> Rematerialized:
    """Order the kernels of `module` and recompute values until its predicted peak memory is at most `limit`.

    Values are chosen for the memory that the kernels need in the order of the module. XLA may run the kernels of a
    segment in another order, so that smaller limits are tried where the prediction for the result exceeds `limit`. If
    no attempt fits, the one that needs the least memory is kept.

    Args:
        module: The per-device program, which is changed.
        limit: The most bytes that a device may use.
        hardware: The hardware, for the time of recomputation.
    """
    before = peak_bytes(module)
    if before <= limit:
        return Rematerialized(before, before)
    timeline = Timeline(module)
    seconds = timeline.seconds(module, hardware)
    target = limit - timeline.outside
    results: dict[int, Rematerialized] = {}
    while target > 0 and len(results) < _MAX_ATTEMPTS:
        copy = clone_alone(module)
        plan = _apply(copy, seconds, target)
        paid = sum(each.seconds for each in plan.dropped.values())
        results[target] = Rematerialized(before, peak_bytes(copy), len(plan.dropped), paid)
        excess = results[target].memory - limit
        if excess <= 0:
            break
        target -= max(excess, int(limit * _MIN_STEP))
    best = min(results, key=lambda target: results[target].memory, default=None)
    if best is None or results[best].memory >= before:
        return Rematerialized(before, before)
    _apply(module, seconds, best)
    return results[best]


def _apply(module: ModuleOp, seconds: Sequence[float], target: int) -> Recomputation:
    """Order the kernels of `module`, and recompute values until its temporaries need at most `target` bytes."""
    block = main_function(module).body.block
    timeline = Timeline(module)
    plan = recomputation(timeline, seconds, target)
    editor = KernelEditor(block, RECOMPUTES)
    copies = recompute(editor, timeline, plan)
    editor.erase_dead()
    editor = KernelEditor(block)
    order(editor, block, {*copies})
    editor.erase_dead()
    return plan
