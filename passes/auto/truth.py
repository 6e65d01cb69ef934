"""What a layout comes to when the module is propagated and partitioned with it: what a device would run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import Diagnostic, capture
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import func_result_sharding, set_func_arg_sharding, set_func_result_sharding, set_sharding
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
    """What is written into a module for a layout."""

    arguments: Mapping[int, TensorSharding]
    """The shardings of arguments of the main function, by their index."""
    results: Mapping[int, TensorSharding] = field(default_factory=dict[int, TensorSharding])
    """The shardings of results of operations, by their index in `choosable_results`."""

    def write(self, module: ModuleOp) -> None:
        """Give the arguments, their next values if the main function returns these, and the results their shardings."""
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
class Truth:
    """What came of a layout."""

    cost: StepCost
    reported: Sequence[Diagnostic]
    """What propagation had to say."""


def truth_of(module: ModuleOp, layout: LayoutOfModule, mesh_name: str, hardware: Hardware) -> Truth:
    """What a step of `module`, which stays as it is, costs with `layout`."""
    local = clone(module)
    layout.write(local)
    mesh = named_meshes(local)[mesh_name]
    with capture() as reported:
        propagate(local)
    with capture():
        partition(local)
    return Truth(step_cost(local, mesh, hardware), reported)
