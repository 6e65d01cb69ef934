"""What the four propagation passes share: read the module, propagate, write it back."""

from abc import abstractmethod
from dataclasses import dataclass
from itertools import compress
from operator import ne
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.dialect.attributes import SHARDING, SHARDING_RULE, OpShardingRuleAttr, TensorShardingPerValueAttr
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import set_func_arg_shardings, set_func_result_shardings, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations
from sdy.passes.propagation.fixed_point import FixedPoint
from sdy.passes.propagation.graph import Graph
from sdy.passes.propagation.provenance.debug_info import DebugInfo
from sdy.passes.propagation.provenance.history import Run, history_of
from sdy.passes.propagation.reader import read
from sdy.passes.propagation.sharding_groups import synchronize_groups
from sdy.passes.propagation.step import remembered_steps
from sdy.rules import sharding_rules
from sdy.sharding import TensorSharding


@dataclass(frozen=True)
class PropagationPass(AnalysisPreservingPass):
    """A pass that propagates shardings over a whole module.

    Raises DiagnosticError for tensors without a static shape, and for tuples.
    """

    keep_sharding_rules: bool = False
    """Keep the sharding rules that the module has, and those that propagation found."""
    module_dump_directory: str = ""
    """Where to save the module on the way; nowhere if empty."""
    conservative_propagation: bool = False
    """Propagate neither sub-axes nor axes that do not divide a dimension."""
    debug_sharding_origins: bool = False
    """Record in the module which sharding each axis comes from."""
    debug_propagation_edge_sharding: bool = False
    """Record in the module which step brought each axis."""

    @abstractmethod
    def propagate(self, state: FixedPoint, module: ModuleOp) -> None:
        """Bring `state`, read from `module`, to its fixed point."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        debug_info = DebugInfo(op, self.debug_sharding_origins, self.debug_propagation_edge_sharding)
        synchronize_groups(op)
        graph = read(op, self.conservative_propagation)
        state = FixedPoint(graph, remembered_steps(named_meshes(op)))
        self.propagate(state, op)
        write_shardings(state)
        if self.keep_sharding_rules:
            for rule_owner, rule in sharding_rules(operations(op), self.conservative_propagation):
                rule_owner.attributes[SHARDING_RULE] = rule
        else:
            _remove_rules(graph)
        history_of(op).runs.append(Run(state))
        debug_info.add_all(state)
        debug_info.write()


def write_shardings(state: FixedPoint) -> None:
    """Write the shardings that changed into the module."""
    graph, numbers, sharding = state.graph, state.numbers, state.sharding
    changed = {*compress(range(len(numbers)), map(ne, numbers, state.written))}
    for func, signature in graph.signatures.items():
        if not changed.isdisjoint(signature.arguments):
            set_func_arg_shardings(func, map(sharding, signature.arguments))
        if not changed.isdisjoint(signature.results):
            set_func_result_shardings(func, map(sharding, signature.results))
        changed.difference_update(signature.arguments, signature.results)
    # All other nodes have a place, and no sharding is ever taken away.
    places, shardings = cast(list[SSAValue], graph.places), cast(list[TensorSharding], state.steps.shardings)
    made: dict[int, TensorShardingPerValueAttr] = {}
    for node in changed:
        number, attributes = numbers[node], graph.attributes[node]
        if attributes is None:
            set_sharding(places[node], shardings[number])
            continue
        # As `set_sharding` does it, in a third of the time.
        attribute = made.get(number)
        if attribute is None:
            attribute = made[number] = TensorShardingPerValueAttr.of((shardings[number],))
        attributes[SHARDING] = attribute
    state.written = list(numbers)


def _remove_rules(graph: Graph) -> None:
    for op in graph.given_rules:
        rule = op.attributes.get(SHARDING_RULE)
        if isinstance(rule, OpShardingRuleAttr) and not rule.data.is_custom:
            del op.attributes[SHARDING_RULE]
