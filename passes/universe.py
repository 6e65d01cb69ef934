"""The `xdsl.universe` entry point, through which `xdsl-opt` finds the dialects and passes of this project."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from importlib.metadata import entry_points
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, ParameterListType
from xdsl.utils.exceptions import DiagnosticException

from sdy.diagnostics import DiagnosticError
from sdy.foreign_dialects import adopt
from sdy.passes.catalog import PASSES
from sdy.passes.options import create_pass

T = TypeVar("T")

NAME = "sdy"
"""The name of the entry point."""


def _sdy() -> Dialect:
    from sdy.dialect import SDY

    return SDY


def _stablehlo() -> Dialect:
    from sdy.stablehlo import STABLEHLO

    return STABLEHLO


def _chlo() -> Dialect:
    from sdy.stablehlo.chlo import CHLO

    return CHLO


def for_xdsl_opt(load: Callable[[], type[ModulePass]]) -> Callable[[], type[ModulePass]]:
    """Wrap a pass loader: the pass converts operations of other packages, and raises xDSL's exceptions."""

    def loaded() -> type[ModulePass]:
        pass_class = load()

        def apply(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
            try:
                adopt(op)
                pass_class.apply(self, ctx, op)
            except DiagnosticError as problem:
                raise DiagnosticException(str(problem)) from None

        def from_spec(cls: type[ModulePass], spec: ArgSpec) -> ModulePass:
            parsed = create_pass(
                spec.name, {name.replace("_", "-"): _text(values) for name, values in spec.parameters.items()}
            )
            return cls(**{field.name: getattr(parsed, field.name) for field in fields(parsed)})

        parts = {"apply": apply, "from_spec": classmethod(from_spec), "__doc__": pass_class.__doc__}
        return type(pass_class.__name__, (pass_class,), parts)

    return loaded


def _text(values: ParameterListType) -> str | None:
    """Return the text of an option, from the values that xDSL parsed."""
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values) or None


def universe(others: Iterable[Universe]) -> Universe:
    """Return the dialects and passes whose names `others` do not define: xDSL rejects duplicate names.

    So `xdsl-opt` runs xDSL's `canonicalize`, and parses StableHLO with xdsl-jax if that is installed.
    """
    others = list(others)
    passes = {name: for_xdsl_opt(load) for name, load in PASSES.items()}
    return Universe(
        all_dialects=_without(
            {"sdy": _sdy, "stablehlo": _stablehlo, "chlo": _chlo}, *(other.all_dialects for other in others)
        ),
        all_passes=_without(passes, *(other.all_passes for other in others)),
    )


def _without(named: dict[str, T], *excluded: Iterable[str]) -> dict[str, T]:
    return {name: value for name, value in named.items() if not any(name in names for names in excluded)}


def _others() -> Iterable[Universe]:
    return [entry.load() for entry in entry_points(group="xdsl.universe") if entry.name != NAME]


SDY_UNIVERSE = universe(_others())
