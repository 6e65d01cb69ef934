"""Diagnostics about a program: errors, warnings, remarks and notes, in MLIR's form.

    program.mlir:3:8: error: 'sdy.mesh' op duplicate axis name: "x"
      sdy.mesh @mesh = <["x"=2, "x"=2]>
      ^

An error is raised: `raise error(op, "...")`. A warning or a remark goes to the innermost handler, set with `handling`,
as tools do to print it, or with `capture`. Without a handler, a warning is issued through Python's `warnings`, whose
filters select it by category, and a remark is logged to `logging.getLogger("sdy")`:

    warnings.filterwarnings("ignore", category=sdy.ComputedWholeWarning)   # silence replicated computation
    warnings.filterwarnings("error", category=sdy.ShardingWarning)         # reject programs with any warning

The location of a diagnostic is the location of an operation or value, as in MLIR: the start of its text, or its
`loc(...)`. The source line below the message comes from the text registered for that file name.
"""

import logging
import sys
import sysconfig
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, LocationAttr, NameLoc
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from sdy.formatting import escape_line, escape_lines

_LOGGER = logging.getLogger("sdy")


class ShardingWarning(UserWarning):
    """Base class of all warnings: a program is valid, but its shardings may not be the intended ones."""


class ComputedWholeWarning(ShardingWarning):
    """Computation or storage is replicated: devices receive or hold more bytes than their shards have."""


class LostShardingWarning(ShardingWarning):
    """A requested sharding is not the one used."""


class MemoryLimitWarning(ShardingWarning):
    """A program needs more memory than its limit."""


class UnknownOperationWarning(ShardingWarning):
    """An operation has no sharding rule, so that propagation stops at it."""


class Severity(Enum):
    """Severity of a diagnostic; the value is the word MLIR prints."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a file. Lines and columns count from 1; line 0 denotes the whole file."""

    filename: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}" if self.line else self.filename

    @property
    def short(self) -> str:
        """The name of the file and the line."""
        return f"{self.filename.rpartition('/')[2]}:{self.line}"


Where: TypeAlias = Operation | SSAValue | LocationAttr | Location | None
"""Anything a diagnostic may point at; None for an unknown location."""

Note: TypeAlias = str | tuple[Where, str]
"""Text of a note, at the location of its diagnostic or with a location of its own."""


_MAX_SHOWN = 200
"""Maximal number of characters shown of a source line."""


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic:
    """A message with its location and notes, and a category if it is a warning; `str` formats it as MLIR does."""

    severity: Severity
    location: Location | None
    message: str
    notes: tuple["Diagnostic", ...] = ()
    category: type[ShardingWarning] = ShardingWarning

    def render(self) -> str:
        """Format as MLIR does: location and message, source line with a caret if known, then the notes.

        An unknown location is left out. Control characters are escaped.
        """
        lines = [f"{self._place}{self.severity.value}: {escape_lines(self.message)}"]
        if self.location is not None and (source_line := _source_line(self.location)) is not None:
            part, column = _excerpt(source_line, self.location.column - 1)
            # Tabs are kept before the caret so that it stands below its character at any tab width.
            indent = "".join("\t" if c == "\t" else " " for c in escape_line(part[:column]))
            lines += [escape_line(part), f"{indent}^"]
        return "\n".join(lines + [note.render() for note in self.notes])

    @property
    def _place(self) -> str:
        return "" if self.location is None else f"{escape_line(str(self.location))}: "

    __str__ = render

    def __repr__(self) -> str:
        return f"<{self._place}{self.severity.value}: {escape_line(self.message)}>"


class DiagnosticError(Exception):
    """An error in the user's input, and the consequences that MLIR reports. Its text is all of them, rendered."""

    def __init__(self, diagnostic: Diagnostic, *consequences: Diagnostic):
        super().__init__(diagnostic, *consequences)
        self.diagnostic = diagnostic
        self.consequences = consequences

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The error, then its consequences, in the order in which they are printed."""
        return (self.diagnostic, *self.consequences)

    @property
    def message(self) -> str:
        """The message of the error, without its location."""
        return self.diagnostic.message

    @property
    def where(self) -> Location | None:
        """The location of the error, if known."""
        return self.diagnostic.location

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """The notes of the error."""
        return self.diagnostic.notes

    def __str__(self) -> str:
        return "\n".join(diagnostic.render() for diagnostic in self.diagnostics)


def error(where: Where, message: str, *notes: Note) -> DiagnosticError:
    """Return an error to raise: `raise error(op, "...")`."""
    return DiagnosticError(_diagnostic(Severity.ERROR, where, message, notes))


def op_error(op: Operation, message: str, *notes: Note) -> DiagnosticError:
    """Return an error about an operation, with its name before the message, as MLIR's verifiers print it."""
    return error(op, f"'{op.name}' op {message}", *notes)


def quoted(types: Iterable[Attribute]) -> str:
    """Format a list of types for a message: `'tensor<4xf32>', 'tensor<i32>'`."""
    return ", ".join(f"'{type_}'" for type_ in types)


def inferred_types_error(op: Operation, inferred: Iterable[Attribute], actual: Iterable[Attribute]) -> DiagnosticError:
    """Return an error about an operation whose result types differ from the inferred ones."""
    message = f"inferred type(s) {quoted(inferred)} are incompatible with return type(s) of operation {quoted(actual)}"
    consequence = op_error(op, "failed to infer returned types").diagnostic
    return DiagnosticError(op_error(op, message).diagnostic, consequence)


def warn(where: Where, message: str, *notes: Note, category: type[ShardingWarning] = ShardingWarning) -> None:
    """Report a warning to the innermost handler, by default as a Python warning.

    Args:
        where: The location.
        message: The message.
        *notes: Additional notes.
        category: The class of the warning.

    Raises:
        ShardingWarning: Python's warning filters turn warnings of this category into errors.
    """
    report(replace(_diagnostic(Severity.WARNING, where, message, notes), category=category))


