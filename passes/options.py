"""Create a pass from its name and the texts of its options."""

import dataclasses
from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

from sdy.diagnostics import DiagnosticError, error
from sdy.passes.catalog import PASSES

BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
"""The values of boolean options, by their texts."""


def create_pass(name: str, options: Mapping[str, str | None]) -> ModulePass:
    """Create a pass.

    Args:
        name: The name of the pass.
        options: The text of each option's value; None for an option without a value.

    Raises:
        DiagnosticError: The pass or an option is unknown, or a value is invalid.
    """
    if name not in PASSES:
        raise unknown("pass", name, list(PASSES))
    pass_class = PASSES[name]()
    types = get_type_hints(pass_class)
    fields = {field.name.replace("_", "-"): field.name for field in dataclasses.fields(pass_class)}
    for option in options:
        if option not in fields:
            raise unknown(f"option of pass '{name}'", option, list(fields))
    return pass_class(**{fields[key]: _convert(name, key, value, types[fields[key]]) for key, value in options.items()})


def _convert(pass_name: str, option: str, text: str | None, kind: Any) -> Any:
    where = f"option '{option}' of pass '{pass_name}'"
    if get_origin(kind) is UnionType:  # optional
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    if kind is bool:
        if text is None:
            return True
        if text not in BOOLEANS:
            raise error(None, f"{where} is true or false, not '{text}'")
        return BOOLEANS[text]
    if text is None:
        raise error(None, f"{where} needs a value: {option}=...")
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise error(None, f"{where} is an integer, not '{text}'") from None
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise unknown(f"value of {where}", text, list(get_args(kind)))
        return text
    if get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def unknown(kind: str, name: str, known: list[str]) -> DiagnosticError:
    """Return the error for a name that is not in `known`, with the nearest known name as a suggestion."""
    suggestion = nearest(name, known)
    return error(None, f"unknown {kind} '{name}'" + (f": did you mean '{suggestion}'?" if suggestion else ""))


def nearest(name: str, known: list[str]) -> str | None:
    """Return the name in `known` that is most similar to `name`; None if none is similar."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.5)), None)
