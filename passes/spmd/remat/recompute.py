"""Copies of the kernels that compute values again, before the first kernel that reads them, and transfers of others.

%y = tanh %x                          %y = tanh %x                %0 = custom_call @annotate_device_placement(%y)
...                                   ...                         ...
%dx = f(%y, %dz)                      %1 = tanh %x                %1 = custom_call @annotate_device_placement(%0)
                                      %dx = f(%1, %dz)            %dx = f(%1, %dz)
"""

from collections import defaultdict

from xdsl.ir import Operation, SSAValue

from sdy.passes.spmd.costs.host_memory import DEVICE, HOST
from sdy.passes.spmd.remat.choice import Copy, Recomputation
from sdy.passes.spmd.remat.kernel_editor import KernelEditor
from sdy.passes.spmd.remat.kernel_timeline import KernelTimeline


def recompute(editor: KernelEditor, timeline: KernelTimeline, plan: Recomputation) -> list[Operation]:
    """Copy kernels or move their results to the host and back, and let the later reads use the copies.

    Returns:
        The operations that write the copied results, and the first readers of those that are moved back: they wait
        for the transfer, but the operations before them do not.
    """
    starting: defaultdict[int, list[Copy]] = defaultdict(list)
    leaving: defaultdict[int, list[Copy]] = defaultdict(list)
    for kernel in sorted(plan.copies):
        for copy in plan.copies[kernel]:
            starting[copy.begin].append(copy)
            if copy.transfer is not None:
                leaving[copy.transfer.gone].append(copy)
    copied: dict[Copy, Operation] = {}
    on_host: dict[Copy, Operation] = {}
    waiting: list[Operation] = []

    def inputs(kernel: int, time: int) -> dict[SSAValue, SSAValue]:
        """Return the copies that `kernel` reads at `time`, by the values that they replace."""
        new: dict[SSAValue, SSAValue] = {}
        for value in timeline.kernels[kernel].reads:
            if not plan.is_kept(value, time, timeline):
                owner = value.owner
                assert isinstance(owner, Operation)
                copy = plan.copy_at(timeline.number[owner], time)
                assert copy is not None
                new[value] = copied[copy].results[owner.results.index(value)]
        return new

    for time, kernel in enumerate(timeline.kernels):
        for copy in leaving[time]:
            (value,) = timeline.kernels[copy.kernel].operation.results
            on_host[copy] = editor.move(value, HOST, kernel.operation)
        for copy in starting[time]:
            if copy.transfer is not None:
                copied[copy] = editor.move(on_host[copy].results[0], DEVICE, kernel.operation)
                waiting.append(timeline.kernels[copy.transfer.end].operation)
                continue
            copied[copy] = editor.copy(timeline.kernels[copy.kernel], inputs(copy.kernel, time), kernel.operation)
        if new := inputs(time, time):
            editor.replace(kernel, new)
    return [*copied.values(), *waiting]
