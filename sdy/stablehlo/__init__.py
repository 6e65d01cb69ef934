"""StableHLO and CHLO, MLIR's dialects of machine learning programs, as xDSL dialects: a file for each family.

A program loads the families that it names. Code that works with a few operations imports them from the files of their
families; any can be had from here by the name of its MLIR class, which loads them all.

types/        what tensors and other values are
attributes/   what operations say besides their operands
syntax/       the pieces of syntax that operations share
checks/       what verifiers of several families check and infer
chlo/         the other dialect, CHLO
classes.py    all operations and attributes together
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdy.ir.families import FamilyDialect

if TYPE_CHECKING:
    from sdy.stablehlo.classes import *  # noqa: F403

STABLEHLO = FamilyDialect("stablehlo", __name__)


def __getattr__(name: str) -> Any:
    found = getattr(import_module(f"{__name__}.classes"), name, None) if name[0].isupper() else None
    if not getattr(found, "__module__", "").startswith(__name__):
        raise AttributeError(f"module '{__name__}' has no class '{name}'")
    return found
