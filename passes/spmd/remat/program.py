"""Rematerialization of a per-device program under a memory limit."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sdy.ir.companions import clone_alone
from sdy.ir.walking import operations
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.local_module import Channels, first_free_channel
from sdy.passes.spmd.remat.kernel_timeline import operation_seconds
from sdy.passes.spmd.remat.recomputed import Held, grouped
from sdy.passes.spmd.remat.search import Rematerialized, rematerialize_main, with_and_without_host
from sdy.passes.spmd.remat.stacks import Chains, DroppedStack, Stack, drop, offload, stacks_of


def rematerialize(module: ModuleOp, limit: int, hardware: Hardware) -> Rematerialized:
    """Order the kernels of `module` and recompute or offload values until it is predicted to need at most `limit`.

    The residuals that loops stack come first, then the values of the main function. If no choice fits, the one that
    needs the least memory is kept.

    Args:
        module: The per-device program, which is changed.
        limit: The most bytes that a device may use.
        hardware: The hardware, for the time of recomputation; values are offloaded over its link to the host.
    """
    before = peak_bytes(module, Backend.ACCELERATOR)
    if before <= limit:
        return Rematerialized(before)
    has_stacks = any(stack.reads for stack in stacks_of(module))
    dropped = _drop_stacks(module, limit, hardware) if has_stacks else Rematerialized(before)
    rest = rematerialize_main(module, limit, hardware, dropped.memory)
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
    orders = [Chains(stacks, seconds, each).order() for each in with_and_without_host(hardware)]
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
    return peak_bytes(module, Backend.ACCELERATOR)
