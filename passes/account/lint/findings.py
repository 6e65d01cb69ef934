"""All that lint finds in a program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdy.byte_sizes import shown_bytes
from sdy.passes.account.lint.finding import Finding


@dataclass(frozen=True, repr=False)
class Findings:
    """What was found, the costliest first; true where there is anything; as text, the compiler's diagnostics."""

    findings: Sequence[Finding] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def received(self) -> float:
        """The bytes that a device receives in a step for all of them, on average."""
        return sum(each.received for each in self.findings)

    @property
    def held(self) -> int:
        """The bytes that a device needs more for all of them, if all are in memory at once."""
        return sum(each.held for each in self.findings)

    @property
    def summary(self) -> str:
        """How many there are, and what they cost together."""
        if not self:
            return "nothing found"
        number = "1 finding" if len(self) == 1 else f"{len(self):,} findings"
        costs = (("receives", self.received), ("needs", self.held))
        told = " and ".join(f"{verb} {shown_bytes(size)} more" for verb, size in costs if round(size))
        return f"{number}: each device {told}" if told else number

    def __str__(self) -> str:
        return "\n".join([*(f"{each}\n" for each in self.findings), self.summary])

    __repr__ = __str__
