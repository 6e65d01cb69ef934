"""StableHLO and CHLO as xDSL dialects, one file per family of operations.

Parsing a program loads only the families that it uses. Import a few operations from the files of their families; any
operation is also available from here by the name of its MLIR class, which loads all families.

types/        element types, tensor types, quantized, sparse and bounded types
attributes/   enumerations, dimension numbers, windows, replica groups
syntax/       directives of the assembly formats
checks/       checks and type inference shared by several verifiers
chlo/         the CHLO dialect
classes.py    all operations and attributes
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdy.ir.lazy_dialects import LazyDialect

if TYPE_CHECKING:
    from sdy.stablehlo.classes import *  # noqa: F403

STABLEHLO = LazyDialect("stablehlo", __name__)


def __getattr__(name: str) -> Any:
    cls = getattr(import_module(f"{__name__}.classes"), name, None) if name[0].isupper() else None
    if not getattr(cls, "__module__", "").startswith(__name__):
        raise AttributeError(f"module '{__name__}' has no class '{name}'")
    return cls
