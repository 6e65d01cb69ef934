"""Copies of the kernels that compute values again, before the first kernel that reads them.

%y = tanh %x                          %y = tanh %x
...                                   ...
%dx = f(%y, %dz)                      %1 = tanh %x
                                      %dx = f(%1, %dz)
"""

from collections import defaultdict

from xdsl.ir import Operation, SSAValue

from sdy.passes.spmd.remat.choice import Copy, Recomputation
from sdy.passes.spmd.remat.kernel_editor import KernelEditor
from sdy.passes.spmd.remat.kernel_timeline import KernelTimeline


def recompute(editor: KernelEditor, timeline: KernelTimeline, plan: Recomputation) -> list[Operation]:
    """Copy kernels, let the later reads use the copies, and return the operations that write the copied results."""
    starting: defaultdict[int, list[Copy]] = defaultdict(list)
    for kernel in sorted(plan.copies):
        for copy in plan.copies[kernel]:
            starting[copy.begin].append(copy)
    copied: dict[Copy, Operation] = {}

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
        for copy in starting[time]:
            copied[copy] = editor.copy(timeline.kernels[copy.kernel], inputs(copy.kernel, time), kernel.operation)
        if new := inputs(time, time):
            editor.replace(kernel, new)
    return [*copied.values()]
