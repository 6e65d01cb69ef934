"""CHLO: operations of client programs that StableHLO does not have; a file for each family."""

from sdy.ir.families import FamilyDialect

CHLO = FamilyDialect("chlo", __name__)
