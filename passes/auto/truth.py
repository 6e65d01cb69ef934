"""What a layout comes to when the module is propagated and partitioned with it: what a device would run."""

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import capture
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import func_result_sharding, set_func_arg_sharding, set_func_result_sharding
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import partition, propagate
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import StepCost, step_cost
from sdy.sharding import TensorSharding

ArgumentShardings = Mapping[int, TensorSharding]
"""The shardings of some arguments of the main function, by their index."""


def write_shardings(module: ModuleOp, shardings: ArgumentShardings) -> None:
    """Give arguments of the main function of `module` these shardings, and their next values, if it returns these."""
    main = main_function(module)
    state = find_state(main)
    for index, sharding in shardings.items():
        set_func_arg_sharding(main, index, sharding)
        if index in state and func_result_sharding(main, state[index]) is None:
            set_func_result_sharding(main, state[index], sharding)


def true_cost(module: ModuleOp, shardings: ArgumentShardings, mesh_name: str, hardware: Hardware) -> StepCost:
    """What a step of `module`, which stays as it is, costs when its arguments have `shardings`."""
    local = module.clone()
    write_shardings(local, shardings)
    mesh = named_meshes(local)[mesh_name]
    with capture():
        propagate(local)
        partition(local)
    return step_cost(local, mesh, hardware)
