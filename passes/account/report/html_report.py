"""HTML reports: one self-contained file each, which a notebook displays."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from sdy.diagnostics import Location, error
from sdy.passes.account.report.numbering import Json
from sdy.passes.account.report.page import GENERATOR, page
from sdy.passes.driver import write

_HEIGHT = 720
"""The height of the report in a notebook, in pixels."""

_BEGINNING = 1000
"""Number of characters that are searched for the tag of a report."""


@dataclass(frozen=True, repr=False)
class Report:
    """HTML report of a program: one self-contained file. A notebook displays it."""

    title: str
    data: Json
    """The data of the page."""
    trace: str | None = None
    """The predicted timeline of a step in the Trace Event Format, if hardware was given."""

    @cached_property
    def html(self) -> str:
        """The HTML of the page."""
        return page(self.title, self.data)

    @property
    def found(self) -> Json:
        """Former name of `data`."""
        return self.data

    @property
    def headline(self) -> Sequence[str]:
        """The sentences at the top of the page: the avoidable costs first, if any."""
        findings = self.data["findings"]
        return [*(findings["headline"] if findings else ()), *self.data["headline"]]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the page to a file.

        Args:
            path: The file; an existing report is replaced.
            force: Replace the file even if it is not a report.

        Raises:
            DiagnosticError: The file exists and is not a report, or it cannot be written.
        """
        if not force:
            check_replaceable(path)
        write(str(path), self.html)

    def write_trace(self, path: str | Path) -> None:
        """Write the predicted timeline of a step to a JSON file, which https://ui.perfetto.dev opens.

        Args:
            path: The file; an existing file is replaced.

        Raises:
            ValueError: The report was made without hardware.
            DiagnosticError: The file cannot be written.
        """
        if self.trace is None:
            raise ValueError("a report without hardware has no timeline: give sdy.report the argument hardware=")
        write(str(path), self.trace)

    def _repr_html_(self) -> str:
        """Return the page in an iframe, for notebooks."""
        frame = f'style="width: 100%; height: {_HEIGHT}px; border: 0" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.title!r}): report.write('report.html') writes the page"


def check_replaceable(path: str | Path) -> None:
    """Raise DiagnosticError if the file exists and is not a report."""
    if not Path(path).is_file():
        return
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        if GENERATOR not in file.read(_BEGINNING):
            message = "the file exists and is not a report: replace it with --force or force=True"
            raise error(Location(str(path), 1, 1), message)
