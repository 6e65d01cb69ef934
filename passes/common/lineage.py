"""Lineage of values: the value that each one replaced, kept as a side table of the module.

A pass that replaces one operation by another records it here, so that explanations can trace values to the source.
"""

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.ir.companions import Copies, companion


@dataclass
class Lineage:
    """The predecessor of each value that replaced another."""

    predecessors: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def copied(self, copies: Copies) -> "Lineage":
        """Return the lineage of a copy of the module."""
        return Lineage({copies.of(new): copies.of(old) for new, old in self.predecessors.items()})


def succeed(module: ModuleOp, new: Operation, old: Operation) -> None:
    """Record that the results of `new` replace those of `old`."""
    companion(module, Lineage).predecessors.update(zip(new.results, old.results, strict=True))


def lineage_of(module: ModuleOp) -> Lineage:
    """Return the lineage of the values of `module`."""
    return companion(module, Lineage)