def remark(where: Where, message: str, *notes: Note) -> None:
    """Report a remark."""
    report(_diagnostic(Severity.REMARK, where, message, notes))


def report(diagnostic: Diagnostic) -> None:
    """Pass a diagnostic to the innermost handler of this thread or task."""
    _handler.get()(diagnostic)


@contextmanager
def handling(handler: Callable[[Diagnostic], None]) -> Generator[None]:
    """Pass diagnostics that this thread or task reports in the `with` block to `handler`."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


@contextmanager
def capture() -> Generator[list[Diagnostic]]:
    """Collect the diagnostics reported in the `with` block."""
    diagnostics: list[Diagnostic] = []
    with handling(diagnostics.append):
        yield diagnostics


def location_of(where: Where) -> Location | None:
    """Return the location of an operation, a value or a location attribute; None if it has none.

    A nested location resolves to its first file position: of a name's child, a call site's callee or else its caller,
    or the first location of a fusion. A call site in a library resolves to the innermost caller that is not, if any.
    """
    resolve = _LOCATIONS.get(type(where))
    if resolve is not None:
        return resolve(where)
    return location_of(where.location) if isinstance(where, Operation) else None


def _of_call_site(where: CallSiteLoc) -> Location | None:
    callee = location_of(cast(Where, where.callee))
    if callee is not None and not is_library(callee.filename):
        return callee
    caller = location_of(cast(Where, where.caller))
    return callee if caller is None or (callee and is_library(caller.filename)) else caller


def _of_fusion(where: FusedLoc) -> Location | None:
    locations = cast(ArrayAttr[LocationAttr], where.locations)
    return next((place for place in map(location_of, locations) if place is not None), None)


_LOCATIONS: Mapping[type, Callable[[Any], Location | None]] = {
    Location: lambda where: where,
    OpResult: lambda where: location_of(where.op.location),
    BlockArgument: lambda where: location_of(where.location),
    FileLineColLoc: lambda where: Location(where.filename.data, where.line.data, where.column.data),
    NameLoc: lambda where: location_of(where.location),
    CallSiteLoc: _of_call_site,
    FusedLoc: _of_fusion,
}
"""The resolution of each class: `isinstance` is slow for abstract classes, such as those of attributes."""


def register_source(filename: str, text: str, first_line: int = 1) -> None:
    """Register the source text of a file, so that diagnostics can show its lines.

    The text is dropped when many other files have been registered since.

    Args:
        filename: The file name in locations.
        text: The text, or an excerpt of consecutive lines.
        first_line: The line number of the first line of `text`.
    """
    with _sources_lock:
        _sources.pop(filename, None)
        _sources[filename] = _SourceText(text, first_line)
        while len(_sources) > _MAX_SOURCES:
            del _sources[next(iter(_sources))]


@dataclass(frozen=True, slots=True)
class _SourceText:
    text: str
    first_line: int


_MAX_SOURCES = 64

_sources: dict[str, _SourceText] = {}
"""Registered texts by file name, in the order of registration."""

_sources_lock = Lock()


def _excerpt(line: str, column: int) -> tuple[str, int]:
    """Return an excerpt of a long line around `column`, and the column within it."""
    start, end = max(0, column - _MAX_SHOWN // 2), column + _MAX_SHOWN // 2
    if len(line) <= _MAX_SHOWN:
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

    def convert(note: Note) -> Diagnostic:
        match note:
            case str():
                return Diagnostic(Severity.NOTE, location, note)
            case (place, text):
                return Diagnostic(Severity.NOTE, location_of(place), text)

    return Diagnostic(severity, location, message, tuple(map(convert, notes)))


def printed_once() -> Callable[[Diagnostic], None]:
    """Return a handler that prints each distinct diagnostic once on standard error, as MLIR's tools do."""
    printed: set[Diagnostic] = set()

    def handle(diagnostic: Diagnostic) -> None:
        if diagnostic not in printed:
            printed.add(diagnostic)
            print(diagnostic.render(), file=sys.stderr)

    return handle


def _default_handler(diagnostic: Diagnostic) -> None:
    """Issue a Python warning, which is shown once per line and text, or log a remark."""
    match diagnostic.severity:
        case Severity.WARNING:
            place = diagnostic.location or Location("<unknown>", 0, 0)
            text = "; ".join(each.message for each in (diagnostic, *diagnostic.notes))
            seen = _warning_registry(place.filename)
            warnings.warn_explicit(escape_lines(text), diagnostic.category, place.filename, place.line, registry=seen)
        case Severity.ERROR:
            print(diagnostic.render(), file=sys.stderr)
        case _:
            _LOGGER.info("%s", diagnostic.render())


@lru_cache(maxsize=256)
def _warning_registry(filename: str) -> dict[Any, Any]:
    """Return the `__warningregistry__` for a file, as if it were a Python module."""
    return {}


_handler: ContextVar[Callable[[Diagnostic], None]] = ContextVar("handler", default=_default_handler)


_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages."""

_OWN = tuple(f"{path}/" for path in (Path(__file__).parent, *map(sysconfig.get_path, ("stdlib", "platstdlib"))))
"""Folders of this package and of the standard library."""


@lru_cache(maxsize=1024)
def is_library(filename: str) -> bool:
    """Return whether a file belongs to an installed package, to the standard library or to this package."""
    return not _INSTALLED.isdisjoint(Path(filename).parts) or is_own(filename)


def is_own(filename: str) -> bool:
    """Return whether a file belongs to the standard library or to this package."""
    return filename.startswith((*_OWN, "<frozen"))
