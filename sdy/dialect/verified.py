"""Verification of operations in context: of the shardings of their values, and the meshes of the module.

Looking up the sharding of a value needs the operations that store shardings. The verifiers are therefore defined in
modules above the operations, and registered in `CHECKS`.
"""

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation
from xdsl.traits import SymbolUserOpInterface

CHECKS: dict[type[Operation], Callable[[Any], None]] = {}
"""Verifier of each class of operations, registered by the package, so that importing any operation registers all."""


class Verified(SymbolUserOpInterface):
    """Trait of operations that the entry of their class in `CHECKS` verifies."""

    def verify(self, op: Operation) -> None:
        """Raise DiagnosticError if `op` is invalid."""
        CHECKS[type(op)](op)
