"""The CHLO dialect, one file per family of operations."""

from sdy.ir.families import FamilyDialect

CHLO = FamilyDialect("chlo", __name__)
