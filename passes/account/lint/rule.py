"""A rule of lint: a name, a page of its own, and what it finds in a program."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sdy.diagnostics import Severity
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram


@dataclass(frozen=True)
class Rule:
    """What is looked for. What is less in all than the threshold `least` is not told: that many bytes, or for `many`
    that many times."""

    name: str
    page: str | None
    """The docstring of its file."""
    check: Callable[[LintedProgram], Iterator[Suspicion]]
    least: str = "large"
    severity: Severity = Severity.WARNING

    def size(self, suspicion: Suspicion) -> float:
        """What of a suspicion is held against the threshold."""
        return suspicion.times if self.least == "many" else suspicion.cost

    @property
    def text(self) -> str:
        """Its page: why it is there, and programs before and after."""
        return inspect.cleandoc(self.page or "")

    @property
    def summary(self) -> str:
        """The first line of its page."""
        return self.text.partition("\n")[0]

    @property
    def file(self) -> str:
        """Its file in the checkout."""
        return self.check.__module__.removeprefix("sdy.").replace(".", "/") + ".py"
