"""The jaxpr from which JAX lowered a program, kept beside its module."""

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.ir.companions import Copies, companion


@dataclass
class Trace:
    """The closed jaxpr of a module, or None if it is unknown, as for a parsed module."""

    jaxpr: Any = None

    def copied(self, copies: Copies) -> "Trace":
        """Return the same for a copy of the module."""
        return Trace(self.jaxpr)


def trace_of(module: ModuleOp) -> Trace:
    """Return the trace of a module."""
    return companion(module, Trace)
