"""`sdy-user-priority-propagate`: propagate the shardings of one user priority after the other."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from sdy.axes import mesh_order
from sdy.mesh import Mesh
from sdy.passes.common.save_module import save_module
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.op_priority_propagate import OpPriorityPropagatePass
from sdy.passes.propagation.solution import Solution
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.writing import write
from sdy.sharding import DimSharding, TensorSharding


@dataclass(frozen=True)
class UserPriorityPropagatePass(OpPriorityPropagatePass):
    """Propagate dimension shardings in the order of their user priorities, 0 first.

    Before::

        %0 = stablehlo.add %arg0, %arg1

    with `%arg0` sharded `[{"x"}p1, {}]` and `%arg1` sharded `[{}, {"x"}p0]`. After, `%0` is sharded `[{?}, {"x", ?}]`.

    Until its priority is reached, a dimension is closed and empty, and its axes are explicitly replicated. The pass
    removes all priorities.
    """

    name = "sdy-user-priority-propagate"

    dump_index: int = 0
    """The prefix of the file names in `module_dump_directory`, to which the pass saves the module after each priority
    but the last."""

    def propagate(self, solver: Solver) -> None:
        self.propagate_first(solver)
        last_priority = 0
        for priority in later_priorities(solver.initial.values()):
            solver.add_milestone(last_priority)
            self.propagate_priority(solver, priority)
            last_priority = priority

    def propagate_first(self, solver: Solver) -> None:
        """Propagate the dimension shardings of priority 0."""
        initial = solver.initial
        ranked = {each for each in set(initial.values()) if any(dim.priority is not None for dim in each.dims)}
        for node, sharding in initial.items():
            if sharding in ranked:
                solver.assign(node, _initial(sharding, solver.steps.mesh_of(sharding)))
        super().propagate(solver)

    def propagate_priority(self, solver: Solver, priority: int) -> None:
        """Restore the dimension shardings of a priority after 0, and propagate them."""
        for node, sharding in solver.initial.items():
            present = solver.sharding(node)
            if present is not None and priority in _later_priorities(sharding):
                solver.assign(node, _with_priority(present, sharding, priority))
        super().propagate(solver)

    def write(self, solution: Solution, binding: Binding, module: ModuleOp) -> None:
        written = None
        for priority, milestone in solution.milestones if self.module_dump_directory else ():
            write(milestone, binding, since=written)
            written = milestone
            name = f"propagation_after_user_priority_{priority}"
            save_module(module, self.module_dump_directory, name, self.dump_index)
        write(solution, binding, since=written)


def later_priorities(shardings: Iterable[TensorSharding]) -> list[int]:
    """Return the priorities after 0 of dimension shardings in order."""
    return sorted({priority for sharding in set(shardings) for priority in _later_priorities(sharding)})


@lru_cache(2**12)
def _later_priorities(sharding: TensorSharding) -> tuple[int, ...]:
    return tuple([dim.priority_or_default for dim in sharding.dims if dim.priority_or_default])


@lru_cache(2**12)
def _initial(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Remove the dimension shardings of priorities after 0; their axes are replicated so that none propagates."""
    later = [axis for dim in sharding.dims if dim.priority_or_default for axis in dim.axes]
    return replace(
        sharding,
        dims=tuple(DimSharding() if dim.priority_or_default else replace(dim, priority=None) for dim in sharding.dims),
        replicated=tuple(sorted([*sharding.replicated, *later], key=mesh_order(mesh))),
    )


@lru_cache(2**14)
def _with_priority(present: TensorSharding, initial: TensorSharding, priority: int) -> TensorSharding:
    """Restore the dimension shardings of `priority` from `initial`."""
    due = [dim.priority_or_default == priority for dim in initial.dims]
    axes = {axis for dim, is_due in zip(initial.dims, due, strict=True) if is_due for axis in dim.axes}
    return replace(
        present,
        dims=tuple(
            replace(old, priority=None) if is_due else new
            for old, new, is_due in zip(initial.dims, present.dims, due, strict=True)
        ),
        replicated=tuple(axis for axis in present.replicated if axis not in axes),
    )
