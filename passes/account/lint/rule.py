"""Lint rules: a name, a documentation page and a check."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sdy.diagnostics import Severity
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram


@dataclass(frozen=True)
class Rule:
    """A lint rule.

    Attributes:
        name: The name, such as `unused-axis`.
        page: The documentation: the docstring of the rule's module.
        check: Yields the matches of the rule in a program.
        least: The threshold that the total of equal matches must reach: its bytes, or for `many` its count.
        severity: The severity of its findings.
    """

    name: str
    page: str | None
    check: Callable[[LintedProgram], Iterator[Suspicion]]
    least: str = "large"
    severity: Severity = Severity.WARNING

    def size(self, suspicion: Suspicion) -> float:
        """Return the quantity of a match that counts toward the threshold."""
        return suspicion.times if self.least == "many" else suspicion.cost

    @property
    def text(self) -> str:
        """The documentation page: the problem, and programs before and after the fix."""
        return inspect.cleandoc(self.page or "")

    @property
    def summary(self) -> str:
        """The first line of the documentation page."""
        return self.text.partition("\n")[0]

    @property
    def file(self) -> str:
        """The path of the rule's module in the repository."""
        return self.check.__module__.removeprefix("sdy.").replace(".", "/") + ".py"
