"""Operations that are checked with what they refer to: the shardings of values, the meshes of the module.

To ask for the sharding of a value, one has to know the operations that keep shardings. So the checks stand above the
operations, and come to `CHECKS` from there.
"""

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation
from xdsl.traits import SymbolUserOpInterface

CHECKS: dict[type[Operation], Callable[[Any], None]] = {}
"""What checks the operations of each class: the package fills it, so whoever has operations has these."""


class Verified(SymbolUserOpInterface):
    """The operation is checked by the entry of its class in `CHECKS`."""

    def verify(self, op: Operation) -> None:
        """Check `op`; DiagnosticError where it is wrong."""
        CHECKS[type(op)](op)
