"""`sdy-prefetch-in-loops`: loop rotation of collectives, which then run in the iteration before."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.ir.companions import clone
from sdy.ir.editing import AnalysisPreservingPass, erase, insert
from sdy.ir.walking import operations, operations_of
from sdy.passes.common.loops import LoopInvariants, carry_too, loop_counters, loop_trips
from sdy.passes.common.memory_limit import limit_of
from sdy.passes.communication.predicted_gain import planned_hardware, predicted_seconds
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.local_module import COLLECTIVES, Channels, first_free_channel
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp

_GAIN = 0.005
"""The least part of the step time by which a prefetch must shorten it."""

_CHANNEL = "channel_handle"


@dataclass(frozen=True)
class PrefetchInLoopsPass(AnalysisPreservingPass):
    """Run a collective whose operand depends on the loop counter alone in the iteration before the one that uses it.

    Fully sharded layers in a loop gather their parameters so. Before, with four iterations::

        %0:2 = stablehlo.while(%i = %zero, %x = %arg1) : tensor<i32>, tensor<4x8xf32>
          ...
          %1 = stablehlo.dynamic_slice %stack, %i, %zero, sizes = [2, 8]
          %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
          %3 = stablehlo.dot_general %x, %2, ...
          stablehlo.return %next, %3 : tensor<i32>, tensor<4x8xf32>

    After::

        %0 = stablehlo.dynamic_slice %stack, %zero, %zero, sizes = [2, 8]
        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
        %2:3 = stablehlo.while(%i = %zero, %x = %arg1, %w = %1) : tensor<i32>, tensor<4x8xf32>, tensor<8x8xf32>
          ...
          %3 = stablehlo.add %i, %one
          %4 = stablehlo.dynamic_slice %stack, %3, %zero, sizes = [2, 8]
          %5 = "stablehlo.all_gather"(%4) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
          %6 = stablehlo.dot_general %x, %w, ...
          stablehlo.return %next, %6, %5 : tensor<i32>, tensor<4x8xf32>, tensor<8x8xf32>

    The collective runs once more than the loop has iterations, and the loop carries one more buffer. So the pass needs
    hardware on which iterations do not overlap by themselves (`pipelines_loops = false`), and prefetches what then
    shortens the step as predicted, while the program fits into `memory`. `hardware` is a preset or a file, by default
    the module's attribute `sdy.hardware`; `memory` is a size such as `2G`, by default the module's attribute
    `sdy.memory_limit`, or else the memory of the device. Unchanged are collectives that reduce, those in branches and
    of other carried values, and loops of fewer than two or an unknown number of iterations.
    """

    name = "sdy-prefetch-in-loops"
    hardware: str = ""
    memory: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        hardware = planned_hardware(op, self.hardware)
        if hardware is None or hardware.pipelines_loops:
            return
        limit, chosen = limit_of(op, self.memory, self.name), list[int]()
        memory = hardware.memory if limit is None else limit
        best = predicted_seconds(op, hardware)
        for number in range(len([*_prefetchable(op)])):
            changed = prefetch(clone(op), [*chosen, number])
            seconds = predicted_seconds(changed, hardware)
            if seconds < best * (1 - _GAIN) and peak_bytes(changed, hardware.backend) <= memory:
                chosen.append(number)
                best = seconds
        prefetch(op, chosen)


def prefetch(module: ModuleOp, numbers: Collection[int]) -> ModuleOp:
    """Prefetch some of the collectives that can be in place, by their numbers in program order; return the module."""
    values_of: dict[WhileOp, list[SSAValue]] = {}
    for number, (loop, value) in enumerate([*_prefetchable(module)]):
        if number in numbers:
            values_of.setdefault(loop, []).append(value)
    channels = Channels(first_free_channel(operations(module)))
    for loop, values in values_of.items():
        _rotate(loop, values, channels)
    return module


def _prefetchable(module: ModuleOp) -> Iterator[tuple[WhileOp, SSAValue]]:
    """Yield the results of collectives that depend on an iteration only by its number, with their loops."""
    for loop in operations_of(module, WhileOp):
        if (loop_trips(loop) or 0) > 1:
            counters = loop_counters(loop)
            for value, producers in _of_iteration(loop).items():
                reads_counter = any(operand in counters for each in producers for operand in each.operands)
                if reads_counter and isinstance(value.owner, COLLECTIVES):
                    yield loop, value


def _of_iteration(loop: WhileOp) -> Mapping[SSAValue, Sequence[Operation]]:
    """Return the results of collectives and barriers that invariants and counters determine, with their producers.

    The producers are in topological order, without barriers, whose results are their operands.
    """
    found: dict[SSAValue, Sequence[Operation]] = {}

    def find(result: SSAValue, operands: Sequence[SSAValue], last: Sequence[Operation]) -> None:
        own = LoopInvariants(loop, [*loop_counters(loop), *found]).producers(operands)
        if own is not None:
            read = [value for value in (*(each for op in own for each in op.operands), *operands) if value in found]
            found[result] = [*dict.fromkeys([*chain.from_iterable(map(found.__getitem__, read)), *own, *last])]

    for op in loop.body.block.ops:
        if isinstance(op, OptimizationBarrierOp):
            for operand, result in zip(op.operands, op.results, strict=True):
                find(result, [operand], [])
        elif isinstance(op, COLLECTIVES) and not op.regions and len(op.results) == 1:
            find(op.results[0], op.operands, [op])
    return found


def _rotate(loop: WhileOp, values: Sequence[SSAValue], channels: Channels) -> None:
    """Compute `values` before the loop for the first iteration, and in each iteration for the next one."""
    body, counters, found = loop.body.block, loop_counters(loop), _of_iteration(loop)
    invariants = LoopInvariants(loop, counters)
    producers = [*dict.fromkeys(chain.from_iterable(map(found.__getitem__, values)))]
    end = body.last_op
    assert end is not None
    assert body.first_op is not None

    begins = {argument: begin for argument, begin in zip(body.args, loop.operands, strict=True) if argument in counters}
    first = _copy(producers, {**invariants.initial_values, **begins}, InsertPoint.before(loop), channels)

    following = {
        argument: value for argument, value in zip(body.args, end.operands, strict=True) if argument in counters
    }
    counting = invariants.producers([*following.values()])
    assert counting is not None
    at = InsertPoint.before(body.first_op)
    counted = _copy(counting, {}, at, channels)
    then = _copy(producers, {argument: counted[value] for argument, value in following.items()}, at, channels)

    arguments = carry_too(loop, [first[each] for each in values], [then[each] for each in values])
    for value, argument in zip(values, arguments, strict=True):
        value.replace_all_uses_with(argument)
    for op in reversed(producers):
        if all(result.first_use is None for result in op.results):
            erase(op)


def _copy(
    ordered: Sequence[Operation], values: Mapping[Any, SSAValue], at: InsertPoint, channels: Channels
) -> Mapping[SSAValue, SSAValue]:
    """Insert copies of operations that read other `values`, and return the copy of each of their results."""
    mapped: dict[SSAValue, SSAValue] = {**values}
    for op in ordered:
        mapped.update(
            (each, mapped.get(behind, behind)) for each in op.operands if (behind := _behind(each, op)) != each
        )
        copied = op.clone(mapped)
        if _CHANNEL in copied.properties:
            copied.properties[_CHANNEL] = channels.next()
        insert(copied, at)
    return mapped


def _behind(value: SSAValue, user: Operation) -> SSAValue:
    """Return the operand of the barriers in the block of `user` whose result is `value`, or else `value`."""
    while isinstance(barrier := value.owner, OptimizationBarrierOp) and barrier.parent is user.parent:
        value = barrier.operands[barrier.results.index(value)]
    return value
