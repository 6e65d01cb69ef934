"""Write a solution to the module that its snapshot was read from."""

from collections.abc import Sequence
from itertools import compress
from operator import is_not
from typing import cast

from xdsl.ir import SSAValue

from sdy.dialect.attributes import SHARDING, TensorShardingPerValueAttr
from sdy.dialect.shardings import set_func_arg_shardings, set_func_result_shardings, set_sharding
from sdy.ir.editing import erase
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.solution import Solution
from sdy.passes.propagation.step import Steps
from sdy.sharding import TensorSharding


def write(solution: Solution, binding: Binding, since: Solution | None = None) -> None:
    """Erase the dead operations of the module, and set the shardings of its tensors.

    Args:
        solution: The solution to write.
        binding: The operations and values of the module.
        since: The milestone of the solution that the module has now; None if it is unchanged since it was read.
    """
    for number in solution.erased if since is None else solution.erased[len(since.erased) :]:
        operation = binding.operations[number]
        operation.operands = ()
        erase(operation)
    shardings = solution.shardings
    before = _initial_shardings(solution.snapshot, solution.steps) if since is None else since.shardings
    is_changed = [*map(is_not, shardings, before)]
    for func, nodes in zip(binding.functions, solution.snapshot.functions, strict=True):
        if any(is_changed[node] for node in nodes.arguments):
            set_func_arg_shardings(func, [shardings[node] for node in nodes.arguments])
        if any(is_changed[node] for node in nodes.results):
            set_func_result_shardings(func, [shardings[node] for node in nodes.results])
        for node in (*nodes.arguments, *nodes.results):
            is_changed[node] = False
    # All other changed nodes have a value and a sharding: propagation never removes a sharding.
    values, changed = cast(Sequence[SSAValue], binding.values), cast(Sequence[TensorSharding], shardings)
    interned: dict[int, TensorShardingPerValueAttr] = {}
    for value, attributes, sharding in compress(zip(values, binding.attributes, changed, strict=True), is_changed):
        if attributes is None:
            set_sharding(value, sharding)
            continue
        # Equivalent to `set_sharding`, in a third of the time.
        attribute = interned.get(id(sharding))
        if attribute is None:
            attribute = interned[id(sharding)] = TensorShardingPerValueAttr.of((sharding,))
        attributes[SHARDING] = attribute


def _initial_shardings(snapshot: Snapshot, steps: Steps) -> Sequence[TensorSharding | None]:
    """Return the initial sharding of each node, interned as the solution's shardings are."""
    shardings: list[TensorSharding | None] = [None] * snapshot.num_nodes
    for node, sharding in snapshot.initial.items():
        shardings[node] = steps.shardings[steps.number(sharding)]
    return shardings
