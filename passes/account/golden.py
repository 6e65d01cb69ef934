"""Golden layouts: a summary kept as a small file, which a test holds a program against.

    def test_layout_of_the_step():
        sdy.check_golden("golden/step.json", step, params, batch)

The file is JSON, a line for each entry, so that a change of it can be read in a review. SDY_GOLDEN=update in the
environment writes the files anew.
"""

import json
import os
from pathlib import Path
from typing import Any

from sdy.diagnostics import Location, error
from sdy.narrowing import is_dict
from sdy.passes.account.difference import Difference
from sdy.passes.account.partitioned_program import Program, partitioned_program
from sdy.passes.account.summary import Summary
from sdy.passes.driver import Source, read, write

_UPDATE = "SDY_GOLDEN"
_NUMBERS = ("received", "memory")


class ChangedLayoutError(AssertionError):
    """A program lies otherwise than its golden layout says, or costs something else; as text, how."""


def check_golden(path: str | Path, program: Program, *args: Any, **kwargs: Any) -> None:
    """Hold a program against the golden layout at `path`.

    `program` is what `sdy.account` takes, with its arguments. Raises ChangedLayoutError where it differs, or there is
    no such file, unless SDY_GOLDEN=update is in the environment: then the file is written. Raises DiagnosticError for a
    file that is no golden layout, and where the program cannot be partitioned.
    """
    summary = Summary.of(partitioned_program(program, *args, **kwargs))
    if os.environ.get(_UPDATE) == "update":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write(str(path), golden_text(summary))
        return
    if not Path(path).exists():
        raise ChangedLayoutError(f"there is no golden layout {path}: run this with {_UPDATE}=update to keep one")
    difference = Difference(golden_summary(read(str(path))), summary)
    if difference:
        raise ChangedLayoutError(f"{path} differs; run this with {_UPDATE}=update if it should\n\n{difference}")


def golden_text(summary: Summary) -> str:
    """A summary as it is kept."""
    kept = {name: getattr(summary, name) for name in (*Summary.TABLES, *_NUMBERS)}
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def golden_summary(source: Source) -> Summary:
    """The summary that is kept in a file. Raises DiagnosticError where it is another file."""
    try:
        kept: object = json.loads(source.text)
    except json.JSONDecodeError as problem:
        raise error(Location(source.name, problem.lineno, problem.colno), f"this is no JSON: {problem.msg}") from None
    if not is_dict(kept) or kept.keys() != {*Summary.TABLES, *_NUMBERS}:
        raise error(Location(source.name, 1, 1), "this is no golden layout")
    for name, value in kept.items():
        if not (_is_number(value) if name in _NUMBERS else _is_table(value)):
            raise error(Location(source.name, 1, 1), f"this is no golden layout: '{name}' is something else there")
    return Summary(**kept)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_table(value: object) -> bool:
    return is_dict(value) and all(isinstance(text, str) for entry in value.items() for text in entry)
