"""The option --verify-diagnostics: comments in a module declare the diagnostics that it must produce.

    // expected-error @+1 {{duplicate axis name: "x"}}
    sdy.mesh @mesh = <["x"=2, "x"=2]>

`expected-error`, `-warning`, `-remark` and `-note` are on the line of their diagnostic, or refer to it with `@+N`,
`@-N`, `@above` or `@below`; `@unknown` is for a diagnostic without a location. In `expected-error-re`, `{{...}}` in the
text is a regular expression.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdy.diagnostics import Diagnostic, Location, Severity, error
from sdy.passes.driver import Source

_COMMENT = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?"
    r" *(?P<place>@(?:[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """A diagnostic that a comment declares.

    Attributes:
        severity: The severity.
        line: The line, counted from 1, or None for a diagnostic without a location.
        pattern: Matches the message.
        text: The text of the comment.
        written_on: The line of the comment.
    """

    severity: Severity
    line: int | None
    pattern: re.Pattern[str]
    text: str
    written_on: int

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Return whether `diagnostic` is the declared one."""
        line = diagnostic.location.line if diagnostic.location else None
        same_place = self.severity is diagnostic.severity and self.line == line
        return same_place and self.pattern.search(diagnostic.message) is not None


def expectations(text: str) -> list[Expectation]:
    """Parse the comments of `text`."""
    expected: list[Expectation] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if match := _COMMENT.search(line):
            wanted = match["text"]
            pattern = re.compile(_as_regex(wanted) if match["regex"] else re.escape(wanted))
            place = _referenced_line(match["place"], number, lines)
            expected.append(Expectation(Severity(match["severity"]), place, pattern, wanted, number))
    return expected


def _as_regex(text: str) -> str:
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(f"(?:{part})" if index % 2 else re.escape(part) for index, part in enumerate(parts))


def _referenced_line(place: str | None, number: int, lines: list[str]) -> int | None:
    # Consecutive lines that only declare diagnostics refer to the same line of code.
    match place:
        case None:
            return number
        case "@unknown":
            return None
        case "@above":
            return next((n for n in range(number - 1, 0, -1) if not _is_expectation(lines[n - 1])), 0)
        case "@below":
            return next((n for n in range(number + 1, len(lines) + 1) if not _is_expectation(lines[n - 1])), 0)
        case _:
            return number + int(place[1:])


def _is_expectation(line: str) -> bool:
    return line.lstrip().startswith("//") and _COMMENT.search(line) is not None


def mismatches(source: Source, diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield an error for each declared diagnostic that is missing, and for each diagnostic that is not declared."""
    expected_ones = expectations(source.text)
    produced: set[int] = set()
    for diagnostic in _with_notes(diagnostics):
        # One comment declares any number of equal diagnostics, as in MLIR.
        number = next((n for n, expected in enumerate(expected_ones) if expected.matches(diagnostic)), None)
        if number is None:
            yield error(diagnostic.location, f"unexpected {diagnostic.severity.value}: {diagnostic.message}").diagnostic
        else:
            produced.add(number)
    for expected in (e for n, e in enumerate(expected_ones) if n not in produced):
        place = Location(source.name, expected.written_on, 1)
        message = f'expected {expected.severity.value} "{expected.text}" was not produced'
        yield error(place, message).diagnostic


def _with_notes(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from diagnostic.notes
