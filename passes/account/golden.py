"""Golden layouts: program summaries stored as JSON files, which tests compare programs with.

    def test_layout_of_the_step():
        sdy.check_golden("golden/step.json", step, params, batch)

The file has one line per entry, so that a review shows each change. With SDY_GOLDEN=update in the environment,
`check_golden` rewrites the files.
"""

import json
import os
from pathlib import Path
from typing import Any

from sdy.diagnostics import Location, error
from sdy.passes.account.difference import Difference
from sdy.passes.account.keywords import check_keywords
from sdy.passes.account.partitioned_program import Program, partitioned_program
from sdy.passes.account.summary import Summary
from sdy.passes.driver import Source, read, write
from sdy.type_helpers import is_dict

_UPDATE = "SDY_GOLDEN"
_NUMBERS = ("received", "memory")


class ChangedLayoutError(AssertionError):
    """A program has a different layout or cost from its golden file, or the file is missing; the message says how."""


def check_golden(path: str | Path, program: Program, *args: Any, **kwargs: Any) -> None:
    """Compare the layout and the cost of a program with the golden file at `path`.

    With SDY_GOLDEN=update in the environment, write the file instead.

    Args:
        path: The golden file.
        program: A function, a lowered program or a module, as in `sdy.account`.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: The keyword arguments of a function.

    Raises:
        TypeError: A function does not take a keyword.
        ChangedLayoutError: The program differs from the file, or the file does not exist.
        DiagnosticError: The file is not a golden layout, or the program cannot be partitioned.
    """
    check_keywords(check_golden, program, kwargs)
    summary = Summary.of(partitioned_program(program, *args, **kwargs))
    if os.environ.get(_UPDATE) == "update":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write(str(path), golden_text(summary))
        return
    if not Path(path).exists():
        raise ChangedLayoutError(f"no golden layout at {path}: run with {_UPDATE}=update to write it")
    difference = Difference(golden_summary(read(str(path))), summary)
    if difference:
        message = f"the program differs from {path}: run with {_UPDATE}=update to accept the change"
        raise ChangedLayoutError(f"{message}\n\n{difference}")


def golden_text(summary: Summary) -> str:
    """Serialize a summary as the text of a golden file."""
    fields = {name: getattr(summary, name) for name in (*Summary.TABLES, *_NUMBERS)}
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def golden_summary(source: Source) -> Summary:
    """Parse a golden file.

    Raises:
        DiagnosticError: The file is not a golden layout.
    """
    try:
        fields: object = json.loads(source.text)
    except json.JSONDecodeError as problem:
        raise error(Location(source.name, problem.lineno, problem.colno), f"invalid JSON: {problem.msg}") from None
    if not is_dict(fields) or fields.keys() != {*Summary.TABLES, *_NUMBERS}:
        raise error(Location(source.name, 1, 1), "not a golden layout")
    for name, value in fields.items():
        if not (_is_number(value) if name in _NUMBERS else _is_table(value)):
            raise error(Location(source.name, 1, 1), f"not a golden layout: '{name}' has the wrong type")
    return Summary(**fields)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_table(value: object) -> bool:
    return is_dict(value) and all(isinstance(text, str) for entry in value.items() for text in entry)
