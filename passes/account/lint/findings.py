"""The findings of lint in one program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdy.passes.account.lint.finding import Finding, cost_text


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
