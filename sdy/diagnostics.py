"""What is told to a person about a program: errors, warnings, remarks and notes, in MLIR's form.

    program.mlir:3:8: error: 'sdy.mesh' op duplicate axis name: "x"
      sdy.mesh @mesh = <["x"=2, "x"=2]>
      ^

An error ends the work at hand: `raise error(op, "...")`. A warning or a remark goes to the innermost handler that a
caller has put in place with `handling`, as tools do to print it, or with `capture`. Without one a warning is one of
Python's `warnings`, of a class of `sdy.warning_categories`, and a remark is for `logging.getLogger("sdy")`.

The place of a diagnostic is the location of an operation or value, as MLIR has it: where its text began, or the
`loc(...)` it carried. The line shown below the message comes from the text registered under that file's name.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, LocationAttr, NameLoc
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from sdy.shown_text import shown, shown_lines
from sdy.warning_categories import ShardingWarning

_LOGGER = logging.getLogger("sdy")


class Severity(Enum):
    """How grave a diagnostic is; the value is the word MLIR prints."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. Lines and columns count from 1; line 0 is the file as a whole."""

    filename: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}" if self.line else self.filename


Where: TypeAlias = Operation | SSAValue | LocationAttr | Location | None
"""What a diagnostic may point at; None is nowhere in particular."""

Note: TypeAlias = str | tuple[Where, str]
"""A note's text, placed where its diagnostic is, or with a place of its own."""


_MOST_SHOWN = 200
"""So many characters of a source line are shown around the place of a diagnostic."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message, its place, and the notes that belong to it; the category is that of a warning."""

    severity: Severity
    location: Location | None
    message: str
    notes: tuple["Diagnostic", ...] = ()
    category: type[ShardingWarning] = ShardingWarning

    def render(self) -> str:
        """MLIR's form: the message after its place, the source line and a caret where known, then the notes.

        What a terminal would obey is escaped.
        """
        place = "<unknown>:0" if self.location is None else str(self.location)
        lines = [f"{shown(place)}: {self.severity.value}: {shown_lines(self.message)}"]
        if self.location is not None and (source_line := _source_line(self.location)) is not None:
            part, column = _around(source_line, self.location.column - 1)
            # Tabs are kept before the caret so that it stands below its character at any tab width.
            indent = "".join("\t" if c == "\t" else " " for c in shown(part[:column]))
            lines += [shown(part), f"{indent}^"]
        return "\n".join(lines + [note.render() for note in self.notes])


class DiagnosticError(Exception):
    """Something a person's input did wrong, and what MLIR says in consequence. Its text is all of that, rendered."""

    def __init__(self, diagnostic: Diagnostic, *consequences: Diagnostic):
        super().__init__(diagnostic, *consequences)
        self.diagnostic = diagnostic
        self.consequences = consequences

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong, then the consequences, in the order in which they are said."""
        return (self.diagnostic, *self.consequences)

    @property
    def message(self) -> str:
        """What is wrong, without its place."""
        return self.diagnostic.message

    @property
    def where(self) -> Location | None:
        """The place, when it is known."""
        return self.diagnostic.location

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What explains the error further."""
        return self.diagnostic.notes

    def __str__(self) -> str:
        return "\n".join(diagnostic.render() for diagnostic in self.diagnostics)


def error(where: Where, message: str, *notes: Note) -> DiagnosticError:
    """An error to raise: `raise error(op, "...")`."""
    return DiagnosticError(_diagnostic(Severity.ERROR, where, message, notes))


def op_error(op: Operation, message: str, *notes: Note) -> DiagnosticError:
    """An error to raise about an operation, its name before the message as MLIR's verifiers have it."""
    return error(op, f"'{op.name}' op {message}", *notes)


def quoted(types: Iterable[Attribute]) -> str:
    """Types as a message lists them, `'tensor<4xf32>', 'tensor<i32>'`."""
    return ", ".join(f"'{type_}'" for type_ in types)


def inferred_types_error(op: Operation, inferred: Iterable[Attribute], found: Iterable[Attribute]) -> DiagnosticError:
    """An error to raise about an operation whose results are not of the types that it makes."""
    message = f"inferred type(s) {quoted(inferred)} are incompatible with return type(s) of operation {quoted(found)}"
    consequence = op_error(op, "failed to infer returned types").diagnostic
    return DiagnosticError(op_error(op, message).diagnostic, consequence)


def warn(where: Where, message: str, *notes: Note, category: type[ShardingWarning] = ShardingWarning) -> None:
    """Report a warning. Raises it, a `category`, where Python's filters say that such warnings are errors."""
    report(replace(_diagnostic(Severity.WARNING, where, message, notes), category=category))


