"""Picture of a Pareto front of step time and memory, as an SVG document."""

from collections.abc import Sequence
from html import escape

from sdy.formatting import format_bytes, format_seconds
from sdy.passes.spmd.costs.step_time import StepCost

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 88, 40, 24, 56
_TICKS = 4

_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #666 }
.grid { stroke: #8884 }
.front { fill: none; stroke: #2563eb; stroke-width: 2 }
.point { fill: #2563eb }
.plan { fill: #dc2626 }
.limit { stroke: #dc2626; stroke-dasharray: 6 4 }"""


def front_svg(front: Sequence[StepCost], chosen: StepCost, limit: int) -> str:
    """Draw a Pareto front with memory to the right and step time upwards.

    Args:
        front: The points, the fastest first.
        chosen: The point to highlight.
        limit: The bytes that a device may use; drawn as a line where it is within the chart.
    """
    least_memory, most_memory = _range([each.memory for each in front])
    least_seconds, most_seconds = _range([each.seconds for each in front])

    def x(memory: float) -> float:
        return _LEFT + (memory - least_memory) / (most_memory - least_memory) * (_WIDTH - _LEFT - _RIGHT)

    def y(seconds: float) -> float:
        return (
            _HEIGHT - _BOTTOM - (seconds - least_seconds) / (most_seconds - least_seconds) * (_HEIGHT - _TOP - _BOTTOM)
        )

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        "<title>Step time and memory of the layouts that no other one beats in both</title>",
        f"<style>{_STYLE}</style>",
    ]
    for tick in range(_TICKS + 1):
        memory = least_memory + tick / _TICKS * (most_memory - least_memory)
        seconds = least_seconds + tick / _TICKS * (most_seconds - least_seconds)
        across, up = f"{x(memory):.1f}", f"{y(seconds):.1f}"
        lines += [
            f'<path class="grid" d="M{across} {_TOP}V{_HEIGHT - _BOTTOM}M{_LEFT} {up}H{_WIDTH - _RIGHT}"/>',
            _text(across, _HEIGHT - _BOTTOM + 20, "middle", format_bytes(memory)),
            _text(_LEFT - 8, f"{float(up) + 4:.1f}", "end", format_seconds(seconds)),
        ]
    lines.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, "middle", "memory of a device"))
    if least_memory <= limit <= most_memory:
        lines.append(f'<path class="limit" d="M{x(limit):.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
    steps = "H".join(f"{x(each.memory):.1f} {y(each.seconds):.1f}" for each in front[:1])
    # Between two points, a limit of memory admits the slower one.
    for each in front[1:]:
        steps += f"V{y(each.seconds):.1f}H{x(each.memory):.1f}"
    lines.append(f'<path class="front" d="M{steps}"/>')
    for each in front:
        kind = "plan" if each is chosen else "point"
        place = f'cx="{x(each.memory):.1f}" cy="{y(each.seconds):.1f}" r="{6 if each is chosen else 4}"'
        title = escape(f"{format_seconds(each.seconds)}, {format_bytes(each.memory)}")
        lines.append(f'<circle class="{kind}" {place}><title>{title}</title></circle>')
    return "\n".join([*lines, "</svg>", ""])


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return limits of an axis that leave a margin around `values`."""
    least, most = min(values), max(values)
    margin = 0.08 * (most - least) or 0.5 * most or 1.0
    return max(least - margin, 0.0), most + margin


def _text(x: object, y: object, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
