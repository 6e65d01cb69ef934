"""Helper functions that only constrain or communicate: their operations are located at the lines that call them.

Many programs write each constraint, or collective of a `shard_map`, with one function, whose line names no tensor::

    def constrain(x, *spec):
        return jax.lax.with_sharding_constraint(x, P(*spec))

    hidden = constrain(x @ up, "data", "model")  # a person edits this line
"""

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr, ModuleOp, NameLoc
from xdsl.ir import Attribute, Operation

from sdy.diagnostics import is_library, location_of
from sdy.ir.companions import clone
from sdy.ir.locations import named
from sdy.ir.walking import operations
from sdy.passes.account.lint.explicit_types import AnyConstraint
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass

_ANY_MOVE = (AnyConstraint, *COLLECTIVES)

Function = tuple[str, str]
"""The file and the qualified name of a Python function."""


def at_call_lines(module: ModuleOp) -> ModuleOp:
    """Return a copy of a module without the frames of helper functions; itself if it has none."""
    helpers = _helpers(module)
    if not helpers:
        return module
    copy = clone(module)
    moved: dict[LocationAttr, LocationAttr] = {}
    for op in operations(copy):
        if op.location not in moved:
            is_in_helper = next(_functions(op.location), None) in helpers
            moved[op.location] = (is_in_helper and _moved(op.location, helpers)) or op.location
        op.location = moved[op.location]
    return copy


def _helpers(module: ModuleOp) -> set[Function]:
    """Return the functions that trace constraints and collectives only, and that functions call which trace more."""
    ops = operations(module)
    found = {each for op in ops if isinstance(op, _ANY_MOVE) for each in _functions(op.location)}
    if not found:
        return found
    others = {op.location for op in ops if not _is_of_move(op) and not is_in_backward_pass(op)}
    return found - {each for location in others for each in _functions(location)}


def _is_of_move(op: Operation) -> bool:
    """Return whether an operation is a constraint or a collective, or in the body of a collective."""
    return isinstance(op, _ANY_MOVE) or isinstance(op.parent_op(), COLLECTIVES)


def _functions(location: Attribute) -> Iterator[Function]:
    """Yield the functions of the call stack of a location, except those of libraries, the innermost first."""
    match location:
        case CallSiteLoc():
            yield from _functions(location.callee)
            yield from _functions(location.caller)
        case NameLoc() if isinstance(location.location, CallSiteLoc | NameLoc):  # the name scopes of an operation
            yield from _functions(location.location)
        case NameLoc() if (place := location_of(location)) and not is_library(place.filename):
            yield place.filename, location.desc.data
        case _:
            pass


def _moved(location: LocationAttr, helpers: set[Function]) -> LocationAttr | None:
    """Return a location without its frames up to the first one of a function that is no helper; None if all are."""
    match location:
        case CallSiteLoc():
            callee = _moved(cast(LocationAttr, location.callee), helpers)
            return (
                CallSiteLoc(callee, location.caller) if callee else _moved(cast(LocationAttr, location.caller), helpers)
            )
        case NameLoc() if isinstance(location.location, CallSiteLoc | NameLoc):
            inner = _moved(location.location, helpers)
            return inner and named(location.desc.data, inner)
        case _:
            function = next(_functions(location), None)
            return None if function is None or function in helpers else location
