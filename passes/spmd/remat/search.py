"""Search for the values of a main function to recompute or offload, and for the order of its kernels.

Values are chosen for a limit of the temporaries if kernels run in the order of the module. XLA may run the kernels of a
segment in another order, so that smaller limits are tried where the prediction for the result is too high, as far as
there are values to drop. Shorter segments, and updates that run early, need less memory and leave XLA less freedom.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import RECOMPUTES
from sdy.ir.companions import clone_alone
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.kernels import source
from sdy.passes.spmd.remat.choice import Recomputation, recomputation
from sdy.passes.spmd.remat.early import run_early
from sdy.passes.spmd.remat.kernel_editor import KernelEditor
from sdy.passes.spmd.remat.kernel_timeline import KernelTimeline, operation_seconds
from sdy.passes.spmd.remat.order import order
from sdy.passes.spmd.remat.recompute import recompute
from sdy.passes.spmd.remat.recomputed import Held, ValueGroup, grouped, is_in_backward_pass

_MAX_TARGETS = 10
"""Maximum number of limits of the temporaries that are tried with one order of kernels."""

_CLOSE = 0.97
"""No other limits are tried once the memory is between this fraction of the limit and the limit."""

_MIN_STEP = 0.01
"""The least difference of the first two limits, as a fraction of the memory limit; it then doubles."""


class _Order(NamedTuple):
    """The freedom that barriers leave XLA to order kernels: the less, the less memory it needs.

    Attributes:
        length: The most kernels of a segment between barriers.
        most_beside: If kernels run as soon as that frees memory, the most segments beside which a collective runs, and
            all that depends on it; otherwise None.
    """

    length: int
    most_beside: int | None = None


_ORDERS = (_Order(16), _Order(4), _Order(4, 4), _Order(4, 1), _Order(4, 0))
"""The orders that are tried until the program fits."""


@dataclass(frozen=True)
class Rematerialized:
    """The result of rematerialization.

    Attributes:
        memory: The predicted peak memory in bytes.
        values: The values that are recomputed.
        offloaded: The values that are moved to the host and back.
        saved: The values that the forward pass saves for the backward pass.
        seconds: The estimated time of the recomputation and of exposed transfers in a step.
    """

    memory: int
    values: Sequence[ValueGroup] = ()
    offloaded: Sequence[ValueGroup] = ()
    saved: Sequence[ValueGroup] = ()
    seconds: float = 0.0


def with_and_without_host(hardware: Hardware) -> Sequence[Hardware]:
    """Return the hardware with and without its link to the host: offloaded values may be needed to recompute others."""
    return [hardware] if hardware.host is None else [hardware, replace(hardware, host=None)]


class _Attempt(NamedTuple):
    """A limit of the temporaries, an order and hardware for which values are chosen, and the result."""

    target: int
    order: _Order
    hardware: Hardware
    result: Rematerialized


def rematerialize_main(module: ModuleOp, limit: int, hardware: Hardware, before: int) -> Rematerialized:
    """Order the kernels of the main function and recompute or offload its values until a device needs `limit` bytes.

    The fastest choice that fits is taken, or else the one that needs the least memory.

    Args:
        module: The per-device program, which is changed.
        limit: The most bytes that a device may use.
        hardware: The hardware.
        before: The bytes that a device needs without changes.
    """
    if before <= limit:
        return Rematerialized(before)
    seconds = KernelTimeline(module).seconds(operation_seconds(module, hardware))
    attempts: list[_Attempt] = []
    for kernel_order in _ORDERS:
        for each in with_and_without_host(hardware):
            attempts += _attempts(module, seconds, limit, kernel_order, each)
        if any(each.result.memory <= limit for each in attempts):
            break
    best = min(attempts, key=lambda each: (max(each.result.memory, limit), each.result.seconds), default=None)
    if best is None or best.result.memory >= before:
        return Rematerialized(before)
    draft = _Draft(module, seconds, best.order)
    plan = draft.plan(best.target, best.hardware)
    assert plan is not None
    return draft.apply(plan)


def _attempts(
    module: ModuleOp, seconds: Sequence[float], limit: int, kernel_order: _Order, hardware: Hardware
) -> Iterator[_Attempt]:
    """Rematerialize copies of `module` for several limits of the temporaries, and yield the results.

    Args:
        module: The program.
        seconds: The time of each kernel.
        limit: The most bytes that a device may use.
        kernel_order: The order of the kernels.
        hardware: The hardware.
    """
    draft = _Draft(clone_alone(module), seconds, kernel_order)
    # Even if arguments and results need more than the limit, values are dropped until temporaries need the least.
    target = max(limit - draft.timeline.outside, 1)
    low, high = 0, max(draft.timeline.peak_bytes, limit + 1) - draft.timeline.outside
    step = int(limit * _MIN_STEP)
    is_first = True
    for _ in range(_MAX_TARGETS):
        if not low < target < high:
            break
        plan = draft.plan(target, hardware)
        if plan is None:
            low, target = target, (target + high) // 2
            continue
        result = draft.apply(plan)
        yield _Attempt(target, kernel_order, hardware, result)
        draft = _Draft(clone_alone(module), seconds, kernel_order)
        fits = result.memory <= limit
        if fits and (is_first or result.memory >= _CLOSE * limit):
            break
        is_first = False
        if fits:
            low, target = target, (target + high) // 2
        else:
            high = target
            target -= max(result.memory - limit, step)
            target = target if target > low else (low + high) // 2
            step *= 2


class _Draft:
    """A module that is to be rematerialized, with its kernels in an order.

    Args:
        module: The module, which is changed.
        seconds: The time of each kernel, before the order is changed.
        kernel_order: The order of the kernels.
    """

    def __init__(self, module: ModuleOp, seconds: Sequence[float], kernel_order: _Order) -> None:
        self._module = module
        self._order = kernel_order
        main = main_function(module)
        self._seconds = [seconds[time] for time in run_early(main)] if kernel_order.most_beside is not None else seconds
        self.timeline = KernelTimeline(module)

    def plan(self, target: int, hardware: Hardware) -> Recomputation | None:
        """Choose values with which temporaries need `target` bytes; None if there are too few."""
        return recomputation(self.timeline, self._seconds, target, hardware)

    def apply(self, plan: Recomputation) -> Rematerialized:
        """Recompute or offload the values of `plan`, and insert barriers between the kernels."""
        values, offloaded = (
            grouped(
                Held(value, value_bytes(value), each.seconds)
                for value, each in plan.dropped.items()
                if each.is_offloaded is is_offloaded
            )
            for is_offloaded in (False, True)
        )
        saved = grouped(Held(value, value_bytes(value)) for value in self._saved() if value not in plan.dropped)
        block = main_function(self._module).body.block
        editor = KernelEditor(block, RECOMPUTES)
        starts = {*recompute(editor, self.timeline, plan), *self._updates()}
        editor.erase_dead()
        editor = KernelEditor(block)
        order(editor, block, starts, self._order.length, self._order.most_beside)
        editor.erase_dead()
        seconds = sum(each.seconds for each in plan.dropped.values())
        return Rematerialized(peak_bytes(self._module, Backend.ACCELERATOR), values, offloaded, saved, seconds)

    def _saved(self) -> Iterator[SSAValue]:
        """Yield the temporaries of the forward pass that the backward pass reads."""
        in_backward_pass = {
            self.timeline.viewed(read)
            for kernel in self.timeline.kernels
            if is_in_backward_pass(kernel.operation)
            for read in kernel.reads
        }
        for value in self.timeline.ends:
            if (
                value in in_backward_pass
                and isinstance(value.owner, Operation)
                and not is_in_backward_pass(value.owner)
            ):
                yield value

    def _updates(self) -> Iterator[Operation]:
        """Yield the kernels that compute results: those before a barrier have read what these may overwrite."""
        returned = {self.timeline.viewed(source(value)) for value in self.timeline.kernels[-1].operation.operands}
        for kernel in self.timeline.kernels:
            if not returned.isdisjoint(kernel.operation.results):
                yield kernel.operation
