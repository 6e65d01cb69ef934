"""The memory of a per-device program and the reads of each value, by the number of the kernel that runs."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.box import Ints
from sdy.dialect.meshes import device_count, named_meshes
from sdy.interpreter.grid import Grid
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.buffer_assignment import allocate
from sdy.passes.spmd.costs.buffers import Allocation, bytes_over_time
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.in_place import is_placement, views
from sdy.passes.spmd.costs.kernels import can_be_fused, source
from sdy.passes.spmd.costs.layout_copies import layout_copies
from sdy.passes.spmd.costs.network import Network
from sdy.passes.spmd.costs.result_buffers import outside_results
from sdy.passes.spmd.costs.step_time import axes_of, compute_times, message_of


class KernelTimeline:
    """The kernels of a main function in the order in which they run, and the values that they write and read.

    A time is the index of a kernel. A view has no memory: it is read with the value that it is a view of.

    Attributes:
        kernels: The kernels.
        number: The time at which each kernel's operation runs.
        bytes: The bytes of the temporaries at each time.
        own_bytes: The bytes of these that are in no use before the kernel runs: of its results, and of copies in other
            layouts.
        outside: The bytes of the arguments and results, which are live during the entire run.
        ends: For each temporary, the last time at which it is in memory.
    """

    def __init__(self, module: ModuleOp) -> None:
        host = host_values(module)
        allocation = allocate(module, host, Backend.ACCELERATOR, in_order=True)
        begins = allocation.begins
        self._block = main_function(module).body.block

        def size(value: SSAValue) -> int:
            return 0 if value in host else value_bytes(value)

        temporaries = outside_results(allocation, size)
        bytes_ = bytes_over_time(temporaries, size, len(allocation.operations))
        self.bytes: Ints = np.maximum.reduceat(bytes_, begins) if begins else bytes_
        self.own_bytes: Ints = np.zeros_like(self.bytes)
        starting = {begin: time for time, begin in enumerate(begins)}
        for buffer in temporaries:
            ends = {each.end for each in buffer.ranges}
            for each in buffer.ranges:
                if each.begin in starting and each.begin - 1 not in ends:
                    self.own_bytes[starting[each.begin]] += size(buffer.value)
        self.outside = sum(size(each.value) for each in (*allocation.arguments, *allocation.results))
        self.kernels = allocation.kernels
        self.number: dict[Operation | Block, int] = {kernel.operation: time for time, kernel in enumerate(self.kernels)}
        self._viewed = {result: value for kernel in self.kernels for value, result in views(kernel)}
        self._overwritten = _overwritten(allocation)
        self._views: defaultdict[SSAValue, list[SSAValue]] = defaultdict(list)
        for view in self._viewed:
            self._views[self.viewed(view)].append(view)
        self._last_read = {
            self.viewed(value): time for time, kernel in enumerate(self.kernels) for value in kernel.reads
        }
        self.ends: dict[SSAValue, int] = {}
        for each in (each for buffer in temporaries for each in buffer.ranges):
            if each.value.owner in self.number and size(each.value):
                end = bisect_right(begins, each.end) - 1
                self.ends[each.value] = max(end, self.ends.get(each.value, 0))  # copies in other layouts end earlier

    @property
    def peak_bytes(self) -> int:
        """The peak memory in bytes, arguments and results included."""
        return self.outside + int(self.bytes.max(initial=0))

    def viewed(self, value: SSAValue) -> SSAValue:
        """Return the value that `value` is a view of, or `value`."""
        while value in self._viewed:
            value = self._viewed[value]
        return value

    def names_of(self, value: SSAValue) -> Sequence[SSAValue]:
        """Return `value`, which is no view, and its views."""
        return value, *self._views[value]

    def is_kept(self, value: SSAValue, time: int) -> bool:
        """Return whether `value`, or the argument or temporary that it is a view of, is in memory at `time`."""
        value = self.viewed(value)
        if isinstance(value, BlockArgument) and value not in self._overwritten:
            return True
        return time <= self._last_read.get(value, -1)

    def is_reordered(self, value: SSAValue, time: int) -> bool:
        """Return whether the kernel at `time` reads `value` in another layout, which a copy for it alone can write."""
        owner = value.owner
        can_write = isinstance(owner, Operation) and can_be_fused(owner)
        return can_write and any(source(each) is value for each in layout_copies(self.kernels[time].operation))

    def operations_of(self, time: int) -> Iterator[Operation]:
        """Yield the operations that the kernel at `time` computes."""
        kernel = self.kernels[time]
        reads = {*kernel.reads}
        pending, visited = [kernel.operation], {kernel.operation}
        while pending:
            op = pending.pop()
            yield op
            for operand in map(source, op.operands):
                owner = operand.owner
                if operand not in reads and isinstance(owner, Operation) and owner not in visited:
                    visited.add(owner)
                    pending.append(owner)

    def seconds(self, seconds_of: Mapping[Operation, float]) -> list[float]:
        """Return the time of each kernel, from the times of the operations."""
        of_operation: defaultdict[Operation, float] = defaultdict(float)
        for op, seconds in seconds_of.items():
            of_operation[self._ancestor(op)] += seconds
        return [sum(of_operation[op] for op in self.operations_of(time)) for time in range(len(self.kernels))]

    def _ancestor(self, op: Operation) -> Operation:
        """Return the operation of the main function in which `op` is nested."""
        while op.parent is not self._block and (parent := op.parent_op()) is not None:
            op = parent
        return op


def operation_seconds(module: ModuleOp, hardware: Hardware) -> Mapping[Operation, float]:
    """Estimate the time of each operation in a step, communication included, transfers to the host and back not."""
    of_operation: defaultdict[Operation, float] = defaultdict(float)
    for op, seconds in compute_times(module, hardware):
        of_operation[op] += 0.0 if is_placement(op) else seconds
    meshes = [mesh for mesh in named_meshes(module).values() if mesh.axes]
    if meshes:
        grid, mesh = Grid(1, device_count(module)), meshes[0]
        network = Network(mesh, hardware)
        for each in received(module):
            message = message_of(each, axes_of(each.collective, grid, mesh))
            of_operation[each.collective] += network.seconds(message)
    return of_operation


def _overwritten(allocation: Allocation) -> set[SSAValue]:
    """Return the donated arguments whose buffers results take over."""
    return {buffer.value for buffer in allocation.aliased}
