"""Report of a program on several meshes: the predicted timeline of a step, and the costs of meshes and fragments.

The fragments are partitioned and costed as by `sdy.mpmd.plan`, which the page shows.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from xdsl.dialects.builtin import ModuleOp

from sdy.formatting import escape_line, format_bytes, format_seconds
from sdy.passes.account.report.html_report import Report
from sdy.passes.account.report.numbering import Json
from sdy.passes.account.report.page import GENERATOR, filled
from sdy.passes.mpmd.plan import PipelinePlan, plan
from sdy.passes.spmd.costs.hardware import Hardware

_TRANSFER = "-"
"""The mark of a slice in which a mesh sends or receives a value."""


@dataclass(frozen=True, repr=False)
class PipelineReport(Report):
    """HTML report of a program on several meshes, without scripts."""

    @cached_property
    def html(self) -> str:
        """The HTML of the page."""
        parts = {
            "generator": GENERATOR,
            "title": escape(self.title),
            "headline": "\n".join(f"<p>{escape(sentence)}</p>" for sentence in self.headline),
            "timeline": self.data["timeline"],
            "meshes": _table(("mesh", "devices", "computes", "waits", "memory", "sends"), self.data["meshes"]),
            "fragments": _table(("fragment", "mesh", "runs", "each takes"), self.data["fragments"]),
        }
        return filled("pipeline.html", parts)


def pipeline_report(title: str, module: ModuleOp, hardware: Hardware | None) -> PipelineReport:
    """Create the report of a program on several meshes.

    Args:
        title: The title of the page.
        module: The program after the phase PARTITION of Shardy's MPMD compiler.
        hardware: The hardware of the devices; that of `sdy.mpmd.plan` by default.

    Raises:
        DiagnosticError: The program is not partitioned into fragments.
    """
    planned = plan(module, hardware) if hardware else plan(module)
    data: Json = {
        "headline": [*_headline(planned)],
        "findings": None,
        "timeline": planned.to_svg(),
        "meshes": [*_meshes(planned)],
        "fragments": [*_fragments(planned)],
    }
    return PipelineReport(title, data, planned.to_perfetto())


def _headline(planned: PipelinePlan) -> Iterator[str]:
    step = f"A step on {len(planned.meshes)} meshes is predicted to take {format_seconds(planned.seconds)}"
    yield f"{step}; the busiest mesh waits {planned.bubble:.1%} of it."
    memory = f"{format_bytes(planned.memory)} of {format_bytes(planned.hardware.memory)}"
    yield f"A device needs at most {memory} of memory: the program {'fits' if planned.fits else 'does not fit'}."
    yield f"Predicted for {escape_line(planned.hardware.name)}."


def _meshes(planned: PipelinePlan) -> Iterator[Sequence[str]]:
    """Yield the name, the devices, the times and the bytes of each mesh."""
    for name, mesh in planned.meshes.items():
        seconds = planned.busy(name)
        waits = 1 - seconds / planned.seconds if planned.seconds else 0.0
        held = format_bytes(planned.execution.peaks.get(name, 0))
        sent = format_bytes(planned.sent(name))
        yield escape_line(name), f"{mesh.size:,}", format_seconds(seconds), f"{waits:.1%}", held, sent


def _fragments(planned: PipelinePlan) -> Iterator[Sequence[str]]:
    """Yield the name, the mesh, the runs and the time of each fragment."""
    rows = planned.execution.meshes.rows.items()
    fragments = (
        (each.label, name, each.seconds) for name, slices in rows for each in slices if each.letter != _TRANSFER
    )
    for (label, name, seconds), runs in Counter(fragments).items():
        yield f"@{escape_line(label)}", escape_line(name), f"{runs:,}", format_seconds(seconds)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in HTML; columns whose first entry begins with a digit are numbers."""
    numbers = [entry[:1].isdigit() for entry in next(iter(rows), titles)]
    lines = [_row("th", titles, numbers), *(_row("td", row, numbers) for row in rows)]
    return "\n".join(['<div class="wide"><table>', *lines, "</table></div>"])


def _row(tag: str, entries: Sequence[str], numbers: Sequence[bool]) -> str:
    kinds = ["number" if is_number else "text" for is_number in numbers]
    cells = (f'<{tag} class="{kind}">{escape(entry)}</{tag}>' for kind, entry in zip(kinds, entries, strict=True))
    return f"<tr>{''.join(cells)}</tr>"
