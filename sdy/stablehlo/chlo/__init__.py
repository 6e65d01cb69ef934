"""CHLO: operations of client programs that StableHLO does not have; a file for each family."""

from xdsl.ir import Dialect

from sdy.stablehlo.chlo import attributes, broadcast, creation, elementwise, ragged_dot, scan
from sdy.stablehlo.families import definitions

CHLO = Dialect("chlo", *definitions(creation, attributes, broadcast, elementwise, ragged_dot, scan))

__all__ = ["CHLO"]
