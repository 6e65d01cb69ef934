"""Configuration files of lint: `sdy-lint.toml`, or `[tool.sdy.lint]` in `pyproject.toml`."""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from sdy.diagnostics import Location, error
from sdy.passes.account.lint.options import LintOptions, check_names, threshold, unknown
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.driver import Source, read
from sdy.type_helpers import is_dict, is_list

CONFIG, PROJECT = "sdy-lint.toml", "pyproject.toml"


def options_of_directory(directory: Path) -> LintOptions:
    """Read the options from `sdy-lint.toml` in `directory`, or else from its `pyproject.toml`.

    Raises:
        DiagnosticError: The file is not valid TOML, or has an unknown option or an invalid value.
    """
    if (directory / CONFIG).is_file():
        return options_in(read(str(directory / CONFIG)))
    if (directory / PROJECT).is_file():
        source = read(str(directory / PROJECT))
        tables: Any = _tables(source)
        for name in ("tool", "sdy", "lint"):
            tables = tables.get(name, {}) if is_dict(tables) else {}
        return _options(tables, Location(source.name, 1, 1))
    return LintOptions()


def options_in(source: Source) -> LintOptions:
    """Parse an `sdy-lint.toml`.

    Raises:
        DiagnosticError: The file is not valid TOML, or has an unknown option or an invalid value.
    """
    return _options(_tables(source), Location(source.name, 1, 1))


def _tables(source: Source) -> Mapping[str, Any]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(problem))
        *before, last = source.text.split("\n")
        line, column = (int(place[1]), int(place[2])) if place else (len(before) + 1, len(last) + 1)
        message = str(problem).partition(" (at ")[0].lower()
        raise error(Location(source.name, line, column), f"invalid TOML: {message}") from None


def _options(table: object, where: Location) -> LintOptions:
    if not is_dict(table):
        raise error(where, "the lint options must be a table")
    threshold_names = [field.name for field in fields(Thresholds)]
    values: dict[str, Any] = {}
    thresholds: dict[str, int] = {}
    for key, value in table.items():
        if key in threshold_names:
            thresholds[key] = threshold(key, value, where)
        elif key in _READERS:
            values[key] = _READERS[key](key, value, where)
        else:
            raise unknown("lint option", str(key), [*_READERS, *threshold_names], where)
    return LintOptions(**values, thresholds=replace(Thresholds(), **thresholds))


def _names(key: str, value: object, where: Location) -> Collection[str]:
    if not is_list(value) or not all(isinstance(name, str) for name in value):
        raise error(where, f'{key} must be a list of rules, such as ["unused-axis"]')
    names = [str(name) for name in value]
    check_names(names, where)
    return names


def _allowed(key: str, value: object, where: Location) -> Mapping[str, Collection[str]]:
    if not is_dict(value):
        raise error(where, f'{key} must map file patterns to rules, such as "layers/*.py" = ["unused-axis"]')
    return {str(pattern): _names(f'{key}."{pattern}"', rules, where) for pattern, rules in value.items()}


_READERS: Mapping[str, Callable[[str, object, Location], Any]] = {
    "select": _names,
    "ignore": _names,
    "allow": _allowed,
}
"""Parsers of the options that are not thresholds."""
