"""Picture of a step of a pipeline, as an SVG document."""

from collections.abc import Mapping, Sequence
from html import escape

from sdy.formatting import format_seconds
from sdy.passes.mpmd.timeline import TimelineSlice

_WIDTH, _LEFT, _MARGIN = 960, 140, 12
_HEIGHT, _GAP = 28, 6

_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #666 }
.lane { fill: #8882 }
.slice { stroke: #fff; stroke-width: 0.5; fill: #9ca3af }
.F { fill: #2563eb }
.B { fill: #dc2626 }
.I { fill: #ea580c }
.W { fill: #ca8a04 }
.U { fill: #16a34a }"""
"""Forwards are blue, backwards red or, in two parts, orange and yellow, updates green, and transfers gray."""


def timeline_svg(rows: Mapping[str, Sequence[TimelineSlice]], seconds: float) -> str:
    """Draw rows with time to the right; pointing at a slice shows its name and time.

    Args:
        rows: The slices of each row, by its name.
        seconds: The time of the whole width.
    """
    scale = (_WIDTH - _LEFT - _MARGIN) / seconds if seconds else 0.0
    bottom = _MARGIN + len(rows) * (_HEIGHT + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 24}" role="img">',
        "<title>The slices of each device over the time of a step</title>",
        f"<style>{_STYLE}</style>",
    ]
    for number, (name, slices) in enumerate(rows.items()):
        top = _MARGIN + number * (_HEIGHT + _GAP)
        lane = f'x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - _MARGIN}" height="{_HEIGHT}"'
        lines += [
            f'<text x="{_LEFT - 8}" y="{top + _HEIGHT - 9}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="lane" {lane}/>',
        ]
        for each in slices:
            place = f'x="{_LEFT + each.start * scale:.2f}" y="{top}" width="{each.seconds * scale:.2f}"'
            title = escape(f"{each.label}: {format_seconds(each.seconds)}, from {format_seconds(each.start)}")
            kind = escape(f"slice {each.letter}")
            lines.append(f'<rect class="{kind}" {place} height="{_HEIGHT}"><title>{title}</title></rect>')
    lines += [
        f'<text x="{_LEFT}" y="{bottom + 16}">0</text>',
        f'<text x="{_WIDTH - _MARGIN}" y="{bottom + 16}" text-anchor="end">{format_seconds(seconds)}</text>',
    ]
    return "\n".join([*lines, "</svg>", ""])
