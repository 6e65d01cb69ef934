"""Catalog of the lint rules, in the order in which they run and are listed."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sdy.diagnostics import Severity
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules import (
    avoidable_reshard,
    batch_not_sharded,
    carry_changes_layout,
    chunks_cross_devices,
    collective_in_loop,
    conflict_by_order,
    costly_argument,
    costly_constraint,
    donated_not_reused,
    exchange_along_dimension,
    gather_before_custom_call,
    indivisible_dimension,
    late_cast,
    loop_over_sharded_dimension,
    lost_constraint,
    manual_computation_gathers,
    manual_computation_returns_whole,
    many_small_collectives,
    optimizer_state,
    replicated_parameter,
    replicated_tensor,
    reshard_through_replication,
    siblings_differ,
    state_changes_layout,
    sum_over_sharded_operand,
    sum_over_sharded_state,
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
        needs_cure: True if a match is a finding only where a fix that was tried helps.
        saves_arguments: True if a fix helps that saves only memory of the arguments, also if not at the peak.
        slowdown: The part by which the predicted time may grow while fewer bytes are received: it is not more exact.
        share: The smallest part of the bytes or the time of a step that a fix saves.
        part: The smallest part of the bytes received for a match that a fix saves: an all-gather in place of an
            all-reduce saves half.
        is_unmeasured: True if the costs of a match are a guess, and only those of its fix are known.
        faster: The smallest part of the step time that a fix saves, if any, which then receives no more bytes.
        is_last: True if the rule runs only where no other one has findings.
    """

    name: str
    page: str | None
    check: Callable[[LintedProgram], Iterator[Suspicion]]
    least: str = "large"
    severity: Severity = Severity.WARNING
    needs_cure: bool = False
    is_unmeasured: bool = False
    saves_arguments: bool = False
    slowdown: float = 0.02
    share: float = 0.01
    part: float = 0.0
    faster: float = 0.0
    is_last: bool = False

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
    Rule(
        "siblings-differ",
        siblings_differ.__doc__,
        siblings_differ.check,
        needs_cure=True,
        is_unmeasured=True,
        saves_arguments=True,
        slowdown=0.1,
    ),
    Rule("late-cast", late_cast.__doc__, late_cast.check),
    Rule("loop-over-sharded-dimension", loop_over_sharded_dimension.__doc__, loop_over_sharded_dimension.check),
    Rule("manual-computation-gathers", manual_computation_gathers.__doc__, manual_computation_gathers.check),
    Rule(
        "manual-computation-returns-whole",
        manual_computation_returns_whole.__doc__,
        manual_computation_returns_whole.check,
        needs_cure=True,
    ),
    Rule("batch-not-sharded", batch_not_sharded.__doc__, batch_not_sharded.check, needs_cure=True, is_unmeasured=True),
    Rule("optimizer-state", optimizer_state.__doc__, optimizer_state.check),
    Rule("replicated-tensor", replicated_tensor.__doc__, replicated_tensor.check, least="replicated"),
    Rule(
        "replicated-parameter",
        replicated_parameter.__doc__,
        replicated_parameter.check,
        needs_cure=True,
        saves_arguments=True,
        share=0.15,
    ),
    Rule("indivisible-dimension", indivisible_dimension.__doc__, indivisible_dimension.check),
    Rule("unused-axis", unused_axis.__doc__, unused_axis.check),
    Rule("state-changes-layout", state_changes_layout.__doc__, state_changes_layout.check, needs_cure=True),
    Rule("donated-not-reused", donated_not_reused.__doc__, donated_not_reused.check),
    Rule("gather-before-custom-call", gather_before_custom_call.__doc__, gather_before_custom_call.check),
    Rule("chunks-cross-devices", chunks_cross_devices.__doc__, chunks_cross_devices.check),
    Rule(
        "sum-over-sharded-state",
        sum_over_sharded_state.__doc__,
        sum_over_sharded_state.check,
        needs_cure=True,
        share=0.05,
    ),
    Rule(
        "sum-over-sharded-operand",
        sum_over_sharded_operand.__doc__,
        sum_over_sharded_operand.check,
        needs_cure=True,
        share=0.2,
        part=0.75,
    ),
    Rule(
        "exchange-along-dimension",
        exchange_along_dimension.__doc__,
        exchange_along_dimension.check,
        needs_cure=True,
        share=0.2,
        part=0.75,
    ),
    Rule("carry-changes-layout", carry_changes_layout.__doc__, carry_changes_layout.check),
    Rule("lost-constraint", lost_constraint.__doc__, lost_constraint.check),
    Rule(
        "conflict-by-order",
        conflict_by_order.__doc__,
        conflict_by_order.check,
        slowdown=0.03,
        share=0.05,
        part=0.2,
    ),
    Rule("reshard-through-replication", reshard_through_replication.__doc__, reshard_through_replication.check),
    Rule("costly-constraint", costly_constraint.__doc__, costly_constraint.check, needs_cure=True, share=0.05),
    Rule(
        "avoidable-reshard",
        avoidable_reshard.__doc__,
        avoidable_reshard.check,
        needs_cure=True,
        share=0.05,
        part=0.2,
    ),
    Rule("collective-in-loop", collective_in_loop.__doc__, collective_in_loop.check),
    Rule(
        "many-small-collectives",
        many_small_collectives.__doc__,
        many_small_collectives.check,
        least="many",
        severity=Severity.REMARK,
    ),
    Rule(
        "costly-argument",
        costly_argument.__doc__,
        costly_argument.check,
        needs_cure=True,
        is_unmeasured=True,
        faster=0.25,
        is_last=True,
    ),
)

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}
"""The rules by name."""
