"""The base class of the propagation passes: read a snapshot of the module, solve it, write the solution."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.attributes import SHARDING_RULE
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.provenance.debug_info import DebugInfo
from sdy.passes.propagation.provenance.history import PropagationRun, history_of
from sdy.passes.propagation.reading.reader import read
from sdy.passes.propagation.sharding_groups import synchronize_groups
from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.solution import Solution
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.writing import write
from sdy.rules import remove_sharding_rules, sharding_rules
from sdy.sharding import TensorSharding


@dataclass(frozen=True)
class PropagationPass(AnalysisPreservingPass):
    """A pass that propagates shardings through a module.

    Raises:
        DiagnosticError: A tensor has a dynamic shape, or a value is a tuple.
    """

    keep_sharding_rules: bool = False
    """Attach to each operation the sharding rule that propagation used, and keep the rules of the module."""
    module_dump_directory: str = ""
    """The directory to which intermediate modules are saved; empty to save none."""
    conservative_propagation: bool = False
    """Propagate neither sub-axes nor axes that do not divide a dimension."""
    debug_sharding_origins: bool = False
    """Record in the module from which of the user's shardings each axis comes."""
    debug_propagation_edge_sharding: bool = False
    """Record in the module which step propagated each axis, and along which edge."""

    @abstractmethod
    def propagate(self, solver: Solver) -> None:
        """Run `solver` to its fixed point."""

    def solve(self, snapshot: Snapshot, initial: Mapping[int, TensorSharding | None] | None = None) -> Solution:
        """Return the shardings of the nodes of `snapshot` after propagation.

        Args:
            snapshot: The module's snapshot. It is not changed, and can be solved again.
            initial: Initial shardings of nodes, which override those of the module; None removes a sharding.
        """
        solver = Solver(snapshot, initial)
        self.propagate(solver)
        return solver.solution()

    def write(self, solution: Solution, binding: Binding, module: ModuleOp) -> None:
        """Write `solution` into `module`."""
        write(solution, binding)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        debug_info = DebugInfo(op, self.debug_sharding_origins, self.debug_propagation_edge_sharding)
        synchronize_groups(op)
        snapshot, binding = read(op, self.conservative_propagation)
        solution = self.solve(snapshot)
        self.write(solution, binding, op)
        if self.keep_sharding_rules:
            for rule_owner, rule in sharding_rules(operations(op), self.conservative_propagation):
                rule_owner.attributes[SHARDING_RULE] = rule
        else:
            remove_sharding_rules(binding.rule_owners)
        history_of(op).runs.append(PropagationRun(solution, binding))
        debug_info.add_all(solution, binding)
        debug_info.write()
