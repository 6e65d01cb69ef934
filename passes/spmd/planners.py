"""Choice of the planner; the planner of least communication is imported only if it is chosen."""

from sdy.passes.spmd.plan.planner import Planner, ShardyPlanner


def planner_of(least_communication: bool) -> Planner:
    """Return the planner that the option `least-communication` of a pass selects."""
    if least_communication:
        from sdy.passes.spmd.least_communication import LeastCommunicationPlanner

        return LeastCommunicationPlanner()
    return ShardyPlanner()
