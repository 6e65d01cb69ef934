"""`sdy-user-priority-propagate`: propagate the shardings of one priority after the other."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from sdy.axes import mesh_order
from sdy.mesh import Mesh
from sdy.passes.common.save_module import SaveModulePass
from sdy.passes.propagation.fixed_point import FixedPoint
from sdy.passes.propagation.op_priority_propagate import OpPriorityPropagatePass
from sdy.passes.propagation.propagation_pass import write_shardings
from sdy.sharding import DimSharding, TensorSharding
from sdy.text import context


@dataclass(frozen=True)
class UserPriorityPropagatePass(OpPriorityPropagatePass):
    """Propagate shardings in the order of the priorities that the user gave to dimensions, 0 first.

    Before::

        %0 = stablehlo.add %arg0, %arg1

    with `%arg0` sharded `[{"x"}p1, {}]` and `%arg1` sharded `[{}, {"x"}p0]`. After, `%0` is sharded `[{?}, {"x", ?}]`.

    A dimension is closed and empty, and its axes are replicated, until the turn of its priority comes. No priorities
    are left in the end.
    """

    name = "sdy-user-priority-propagate"

    dump_index: int = 0
    """The number that the files in `module_dump_directory`, one after each priority but the last, start with."""

    def propagate(self, state: FixedPoint, module: ModuleOp) -> None:
        given = state.graph.given
        ranked = {each for each in set(given.values()) if any(dim.priority is not None for dim in each.dims)}
        for node, sharding in given.items():
            if sharding in ranked:
                state.assign(node, _initial(sharding, state.steps.mesh_of(sharding)))
        super().propagate(state, module)
        done = 0
        for priority in sorted({priority for sharding in ranked for priority in _later_priorities(sharding)}):
            if self.module_dump_directory:
                write_shardings(state)
                name = f"propagation_after_user_priority_{done}"
                SaveModulePass(self.module_dump_directory, name, self.dump_index).apply(context(), module)
            for node, sharding in given.items():
                present = state.sharding(node)
                if present is not None and priority in _later_priorities(sharding):
                    state.assign(node, _with_priority(present, sharding, priority))
            super().propagate(state, module)
            done = priority


def _later_priorities(sharding: TensorSharding) -> Iterator[int]:
    return (dim.priority_or_default for dim in sharding.dims if dim.priority_or_default)


def _initial(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """`sharding` without the dimensions of later priorities, whose axes are kept from being used elsewhere."""
    later = [axis for dim in sharding.dims if dim.priority_or_default for axis in dim.axes]
    return replace(
        sharding,
        dims=tuple(DimSharding() if dim.priority_or_default else replace(dim, priority=None) for dim in sharding.dims),
        replicated=tuple(sorted([*sharding.replicated, *later], key=mesh_order(mesh))),
    )


def _with_priority(present: TensorSharding, given: TensorSharding, priority: int) -> TensorSharding:
    """`present` with the dimensions of `priority` as they were given."""
    due = [dim.priority_or_default == priority for dim in given.dims]
    axes = {axis for dim, is_due in zip(given.dims, due, strict=True) if is_due for axis in dim.axes}
    return replace(
        present,
        dims=tuple(
            replace(old, priority=None) if is_due else new
            for old, new, is_due in zip(given.dims, present.dims, due, strict=True)
        ),
        replicated=tuple(axis for axis in present.replicated if axis not in axes),
    )
