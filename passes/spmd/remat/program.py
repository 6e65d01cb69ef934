"""Rematerialization of a per-device program under a memory limit."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import RECOMPUTES
from sdy.ir.companions import clone_alone
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.local_module import Channels, first_free_channel
from sdy.passes.spmd.remat.choice import recomputation
from sdy.passes.spmd.remat.kernel_editor import KernelEditor
from sdy.passes.spmd.remat.kernel_timeline import KernelTimeline, operation_seconds
from sdy.passes.spmd.remat.order import order
from sdy.passes.spmd.remat.recompute import recompute
from sdy.passes.spmd.remat.recomputed import Held, ValueGroup, grouped, is_in_backward_pass
from sdy.passes.spmd.remat.stacks import Chains, DroppedStack, Stack, drop, offload, stacks_of

_MAX_ATTEMPTS = 4
"""Maximum number of limits that are tried for the memory of temporaries."""

_LENGTHS = (16, 4)
"""The numbers of kernels between barriers: long segments leave XLA more freedom, in short ones it needs less memory."""

_CLOSE = 0.97
"""No other limits are tried once the memory is between this fraction of the limit and the limit."""

_MIN_STEP = 0.01
"""The least difference of the limits of the first two attempts, as a fraction of the memory limit; it then doubles."""


@dataclass(frozen=True)
class Rematerialized:
    """The result of rematerialization.

    Attributes:
        memory: The predicted peak memory in bytes.
        values: The values that are recomputed.
        offloaded: The values that are moved to the host and back.
        saved: The values that the forward pass saves for the backward pass.
        seconds: The estimated time of the recomputation and of exposed transfers in a step.
        target: The bytes of temporaries for which values were chosen.
        reaches_target: Whether the temporaries need at most `target` if kernels run in the order of the module.
        length: The most kernels of a segment between barriers.
        hardware: The hardware for which values were chosen: with a link to the host, if any was offloaded.
    """

    memory: int
    values: Sequence[ValueGroup] = ()
    offloaded: Sequence[ValueGroup] = ()
    saved: Sequence[ValueGroup] = ()
    seconds: float = 0.0
    target: int = 0
    reaches_target: bool = True
    length: int = 0
    hardware: Hardware | None = None


def rematerialize(module: ModuleOp, limit: int, hardware: Hardware) -> Rematerialized:
    """Order the kernels of `module` and recompute or offload values until it is predicted to need at most `limit`.

    Values are chosen for the memory that the kernels need in the order of the module. XLA may run the kernels of a
    segment in another order, so that smaller limits are tried where the prediction for the result exceeds `limit`, and
    the fastest result that fits is kept. If none fits, the one that needs the least memory is kept.

    Args:
        module: The per-device program, which is changed.
        limit: The most bytes that a device may use.
        hardware: The hardware, for the time of recomputation; values are offloaded over its link to the host.
    """
    before = peak_bytes(module)
    if before <= limit:
        return Rematerialized(before)
    has_stacks = any(stack.reads for stack in stacks_of(module))
    dropped = _drop_stacks(module, limit, hardware) if has_stacks else Rematerialized(before)
    rest = _rematerialize_main(module, limit, hardware, dropped.memory)
    return replace(
        rest,
        values=[*dropped.values, *rest.values],
        offloaded=[*dropped.offloaded, *rest.offloaded],
        saved=[*dropped.saved, *rest.saved],
        seconds=dropped.seconds + rest.seconds,
    )


def _drop_stacks(module: ModuleOp, limit: int, hardware: Hardware) -> Rematerialized:
    """Drop or offload the fewest stacks, the cheapest first, with which `module` needs at most `limit`, or least."""
    stacks = stacks_of(module)
    seconds = operation_seconds(module, hardware)
    orders = [Chains(stacks, seconds, each).order() for each in _with_and_without_host(hardware)]
    tries = [_fewest_dropped(module, stacks, limit, order) for order in orders]
    order = min(tries, key=lambda each: (max(each.memory, limit), each.seconds)).order
    values, offloaded = (
        grouped(
            Held(each.stack.element, value_bytes(each.stack.buffer), each.seconds)
            for each in order
            if each.is_offloaded is is_offloaded
        )
        for is_offloaded in (False, True)
    )
    left = {each.stack for each in order}
    kept = [stack for stack in stacks if stack.reads and stack not in left]
    saved = grouped(Held(stack.element, value_bytes(stack.buffer)) for stack in kept)
    paid = sum(each.seconds for each in order)
    return Rematerialized(_dropped(module, stacks, order), values, offloaded, saved, paid)


def _with_and_without_host(hardware: Hardware) -> Sequence[Hardware]:
    """Return the hardware with and without its link to the host: offloaded values may be needed to recompute others."""
    return [hardware] if hardware.host is None else [hardware, replace(hardware, host=None)]


class _Try(NamedTuple):
    """Stacks that are dropped or offloaded, and the memory that the program then needs."""

    order: Sequence[DroppedStack]
    memory: int

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.order)


def _fewest_dropped(module: ModuleOp, stacks: Sequence[Stack], limit: int, order: Sequence[DroppedStack]) -> _Try:
    """Return the first stacks of `order`, the fewest with which `module` needs at most `limit`, or least."""

    @cache
    def memory(count: int) -> int:
        return _dropped(clone_alone(module), stacks, order[:count])

    counts = range(len(order) + 1)
    fitting = bisect_left(counts, -limit, key=lambda count: -memory(count))
    count = fitting if fitting < len(counts) else min(counts, key=memory)
    return _Try(order[:count], memory(count))


def _dropped(module: ModuleOp, stacks: Sequence[Stack], order: Sequence[DroppedStack]) -> int:
    """Drop or offload the stacks of `module` that are those of `order` in `stacks`; return the memory it then needs."""
    of_module = stacks_of(module)
    numbers = {stack: number for number, stack in enumerate(stacks)}
    offloaded, dropped = (
        [of_module[numbers[each.stack]] for each in order if each.is_offloaded is is_offloaded]
        for is_offloaded in (True, False)
    )
    channels = Channels(first_free_channel(operations(module)))
    offload(offloaded)
    drop(of_module, dropped, channels)
    return peak_bytes(module)


def _rematerialize_main(module: ModuleOp, limit: int, hardware: Hardware, before: int) -> Rematerialized:
    """Order the kernels of the main function of `module`, which needs `before` bytes, and recompute its values."""
    if before <= limit:
        return Rematerialized(before)
    timeline = KernelTimeline(module)
    seconds = timeline.seconds(operation_seconds(module, hardware))
    attempts: list[Rematerialized] = []
    for goal in _goals(limit, before, attempts):
        for each in _with_and_without_host(hardware):
            attempts += _attempts(module, timeline.outside, seconds, goal, each)
    best = min(attempts, key=lambda result: (max(result.memory, limit), result.seconds), default=None)
    if best is None or best.hardware is None or best.memory >= before:
        return Rematerialized(before)
    return _apply(module, seconds, best.target, best.length, best.hardware)


def _goals(limit: int, before: int, attempts: Sequence[Rematerialized]) -> Iterator[int]:
    """Yield the memory limits to try until `limit` is reached: it, the least memory of all `attempts`, and their mean.

    Copies are in memory beside each other, so that a program that recomputes fewer values may need less memory.
    """
    yield limit
    memory, least = _least(attempts, before), before
    while limit < memory < least:
        least = memory
        yield least
        memory = _least(attempts, before)
    if limit < memory < before:
        yield (limit + memory) // 2


def _least(attempts: Sequence[Rematerialized], before: int) -> int:
    return min((each.memory for each in attempts), default=before)


def _attempts(
    module: ModuleOp, outside: int, seconds: Sequence[float], limit: int, hardware: Hardware
) -> Iterator[Rematerialized]:
    """Recompute values of copies of `module` for several limits of the temporaries, and yield the results.

    Args:
        module: The program.
        outside: The bytes of arguments and results.
        seconds: The time of each kernel.
        limit: The most bytes that a device may use.
        hardware: The hardware.
    """
    for length in _LENGTHS:
        low, target, high = 0, limit - outside, limit
        step = int(limit * _MIN_STEP)
        least = limit + 1
        for _ in range(_MAX_ATTEMPTS):
            if not low < target < high:
                break
            result = _apply(clone_alone(module), seconds, target, length, hardware)
            yield result
            least = min(least, result.memory)
            fits = result.memory <= limit
            is_first = not low and high == limit
            if fits and (is_first or result.memory >= _CLOSE * limit):
                break
            if fits or not result.reaches_target:
                low, target = target, (target + high) // 2
            else:
                high = target
                target -= max(result.memory - limit, step)
                target = target if target > low else (low + high) // 2
                step *= 2
        if least <= limit:
            break


def _apply(module: ModuleOp, seconds: Sequence[float], target: int, length: int, hardware: Hardware) -> Rematerialized:
    """Order the kernels of `module`, and recompute or offload values until its temporaries need `target` bytes."""
    block = main_function(module).body.block
    timeline = KernelTimeline(module)
    plan = recomputation(timeline, seconds, target, hardware)
    values, offloaded = (
        grouped(
            Held(value, value_bytes(value), each.seconds)
            for value, each in plan.dropped.items()
            if each.is_offloaded is is_offloaded
        )
        for is_offloaded in (False, True)
    )
    saved = grouped(Held(value, value_bytes(value)) for value in _saved(timeline) if value not in plan.dropped)
    editor = KernelEditor(block, RECOMPUTES)
    copies = recompute(editor, timeline, plan)
    editor.erase_dead()
    editor = KernelEditor(block)
    order(editor, block, {*copies}, length)
    editor.erase_dead()
    paid = sum(each.seconds for each in plan.dropped.values())
    return Rematerialized(
        peak_bytes(module), values, offloaded, saved, paid, target, plan.reaches_limit, length, hardware
    )


def _saved(timeline: KernelTimeline) -> Iterator[SSAValue]:
    """Yield the temporaries of the forward pass that the backward pass reads."""
    in_backward_pass = {
        timeline.viewed(read)
        for kernel in timeline.kernels
        if is_in_backward_pass(kernel.operation)
        for read in kernel.reads
    }
    for value in timeline.ends:
        if value in in_backward_pass and isinstance(value.owner, Operation) and not is_in_backward_pass(value.owner):
            yield value
