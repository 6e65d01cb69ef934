"""Partitioning of a module into the program of one device.

Each folder imports only the folders above it:

    shards/   shards of one tensor, without operations on them: layouts, halos, windows, reshaped dimensions
    reshard/  the collectives from one sharding of a tensor to another, and the elements that they receive
    plan/     the shardings in which an operation runs, and their cost; the planner, Shardy's or that of least
              communication, makes the choices
    emit/     operations written for a plan: reshards, exchanges, collectives, padding
    ops/      the partitioning of each family of operations, a file for each
    costs/    time and memory of the program of one device
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdy.passes.spmd.plan.planner import Planner


def planner_of(least_communication: bool, preserve_semantics: bool = True) -> "Planner":
    """Return the planner that these options of a pass select; the other one is not imported.

    The planner of least communication preserves semantics in any case.
    """
    if least_communication:
        from sdy.passes.spmd.least_communication import LeastCommunicationPlanner

        return LeastCommunicationPlanner()
    from sdy.passes.spmd.plan.planner import ShardyPlanner

    return ShardyPlanner(preserve_semantics)
