"""Catalog of the lint rules, in the order in which they run and are listed."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sdy.diagnostics import Severity
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules import (
    carry_changes_layout,
    chunks_cross_devices,
    collective_in_loop,
    conflict_by_order,
    donated_not_reused,
    gather_before_custom_call,
    indivisible_dimension,
    lost_constraint,
    many_small_collectives,
    optimizer_state,
    replicated_tensor,
    reshard_through_replication,
    unused_axis,
)


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


_RULES = (
    Rule("replicated-tensor", replicated_tensor.__doc__, replicated_tensor.check, least="replicated"),
    Rule("indivisible-dimension", indivisible_dimension.__doc__, indivisible_dimension.check),
    Rule("unused-axis", unused_axis.__doc__, unused_axis.check),
    Rule("optimizer-state", optimizer_state.__doc__, optimizer_state.check),
    Rule("donated-not-reused", donated_not_reused.__doc__, donated_not_reused.check),
    Rule("gather-before-custom-call", gather_before_custom_call.__doc__, gather_before_custom_call.check),
    Rule("chunks-cross-devices", chunks_cross_devices.__doc__, chunks_cross_devices.check),
    Rule("carry-changes-layout", carry_changes_layout.__doc__, carry_changes_layout.check),
    Rule("lost-constraint", lost_constraint.__doc__, lost_constraint.check),
    Rule("conflict-by-order", conflict_by_order.__doc__, conflict_by_order.check),
    Rule("reshard-through-replication", reshard_through_replication.__doc__, reshard_through_replication.check),
    Rule("collective-in-loop", collective_in_loop.__doc__, collective_in_loop.check),
    Rule(
        "many-small-collectives",
        many_small_collectives.__doc__,
        many_small_collectives.check,
        least="many",
        severity=Severity.REMARK,
    ),
)

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}
"""The rules by name."""
