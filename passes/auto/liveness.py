"""Liveness: the number of live values of each node of a folded program over time."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.box import Ints
from sdy.passes.auto.overlap import Floats
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.buffer_assignment import allocate
from sdy.passes.spmd.costs.buffers import bytes_over_time
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.result_buffers import outside_results


@dataclass(frozen=True, eq=False)
class LiveCounts:
    """Numbers of live values of each node at some times, in the order of the operations in the program."""

    counts: Ints
    """The number of live values: shape (times, nodes)."""
    times: Ints
    """The position in the program of the operation that runs at each time."""
    materialized: Set[int]
    """The nodes with values that are written to memory, also to the buffers of results."""

    @cached_property
    def _changes(self) -> tuple[Ints, Ints, Ints]:
        """The times and the nodes at which counts change, and the changes: few, as most values are live for long."""
        changes = np.diff(self.counts, axis=0, prepend=0)
        times, nodes = changes.nonzero()
        return times, nodes, changes[times, nodes]

    def bytes_over_time(self, bytes_of_nodes: Floats) -> Floats:
        """Return the bytes of all live values at each time, given the bytes of one value of each node."""
        times, nodes, changes = self._changes
        return np.bincount(times, changes * bytes_of_nodes[nodes], len(self.times)).cumsum()


def peak_candidates(
    module: ModuleOp, num_nodes: int, node_of: Callable[[SSAValue], int], places: Mapping[int, int]
) -> LiveCounts:
    """Return the live values at each time that can be the memory peak.

    The buffers are those of `peak_bytes` for accelerators, without values on the host. Temporaries use the buffers of
    results as their unpartitioned sizes allow. For each class of equal operations, the result has the time at which
    the unpartitioned live values take the most bytes.

    Args:
        module: The module.
        num_nodes: The number of nodes.
        node_of: Returns the node of a value.
        places: The positions of the operations that run, by their `id`; others are skipped.
    """
    host = host_values(module)
    allocation = allocate(module, host, Backend.ACCELERATOR, lambda op: id(op) in places, copies=False)
    always = [each.value for each in (*allocation.arguments, *allocation.results) if each.value not in host]
    temporaries = [each for each in outside_results(allocation, value_bytes) if each.value not in host]
    bytes_ = bytes_over_time(temporaries, value_bytes, len(allocation.operations))
    most: dict[tuple[int, ...], int] = {}
    for time, op in enumerate(allocation.operations):
        kind = tuple(map(node_of, (*op.operands, *op.results)))
        if kind not in most or bytes_[most[kind]] < bytes_[time]:
            most[kind] = time
    times = sorted(most.values())
    counts = np.zeros((len(times), num_nodes), np.int64)
    for value in always:
        counts[:, node_of(value)] += 1
    for buffer in temporaries:
        for each in buffer.ranges:
            counts[bisect_left(times, each.begin) : bisect_right(times, each.end), node_of(each.value)] += 1
    materialized = {node_of(each.value) for buffer in allocation.buffers() for each in buffer.ranges}
    place_of = np.array([places[id(allocation.operations[time])] for time in times])
    order = np.argsort(place_of)
    return LiveCounts(counts[order], place_of[order], materialized)
