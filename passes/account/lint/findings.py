"""Lint findings: costly patterns in a program, their causes, and the suggested fixes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import Diagnostic, Location, Severity
from sdy.formatting import escape_line, format_bytes, format_seconds
from sdy.passes.account.cost_tables import ALONE
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.name_lists import joined, shortened, with_ranges

if TYPE_CHECKING:
    from sdy.passes.account.account import Account


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
    """The suggested fix, where it cannot be tried."""
    reasons: Sequence[Reason] = ()
    received: float = 0.0
    """The bytes that a device receives because of it in a step, averaged over devices."""
    held: int = 0
    """The additional bytes that a device holds because of it."""
    avoided: float = 0.0
    """The bytes that a device would receive because of it as `jax.jit` compiles the program, where sdy moves none."""
    times: int = 1
    """The number of problems that this match stands for."""
    collectives: Sequence[Operation] = ()
    """The collectives of the partitioned program that it explains. The first rule that explains one reports it."""
    cures: Sequence[Cure] = ()
    """Fixes to try, the most likely first: the best is suggested, and none if none helps."""
    needs_cure: bool = False
    """True if it is a problem only where one of `cures` helps."""
    cause: object = None
    """The key of a cause that matches with different problems share, which are then one; None if the problem is it."""

    @property
    def cost(self) -> float:
        """Bytes received, held and avoided."""
        return self.received + self.held + self.avoided


@dataclass(frozen=True, repr=False)
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
    """The suggested fix; empty if none helps."""
    reasons: tuple[Diagnostic, ...] = ()
    """Notes that explain the cause."""
    received: float = 0.0
    """The bytes that a device receives in a step for all occurrences, averaged over devices."""
    held: int = 0
    """The additional bytes that a device holds for all occurrences."""
    avoided: float = 0.0
    """The bytes that a device would receive as `jax.jit` compiles the program, where sdy moves none."""
    like: int = 0
    """The number of further occurrences."""
    others: tuple[str, ...] = ()
    """The names or the locations of the further occurrences, where they differ from that of the costliest."""
    severity: Severity = Severity.WARNING
    compared: str = ""
    """The predicted costs with the suggested fix beside those without it; empty if it was not tried."""
    edits: tuple[str, ...] = ()
    """The suggested fix as one instruction for each argument or line, if it was tried."""
    seconds: float = 0.0
    """The time of a step that the suggested fix saves, where it saves few bytes."""
    removes: tuple["Finding", ...] = ()
    """The other findings that the suggested fix removes."""
    remains: tuple["Finding", ...] = ()
    """Other findings of the arguments or the axes of the suggested fix, which are left with it."""
    collectives: frozenset[Operation] = field(default=frozenset(), repr=False, compare=False)
    """The collectives of the partitioned program that it explains, and those of the folded findings."""

    @property
    def folded(self) -> int:
        """The number of other findings that the suggested fix removes."""
        return len(self.removes)

    @property
    def cost(self) -> float:
        """Bytes received, held and avoided, by which findings are sorted."""
        return self.received + self.held + self.avoided

    @property
    def message(self) -> str:
        """The problem and its cost per device."""
        cost = cost_text(self.received, self.held)
        if self.seconds:
            cost = f"a step takes {format_seconds(self.seconds)} longer"
        elif self.avoided and cost:
            cost += f", and {format_bytes(self.avoided)} more of it as jax.jit compiles it"
        elif self.avoided:
            cost = f"each device receives {format_bytes(self.avoided)} as jax.jit compiles it, and none of it here"
        others = (
            f": {', '.join(with_ranges(self.others, 'Finding.others'))}"
            if self.others
            else " at this line"
            if self.where
            else ""
        )
        like = f" (and {self.like:,} more like it{others})" if self.like else ""
        return self.what + (f": {cost}" if cost else "") + like

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """Identity of the finding that does not change when source lines move: rule, file and problem."""
        return self.rule, self.where.filename if self.where else "", without_numbers(self.what)

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as a compiler warning, with notes for the call site, the reasons and the fix."""
        called = [Diagnostic(Severity.NOTE, self.caller, "called from here")] if self.caller else []
        notes = [*called, *self.reasons]
        if self.cure:
            compared = f"; {self.compared}" if self.compared else ""
            notes.append(Diagnostic(Severity.NOTE, self.where, f"fix: {self.cure}{compared}"))
        if self.removes:
            others = "another finding" if self.folded == 1 else f"{self.folded:,} other findings"
            listed = joined(shortened([each.label for each in self.removes], "Finding.removes"))
            notes.append(Diagnostic(Severity.NOTE, self.where, f"the fix removes {others} too: {listed}"))
        for each in self.remains:
            fix = f"; {each.cure}" if each.cure else ""
            notes.append(Diagnostic(Severity.NOTE, each.where, f"left with it: {each.message} [{each.rule}]{fix}"))
        return Diagnostic(self.severity, self.where, f"{self.message} [{self.rule}]", tuple(notes))

    @property
    def label(self) -> str:
        """The rule, and the line if it is known."""
        return f"{self.rule} at {self.where.short}" if self.where else self.rule

    def __repr__(self) -> str:
        return f"<{self.label}: {escape_line(self.message)}>"

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
    """Replace numbers of arguments in a problem's text, so that those of all layers are equal: `params['up_3']`."""
    named = re.sub(r"\bargument \d+ \([^()]*\)", lambda name: re.sub(r"\d+", "*", name[0]), what)
    return re.sub(r"\[\d[\d,.]*\]", "[*]", re.sub(r"\b(argument|result) \d+", r"\1 *", named))


