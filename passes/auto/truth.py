"""Cost of a layout on the propagated and partitioned module, as opposed to its estimate on the folded program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import Diagnostic, capture
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import (
    func_arg_shardings,
    func_result_sharding,
    get_sharding,
    set_func_arg_sharding,
    set_func_result_sharding,
    set_sharding,
)
from sdy.ir.companions import clone
from sdy.passes.auto.origins import choosable_results
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import partition, propagate
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import StepCost, step_cost
from sdy.sharding import TensorSharding


@dataclass(frozen=True)
class LayoutOfModule:
    """Shardings that a layout writes into a module."""

    arguments: Mapping[int, TensorSharding]
    """The shardings of arguments of the main function, by index."""
    results: Mapping[int, TensorSharding] = field(default_factory=dict[int, TensorSharding])
    """The shardings of results of operations, by index in `choosable_results`."""

    @classmethod
    def of(cls, module: ModuleOp) -> "LayoutOfModule":
        """Return the shardings in `module`."""
        arguments, results = func_arg_shardings(main_function(module)), map(get_sharding, choosable_results(module))
        return cls(
            {index: sharding for index, sharding in enumerate(arguments) if sharding is not None},
            {number: sharding for number, sharding in enumerate(results) if sharding is not None},
        )

    def write(self, module: ModuleOp) -> None:
        """Write the shardings of arguments, of the next values of state arguments, and of operation results."""
        main = main_function(module)
        state = find_state(main)
        for index, sharding in self.arguments.items():
            set_func_arg_sharding(main, index, sharding)
            if index in state and func_result_sharding(main, state[index]) is None:
                set_func_result_sharding(main, state[index], sharding)
        results = choosable_results(module) if self.results else ()
        for number, sharding in self.results.items():
            set_sharding(results[number], sharding)


@dataclass(frozen=True)
class PartitionedCost:
    """Cost of a partitioned module, with the diagnostics of its propagation."""

    cost: StepCost
    reported: Sequence[Diagnostic]
    """The diagnostics that propagation reported."""


def truth_of(module: ModuleOp, layout: LayoutOfModule, mesh_name: str, hardware: Hardware) -> PartitionedCost:
    """Propagate and partition a copy of `module` with `layout`, and return the cost of a step."""
    local = clone(module)
    layout.write(local)
    mesh = named_meshes(local)[mesh_name]
    with capture() as reported:
        propagate(local)
    with capture():
        partition(local)
    return PartitionedCost(step_cost(local, mesh, hardware), reported)
