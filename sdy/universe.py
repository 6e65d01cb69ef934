"""The entry point through which the stock `xdsl-opt` finds the dialects and the passes of this project."""

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe


def _sdy() -> Dialect:
    from sdy.dialect import SDY

    return SDY


def _stablehlo() -> Dialect:
    from sdy.stablehlo import STABLEHLO

    return STABLEHLO


def _chlo() -> Dialect:
    from sdy.stablehlo import CHLO

    return CHLO


def _passes() -> dict[str, Callable[[], type[ModulePass]]]:
    from sdy.passes.catalog import PASSES

    # xDSL has some of these names already, and refuses a second pass of the same name.
    return {name: load for name, load in PASSES.items() if name not in XDSL_UNIVERSE.all_passes}


SDY_UNIVERSE = Universe(all_dialects={"sdy": _sdy, "stablehlo": _stablehlo, "chlo": _chlo}, all_passes=_passes())
