"""Which value stood where a value stands now, for those who ask where it comes from.

A pass that makes one operation of another says so here; it is kept with the module.
"""

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.ir.companions import Copies, companion


@dataclass
class Lineage:
    """The value that stood where each value stands now, of those that took the place of another."""

    predecessors: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def copied(self, copies: Copies) -> "Lineage":
        """The lineage of a copy of the module."""
        return Lineage({copies.of(new): copies.of(old) for new, old in self.predecessors.items()})


def succeed(module: ModuleOp, new: Operation, old: Operation) -> None:
    """The results of `new`, in `module`, take the places of those of `old`."""
    companion(module, Lineage).predecessors.update(zip(new.results, old.results, strict=True))


def lineage_of(module: ModuleOp) -> Lineage:
    """Which values of `module` took the places of others."""
    return companion(module, Lineage)
