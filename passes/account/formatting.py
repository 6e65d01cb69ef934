"""Formatting of an account as text tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sdy.formatting import columns, escape_line, format_bytes
from sdy.mesh import Mesh
from sdy.passes.jax.hlo_collectives import Traffic, total

if TYPE_CHECKING:
    from sdy.passes.account.account import Account

_MOST_LINES = 10
"""Number of rows shown in the table of collectives; the rest are summed."""


_END_OF_NUMBERS = 3
"""Columns before this one, except for the first, are numbers and right-aligned."""


def format_account(account: "Account") -> str:
    """Format the summary and the tables of an account."""
    compiled = account.compiled
    devices = f"{len(compiled.devices)} x {compiled.devices[0].device_kind}" if compiled else "too few for the mesh"
    parts = [
        f"  mesh          {_meshes(account.meshes)}\n  devices       {devices}\n  each device   {_summary(account)}"
        + (
            f"\n  host          keeps {format_bytes(account.host_memory)} for each device"
            if account.host_memory
            else ""
        )
        + (f"\n  layout        {account.layout}" if account.layout else ""),
        _received(account) if account.received else "",
        _totals(account),
        _collectives(compiled.collectives) if compiled else "",
    ]
    return "\n\n".join(filter(None, parts))


def _meshes(meshes: Mapping[str, Mesh]) -> str:
    axes = (
        f"@{escape_line(name)} " + ", ".join(f"{escape_line(axis)}={size}" for axis, size in mesh.axes)
        for name, mesh in meshes.items()
    )
    return "; ".join(axes) or "none"


def _summary(account: "Account") -> str:
    """Format the predicted bytes; the tables below have the exact numbers and those of XLA."""
    received, memory = format_bytes(account.bytes_received), format_bytes(account.memory)
    return f"receives {received} and needs {memory} of memory (predicted)"


def _received(account: "Account") -> str:
    rows = [["collective", "times", "bytes received", "at"]]
    rows += [
        [line.collective, f"{line.times:,}", f"{line.bytes:,.0f}", escape_line(str(line.where or "unknown location"))]
        for line in account.received[:_MOST_LINES]
    ]
    if others := account.received[_MOST_LINES:]:
        times, received = sum(line.times for line in others), sum(line.bytes for line in others)
        rows.append([f"{len(others)} others", f"{times:,}", f"{received:,.0f}", ""])
    return _table(rows)


def _totals(account: "Account") -> str:
    compiled = account.compiled
    rows = [
        ["bytes per device", "predicted", "compiled"],
        ["received", f"{account.bytes_received:,.0f}", f"{compiled.bytes_received:,.0f}" if compiled else "-"],
        ["memory", f"{account.memory:,}", f"{compiled.memory:,}" if compiled and compiled.memory else "-"],
    ]
    if account.host_memory:
        rows.append(["on the host", f"{account.host_memory:,}", "-"])
    return _table(rows)


def _collectives(traffic: Mapping[str, Traffic]) -> str:
    rows = [["collective", "count", "bytes per device"]]
    rows += [[kind, f"{moved.count:,}", f"{moved.bytes:,}"] for kind, moved in sorted(traffic.items())]
    if len(traffic) != 1:
        everything = total(traffic)
        rows.append(["total" if traffic else "none", f"{everything.count:,}", f"{everything.bytes:,}"])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows in columns, with a rule below the first row."""
    lines = columns(rows, numbers=range(1, _END_OF_NUMBERS), gap=3)
    lines.insert(1, " " + "─" * max(map(len, lines)))
    return "\n".join(lines)
