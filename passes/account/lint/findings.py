"""Lint findings: costly patterns in a program, their causes, and the suggested fixes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import Diagnostic, Location, Severity
from sdy.formatting import format_bytes


@dataclass(frozen=True, eq=False)
class GivenBy:
    """Reason that explains the axes of a tensor, or some of them, by the origin that they were propagated from."""

    tensor: SSAValue
    axes: Sequence[AxisRef] = ()


Reason = tuple[Location | None, str] | GivenBy
"""A message, with a location other than the finding's or None; or the origin of a tensor's axes."""


@dataclass(frozen=True, eq=False)
class Suspicion:
    """Match of a rule at one place of a program, before the costs of equal matches are compared with the threshold."""

    at: Operation | SSAValue | Location | None
    what: str
    """The problem, without its cost. Equal problems have equal texts, so that they can be reported as one."""
    cure: str
    """The suggested fix."""
    reasons: Sequence[Reason] = ()
    received: float = 0.0
    """The bytes that a device receives because of it in a step, averaged over devices."""
    held: int = 0
    """The additional bytes that a device holds because of it."""
    times: int = 1
    """The number of problems that this match stands for."""
    collectives: Sequence[Operation] = ()
    """The collectives of the partitioned program that it explains. The first rule that explains one reports it."""

    @property
    def cost(self) -> float:
        """Bytes received plus bytes held."""
        return self.received + self.held


@dataclass(frozen=True)
class Finding:
    """A reported problem, together with its repetitions elsewhere in the program.

    `str` formats it as a compiler diagnostic with its source line and notes.
    """

    rule: str
    """The name of the rule."""
    where: Location | None
    """The location of the costliest occurrence, or None if it is unknown."""
    caller: Location | None
    """The call site of the function that contains `where`, or None if it is unknown."""
    what: str
    """The problem, without its cost."""
    cure: str
    """The suggested fix."""
    reasons: tuple[Diagnostic, ...] = ()
    """Notes that explain the cause."""
    received: float = 0.0
    """The bytes that a device receives in a step for all occurrences, averaged over devices."""
    held: int = 0
    """The additional bytes that a device holds for all occurrences."""
    like: int = 0
    """The number of further occurrences."""
    severity: Severity = Severity.WARNING

    @property
    def cost(self) -> float:
        """Bytes received plus bytes held, by which findings are sorted."""
        return self.received + self.held

    @property
    def message(self) -> str:
        """The problem and its cost per device."""
        cost = cost_text(self.received, self.held)
        like = f" (and {self.like:,} more like it)" if self.like else ""
        return self.what + (f": {cost}" if cost else "") + like

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """Identity of the finding that does not change when source lines move: rule, file and problem."""
        return self.rule, self.where.filename if self.where else "", without_numbers(self.what)

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as a compiler warning, with notes for the call site, the reasons and the fix."""
        called = [Diagnostic(Severity.NOTE, self.caller, "called from here")] if self.caller else []
        notes = [*called, *self.reasons, Diagnostic(Severity.NOTE, self.where, f"fix: {self.cure}")]
        return Diagnostic(self.severity, self.where, f"{self.message} [{self.rule}]", tuple(notes))

    def __str__(self) -> str:
        diagnostic = self.diagnostic
        # Do not repeat the source line of the warning.
        notes = (
            note.render().partition("\n")[0] if note.location == self.where else note.render()
            for note in diagnostic.notes
        )
        return "\n".join([replace(diagnostic, notes=()).render(), *notes])


def cost_text(received: float, held: int) -> str:
    """Format the cost per device, such as `each device receives 4 MiB more`; empty without a cost."""
    costs: list[str] = []
    if round(received):
        costs.append(f"receives {format_bytes(received)} more")
    if held:
        costs.append(f"needs {format_bytes(held)} more memory")
    return f"each device {' and '.join(costs)}" if costs else ""


def without_numbers(what: str) -> str:
    """Replace indices in a problem's text, so that those of all layers are equal: `params[3]` by `params[*]`."""
    return re.sub(r"\[\d+\]", "[*]", re.sub(r"\b(argument|result) \d+", r"\1 *", what))


@dataclass(frozen=True, repr=False)
class Findings:
    """Sequence of findings, the costliest first; false if it is empty; `str` formats them as compiler diagnostics."""

    findings: Sequence[Finding] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def received(self) -> float:
        """The bytes that a device receives in a step for all findings, averaged over devices."""
        return sum(each.received for each in self.findings)

    @property
    def held(self) -> int:
        """The additional bytes that a device holds for all findings, if all are live at once."""
        return sum(each.held for each in self.findings)

    @property
    def summary(self) -> str:
        """The number of findings and their total cost, in one line."""
        if not self:
            return "no findings"
        number = "1 finding" if len(self) == 1 else f"{len(self):,} findings"
        cost = cost_text(self.received, self.held)
        return f"{number}: {cost}" if cost else number

    def __str__(self) -> str:
        return "\n".join([*(f"{each}\n" for each in self.findings), self.summary])

    __repr__ = __str__
