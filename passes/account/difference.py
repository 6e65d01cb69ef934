"""What differs between two programs: how tensors lie, what devices exchange, and what that costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sdy.passes.account.summary import Summary
from sdy.shown_text import shown

_MOST_CHANGES = 20
"""So many changes of one kind are shown; the others are counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """An entry that only one of two summaries has, or that is not the same in both."""

    entry: str
    before: str | None
    after: str | None


@dataclass(frozen=True, repr=False)
class Difference:
    """What two summaries have not in common; true where there is anything; as text, for people."""

    before: Summary
    after: Summary

    @cached_property
    def changes(self) -> Mapping[str, Sequence[Change]]:
        """The changes of each kind, in the order of the programs; kinds without any are left out."""
        found = {
            kind: tuple(_changes(getattr(self.before, kind), getattr(self.after, kind))) for kind in Summary.TABLES
        }
        return {kind: changes for kind, changes in found.items() if changes}

    def __bool__(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        return self.shown()

    __repr__ = __str__

    def shown(self, most: int | None = _MOST_CHANGES) -> str:
        """The difference in words, with so many changes of each kind at most; None is all."""
        parts = [self._shown_kind(kind, changes, most) for kind, changes in self.changes.items()]
        return "\n\n".join([*parts, self._costs()]) if self else "the same"

    def _shown_kind(self, kind: str, changes: Sequence[Change], most: int | None) -> str:
        lines = [f"  {kind}"]
        for change in changes[:most]:
            line = self.after.lines.get(change.entry) or self.before.lines.get(change.entry)
            lines.append(f"    {shown(change.entry)}" + (f"  at {shown(str(line))}" if line else ""))
            both = (("-", change.before), ("+", change.after))
            lines += [f"      {mark} {shown(text)}" for mark, text in both if text is not None]
        if most is not None and len(changes) > most:
            lines.append(f"    and {len(changes) - most:,} others")
        return "\n".join(lines)

    def _costs(self) -> str:
        """What a device receives and needs, before and after."""
        received = _change_of_bytes(self.before.received, self.after.received)
        memory = _change_of_bytes(self.before.memory, self.after.memory)
        return f"  a device receives  {received}\n  and needs          {memory}"


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for entry in dict.fromkeys((*before, *after)):
        if before.get(entry) != after.get(entry):
            yield Change(entry, before.get(entry), after.get(entry))


def _change_of_bytes(before: int, after: int) -> str:
    if before == after:
        return f"{before:,} bytes, as before"
    percent = f" ({(after - before) / before:+.0%})" if before else ""
    return f"{before:,} bytes before, {after:,} after{percent}"
