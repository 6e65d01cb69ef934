"""Difference between two program summaries: shardings, collectives, bytes received and peak memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sdy.formatting import escape_line
from sdy.passes.account.summary import Summary

_MOST_CHANGES = 20
"""Number of changes shown per table; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """An entry that differs between two summaries; `before` or `after` is None if only the other one has it."""

    entry: str
    before: str | None
    after: str | None


@dataclass(frozen=True, repr=False)
class Difference:
    """Difference of two summaries; false if they are equal."""

    before: Summary
    after: Summary

    @cached_property
    def changes(self) -> Mapping[str, Sequence[Change]]:
        """The changed entries by table, such as `arguments`, in program order; unchanged tables are left out."""
        tables = {
            kind: tuple(_changes(getattr(self.before, kind), getattr(self.after, kind))) for kind in Summary.TABLES
        }
        return {kind: changes for kind, changes in tables.items() if changes}

    def __bool__(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        return self.shown()

    __repr__ = __str__

    def shown(self, most: int | None = _MOST_CHANGES) -> str:
        """Format the difference, with at most `most` changes per table, or all if it is None."""
        parts = [self._shown_kind(kind, changes, most) for kind, changes in self.changes.items()]
        return "\n\n".join([*parts, self._costs()]) if self else "no difference"

    def _shown_kind(self, kind: str, changes: Sequence[Change], most: int | None) -> str:
        lines = [f"  {kind}"]
        for change in changes[:most]:
            line = self.after.lines.get(change.entry) or self.before.lines.get(change.entry)
            lines.append(f"    {escape_line(change.entry)}" + (f"  at {escape_line(str(line))}" if line else ""))
            both = (("-", change.before), ("+", change.after))
            lines += [f"      {mark} {escape_line(text)}" for mark, text in both if text is not None]
        if most is not None and len(changes) > most:
            lines.append(f"    and {len(changes) - most:,} more")
        return "\n".join(lines)

    def _costs(self) -> str:
        """Format the bytes received and the peak memory of both programs."""
        received = _change_of_bytes(self.before.received, self.after.received)
        memory = _change_of_bytes(self.before.memory, self.after.memory)
        return f"  received per device     {received}\n  peak memory per device  {memory}"


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for entry in dict.fromkeys((*before, *after)):
        if before.get(entry) != after.get(entry):
            yield Change(entry, before.get(entry), after.get(entry))


def _change_of_bytes(before: int, after: int) -> str:
    if before == after:
        return f"{before:,} bytes, unchanged"
    percent = f" ({(after - before) / before:+.0%})" if before else ""
    return f"{before:,} bytes before, {after:,} after{percent}"
