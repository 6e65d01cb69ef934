"""The options of lint, read from `sdy-lint.toml`, or from `[tool.sdy.lint]` in `pyproject.toml`."""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from sdy.byte_sizes import parse_bytes
from sdy.diagnostics import Location, error
from sdy.narrowing import is_dict, is_list
from sdy.passes.account.lint.options import LintOptions, check_names, unknown
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.driver import Source, read

CONFIG, PROJECT = "sdy-lint.toml", "pyproject.toml"


def options_of_directory(directory: Path) -> LintOptions:
    """The options in the files of a directory: in `sdy-lint.toml` where there is one. Raises DiagnosticError."""
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
    """The options in a file of their own. Raises DiagnosticError for what is no option, or no value of one."""
    return _options(_tables(source), Location(source.name, 1, 1))


def _tables(source: Source) -> Mapping[str, Any]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(problem))
        *before, last = source.text.split("\n")
        line, column = (int(place[1]), int(place[2])) if place else (len(before) + 1, len(last) + 1)
        message = str(problem).partition(" (at ")[0].lower()
        raise error(Location(source.name, line, column), f"this is no TOML: {message}") from None


def _options(table: object, where: Location) -> LintOptions:
    if not is_dict(table):
        raise error(where, "the options of lint are a table")
    numbers = [field.name for field in fields(Thresholds)]
    values: dict[str, Any] = {}
    found: dict[str, int] = {}
    for key, value in table.items():
        if key in numbers:
            found[key] = threshold(key, value, where)
        elif key in _READ:
            values[key] = _READ[key](key, value, where)
        else:
            raise unknown("option of lint", str(key), [*_READ, *numbers], where)
    return LintOptions(**values, thresholds=replace(Thresholds(), **found))


def threshold(name: str, value: object, where: Location | None) -> int:
    """A number, or bytes as in `"80M"`. Raises DiagnosticError for anything else."""
    try:
        return parse_bytes(str(value))
    except ValueError as problem:
        raise error(where, f"{name}: {problem}") from None


def _names(key: str, value: object, where: Location) -> Collection[str]:
    if not is_list(value) or not all(isinstance(name, str) for name in value):
        raise error(where, f'{key} is a list of rules, as ["unused-axis"]')
    names = [str(name) for name in value]
    check_names(names, where)
    return names


def _allowed(key: str, value: object, where: Location) -> Mapping[str, Collection[str]]:
    if not is_dict(value):
        raise error(where, f'{key} is a table of patterns and rules, as "layers/*.py" = ["unused-axis"]')
    return {str(pattern): _names(f'{key}."{pattern}"', rules, where) for pattern, rules in value.items()}


_READ: Mapping[str, Callable[[str, object, Location], Any]] = {"select": _names, "ignore": _names, "allow": _allowed}
"""How the options that are no thresholds are read."""
