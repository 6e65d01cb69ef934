"""The entry point through which the stock `xdsl-opt` finds the dialects and the passes of this project."""

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
from sdy.passes.options import pass_called

T = TypeVar("T")

NAME = "sdy"
"""How the entry point is called."""


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
    """A loader of the same pass that takes operations of other packages, and whose errors are those of xDSL."""

    def loaded() -> type[ModulePass]:
        pass_class = load()

        def apply(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
            try:
                adopt(op)
                pass_class.apply(self, ctx, op)
            except DiagnosticError as problem:
                raise DiagnosticException(str(problem)) from None

        def from_spec(cls: type[ModulePass], spec: ArgSpec) -> ModulePass:
            made = pass_called(
                spec.name, {name.replace("_", "-"): _text(values) for name, values in spec.parameters.items()}
            )
            return cls(**{field.name: getattr(made, field.name) for field in fields(made)})

        parts = {"apply": apply, "from_spec": classmethod(from_spec), "__doc__": pass_class.__doc__}
        return type(pass_class.__name__, (pass_class,), parts)

    return loaded


def _text(values: ParameterListType) -> str | None:
    """An option as it was written; xDSL makes a number of what looks like one."""
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values) or None


def universe(others: Iterable[Universe]) -> Universe:
    """What there is here by names that `others` have not: xDSL refuses to start with two dialects or passes of a name.

    So xDSL's `canonicalize` is the one that is run, and where xdsl-jax is installed, its StableHLO is what is read.
    """
    others = list(others)
    passes = {name: for_xdsl_opt(load) for name, load in PASSES.items()}
    return Universe(
        all_dialects=_without(
            {"sdy": _sdy, "stablehlo": _stablehlo, "chlo": _chlo}, *(other.all_dialects for other in others)
        ),
        all_passes=_without(passes, *(other.all_passes for other in others)),
    )


def _without(named: dict[str, T], *taken: Iterable[str]) -> dict[str, T]:
    return {name: what for name, what in named.items() if not any(name in names for names in taken)}


def _others() -> Iterable[Universe]:
    return [entry.load() for entry in entry_points(group="xdsl.universe") if entry.name != NAME]


SDY_UNIVERSE = universe(_others())