@dataclass(frozen=True)
class Below:
    """The findings below the threshold `large`, and the value of it that shows them.

    `str` formats them for Python.
    """

    number: int
    threshold: int
    large: str

    def __str__(self) -> str:
        return self._with(f'lint_options=sdy.LintOptions(large="{self.large}")')

    @property
    def in_command(self) -> str:
        """The text for the command line, with the option of `sdy-lint`."""
        return self._with(f"--large {self.large}")

    def _with(self, option: str) -> str:
        return f"above {format_bytes(self.threshold)}; {self.number:,} below it: {option}"


@dataclass(frozen=True, repr=False)
class Findings:
    """Sequence of findings, the costliest first; false if it is empty; `str` formats them as compiler diagnostics."""

    findings: Sequence[Finding] = ()
    below: Below | None = None
    """The findings below the threshold, if there are any."""
    costs: "Account | None" = None
    """The costs of the program as sdy and as XLA partitions it, if they were asked for."""
    hint: str = ""
    """The hint if no sharding is given; empty otherwise."""
    failed: Sequence[str] = ()
    """The rules that failed with an exception, a fault of sdy: their findings are missing."""

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
        return self._summary(str(self.below or ""))

    def _summary(self, below: str) -> str:
        missing = f", without those of {joined(self.failed)}, which failed" if self.failed else ""
        if not self:
            return f"no findings {below}".rstrip() + missing
        number = "1 finding" if len(self) == 1 else f"{len(self):,} findings"
        cost = cost_text(self.received, self.held)
        total = f"{number}: {cost}" if cost else number
        return (f"{total}, {below}" if below else total) + missing

    def __str__(self) -> str:
        return self._text(self.summary)

    @property
    def in_command(self) -> str:
        """The text for the command line, which names options of `sdy-lint` rather than of Python."""
        return self._text(self._summary(self.below.in_command if self.below else ""))

    def _text(self, summary: str) -> str:
        hint = [f"hint: {self.hint}"] if self.hint else []
        return "\n".join([*(f"{each}\n" for each in self.findings), summary, self._partitioned, *hint])

    @property
    def _partitioned(self) -> str:
        """The partitioner that the findings are of, and the costs of the other one."""
        if self.costs is None:
            return f"partitioned {ALONE}"
        from sdy.passes.account.account import format_under

        return format_under(self.costs)

    __repr__ = __str__
