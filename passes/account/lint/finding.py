"""What lint tells of a program: something that costs, where it comes from, and what to write instead."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.byte_sizes import shown_bytes
from sdy.diagnostics import Diagnostic, Location, Severity


@dataclass(frozen=True, eq=False)
class GivenBy:
    """The reason that a tensor has axes, these or all: who gave each, and over how many operations it came."""

    tensor: SSAValue
    axes: Sequence[AxisRef] = ()


Reason = tuple[Location | None, str] | GivenBy
"""Words, with a place of their own or where the finding is; or who gave axes to a tensor."""


@dataclass(frozen=True, eq=False)
class Suspicion:
    """What a rule finds at one place of a program, before anybody has asked whether it costs enough to be told."""

    at: Operation | SSAValue | Location | None
    what: str
    """What is wrong there, without what it costs, in the same words wherever the same is wrong."""
    cure: str
    """What to write instead."""
    reasons: Sequence[Reason] = ()
    received: float = 0.0
    """The bytes that a device receives for it in a step, on average."""
    held: int = 0
    """The bytes that a device needs for it beside what it would need without."""
    times: int = 1
    """How many things are wrong at once."""
    collectives: Sequence[Operation] = ()
    """Of the program of one device: that which another rule has told the reason of already is told no second one."""

    @property
    def cost(self) -> float:
        """All bytes."""
        return self.received + self.held


@dataclass(frozen=True)
class Finding:
    """What is told: what a rule found at one place, and how often it found the like elsewhere.

    Bytes are those of all of them. As text, it is a diagnostic of the compiler with its source line and its notes.
    """

    rule: str
    where: Location | None
    caller: Location | None
    """Where the function is called that `where` is in, if that is known."""
    what: str
    """What is wrong, without what it costs."""
    cure: str
    """What to write instead."""
    reasons: tuple[Diagnostic, ...] = ()
    received: float = 0.0
    """The bytes that a device receives in a step, on average."""
    held: int = 0
    """The bytes that a device needs more."""
    like: int = 0
    """How many others are like it."""
    severity: Severity = Severity.WARNING

    @property
    def cost(self) -> float:
        """All bytes; the findings that cost most are told first."""
        return self.received + self.held

    @property
    def message(self) -> str:
        """What is wrong, and what that costs a device."""
        costs = (("receives", self.received), ("needs", self.held))
        told = " and ".join(f"{verb} {shown_bytes(size)} more" for verb, size in costs if round(size))
        like = f" (and {self.like:,} more like it)" if self.like else ""
        return self.what + (f": each device {told}" if told else "") + like

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """What is the same of the same finding when lines have moved: rule, file, and what is wrong."""
        return self.rule, self.where.filename if self.where else "", without_numbers(self.what)

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as the compiler tells a warning: the notes say why, and what to write."""
        called = [Diagnostic(Severity.NOTE, self.caller, "called from here")] if self.caller else []
        notes = [*called, *self.reasons, Diagnostic(Severity.NOTE, self.where, f"instead: {self.cure}")]
        return Diagnostic(self.severity, self.where, f"{self.message} [{self.rule}]", tuple(notes))

    def __str__(self) -> str:
        diagnostic = self.diagnostic
        # The line of source that stands there already is not shown again.
        notes = (
            note.render().partition("\n")[0] if note.location == self.where else note.render()
            for note in diagnostic.notes
        )
        return "\n".join([replace(diagnostic, notes=()).render(), *notes])


def without_numbers(what: str) -> str:
    """What is wrong, in the words that all layers of a model have in common: `params[3]` is `params[*]`."""
    return re.sub(r"\[\d+\]", "[*]", re.sub(r"\b(argument|result) \d+", r"\1 *", what))
