"""An account as text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sdy.byte_sizes import shown_bytes
from sdy.mesh import Mesh
from sdy.passes.common.columns import columns
from sdy.passes.jax.hlo_collectives import Traffic, total
from sdy.shown_text import shown

if TYPE_CHECKING:
    from sdy.passes.account.account import Account

_MOST_LINES = 10
"""So many lines of the source are shown; the others are added up."""


_WORDS_AGAIN = 3
"""The column in which words follow the numbers."""


def shown_account(account: "Account") -> str:
    """The tables of an account, one after the other."""
    compiled = account.compiled
    devices = f"{len(compiled.devices)} x {compiled.devices[0].device_kind}" if compiled else "not as many as it needs"
    parts = [
        f"  mesh          {_meshes(account.meshes)}\n  devices       {devices}\n  each          {_needs(account)}"
        + (f"\n  layout        {account.layout}" if account.layout else ""),
        _received(account) if account.received else "",
        _totals(account),
        _collectives(compiled.collectives) if compiled else "",
    ]
    return "\n\n".join(filter(None, parts))


def _meshes(meshes: Mapping[str, Mesh]) -> str:
    """Meshes with their axes."""
    written = (
        f"@{shown(name)} " + ", ".join(f"{shown(axis)}={size}" for axis, size in mesh.axes)
        for name, mesh in meshes.items()
    )
    return "; ".join(written) or "none"


def _needs(account: "Account") -> str:
    """What each device receives and needs, at a glance; how far XLA agrees, and the exact numbers, tell the tables."""
    received, needed = shown_bytes(account.bytes_received), shown_bytes(account.memory)
    return f"receives {received} and needs {needed} of memory, as predicted"


def _received(account: "Account") -> str:
    rows = [["collective", "times", "bytes received", "at"]]
    rows += [
        [line.collective, f"{line.times:,}", f"{line.bytes:,.0f}", shown(str(line.where or "no place"))]
        for line in account.received[:_MOST_LINES]
    ]
    if others := account.received[_MOST_LINES:]:
        times, received = sum(line.times for line in others), sum(line.bytes for line in others)
        rows.append([f"{len(others)} others", f"{times:,}", f"{received:,.0f}", ""])
    return _table(rows)


def _totals(account: "Account") -> str:
    compiled = account.compiled
    return _table(
        [
            ["bytes of a device", "predicted", "compiled"],
            ["received", f"{account.bytes_received:,.0f}", f"{compiled.bytes_received:,.0f}" if compiled else "-"],
            ["memory", f"{account.memory:,}", f"{compiled.memory:,}" if compiled and compiled.memory else "-"],
        ]
    )


def _collectives(traffic: Mapping[str, Traffic]) -> str:
    rows = [["collective", "count", "bytes per device"]]
    rows += [[kind, f"{moved.count:,}", f"{moved.bytes:,}"] for kind, moved in sorted(traffic.items())]
    if len(traffic) != 1:
        everything = total(traffic)
        rows.append(["all" if traffic else "none", f"{everything.count:,}", f"{everything.bytes:,}"])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the first row above a line: numbers, but for the first column and what stands behind them."""
    lines = columns(rows, numbers=range(1, _WORDS_AGAIN), gap=3)
    lines.insert(1, " " + "─" * max(map(len, lines)))
    return "\n".join(lines)
