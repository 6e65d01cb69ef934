"""The entry point through which the stock `xdsl-opt` finds the dialects and the passes of this project."""

from xdsl.ir import Dialect
from xdsl.universe import XDSL_UNIVERSE, Universe

from sdy.passes.catalog import PASSES


def _sdy() -> Dialect:
    from sdy.dialect import SDY

    return SDY


def _stablehlo() -> Dialect:
    from sdy.stablehlo import STABLEHLO

    return STABLEHLO


def _chlo() -> Dialect:
    from sdy.stablehlo.chlo import CHLO

    return CHLO


# xDSL has some of these names already, and refuses a second pass of the same name.
_PASSES = {name: load for name, load in PASSES.items() if name not in XDSL_UNIVERSE.all_passes}

SDY_UNIVERSE = Universe(all_dialects={"sdy": _sdy, "stablehlo": _stablehlo, "chlo": _chlo}, all_passes=_PASSES)