def remark(where: Where, message: str, *notes: Note) -> None:
    """Report a remark."""
    report(_diagnostic(Severity.REMARK, where, message, notes))


def report(diagnostic: Diagnostic) -> None:
    """Give a diagnostic to the innermost handler of this thread or task."""
    _handler.get()(diagnostic)


@contextmanager
def handling(handler: Callable[[Diagnostic], None]) -> Generator[None]:
    """Give what this thread or task reports inside the `with` block to `handler`."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


@contextmanager
def capture() -> Generator[list[Diagnostic]]:
    """Collect what is reported inside the `with` block instead of printing it."""
    diagnostics: list[Diagnostic] = []
    with handling(diagnostics.append):
        yield diagnostics


def location_of(where: Where) -> Location | None:
    """The place of an operation, a value or a location attribute; None when it has none.

    A nested location gives its first file position: a name's child, a call site's callee or else its caller, the first
    of a fusion.
    """
    match where:
        case Location():
            return where
        case OpResult():
            return location_of(where.op.location)
        case Operation() | BlockArgument():
            return location_of(where.location)
        case FileLineColLoc():
            return Location(where.filename.data, where.line.data, where.column.data)
        case NameLoc():
            return location_of(cast(Where, where.location))
        case CallSiteLoc():
            return location_of(cast(Where, where.callee)) or location_of(cast(Where, where.caller))
        case FusedLoc():
            parts = cast(ArrayAttr[LocationAttr], where.locations)
            return next((place for place in map(location_of, parts) if place is not None), None)
        case _:
            return None


def register_source(filename: str, text: str, first_line: int = 1) -> None:
    """Let diagnostics in `filename` show the lines of `text`, whose first line has the number `first_line`.

    The text is kept until those of many other files have been registered.
    """
    with _sources_lock:
        _sources.pop(filename, None)
        _sources[filename] = _SourceText(text, first_line)
        while len(_sources) > _MOST_SOURCES:
            del _sources[next(iter(_sources))]


@dataclass(frozen=True, slots=True)
class _SourceText:
    text: str
    first_line: int


_MOST_SOURCES = 64

_sources: dict[str, _SourceText] = {}
"""By the name of the file, the one that was registered last at the end."""

_sources_lock = Lock()


def _around(line: str, column: int) -> tuple[str, int]:
    """What to show of a line, some of which are thousands of characters long, and where `column` is in that."""
    start, end = max(0, column - _MOST_SHOWN // 2), column + _MOST_SHOWN // 2
    if len(line) <= _MOST_SHOWN:
        return line, column
    before, after = "..." if start else "", "..." if end < len(line) else ""
    return f"{before}{line[start:end]}{after}", column - start + len(before)


def _source_line(location: Location) -> str | None:
    source = _sources.get(location.filename)
    if source is None:
        return None
    lines = source.text.split("\n")
    index = location.line - source.first_line
    return lines[index] if 0 <= index < len(lines) else None


def _diagnostic(severity: Severity, where: Where, message: str, notes: tuple[Note, ...]) -> Diagnostic:
    location = location_of(where)

    def note(given: Note) -> Diagnostic:
        match given:
            case str():
                return Diagnostic(Severity.NOTE, location, given)
            case (place, text):
                return Diagnostic(Severity.NOTE, location_of(place), text)

    return Diagnostic(severity, location, message, tuple(map(note, notes)))


def printed_once() -> Callable[[Diagnostic], None]:
    """A handler that prints what is reported on standard error, as MLIR's tools do, and the same only once."""
    told: set[Diagnostic] = set()

    def tell(diagnostic: Diagnostic) -> None:
        if diagnostic not in told:
            told.add(diagnostic)
            print(diagnostic.render(), file=sys.stderr)

    return tell


def _tell_python(diagnostic: Diagnostic) -> None:
    """Where nobody handles a diagnostic, Python does: by default it tells a warning once for a line and text."""
    match diagnostic.severity:
        case Severity.WARNING:
            place = diagnostic.location or Location("<unknown>", 0, 0)
            text = "; ".join(each.message for each in (diagnostic, *diagnostic.notes))
            told = _told_in(place.filename)
            warnings.warn_explicit(shown_lines(text), diagnostic.category, place.filename, place.line, registry=told)
        case Severity.ERROR:
            print(diagnostic.render(), file=sys.stderr)
        case _:
            _LOGGER.info("%s", diagnostic.render())


@lru_cache(maxsize=256)
def _told_in(filename: str) -> dict[Any, Any]:
    """What Python has told of a file: as the `__warningregistry__` of a module of its own."""
    return {}


_handler: ContextVar[Callable[[Diagnostic], None]] = ContextVar("handler", default=_tell_python)
