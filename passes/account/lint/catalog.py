"""Catalog of the lint rules, in the order in which they run and are listed."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

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
    constraint_moves_batch,
    costly_argument,
    costly_constraint,
    donated_not_reused,
    exchange_along_dimension,
    forgotten_constraint,
    gather_before_custom_call,
    gather_before_reduction,
    generated_not_sharded,
    indivisible_dimension,
    late_cast,
    loop_over_sharded_dimension,
    loop_waits_for_rows,
    lost_constraint,
    manual_computation_gathers,
    manual_computation_repeats,
    manual_computation_returns_whole,
    many_small_collectives,
    misplaced_constraint,
    optimizer_state,
    replicated_parameter,
    replicated_tensor,
    reshard_through_replication,
    resharded_result,
    shuffled_batch,
    siblings_differ,
    sliced_argument,
    state_changes_layout,
    sum_before_reduction,
    sum_of_equal_values,
    sum_of_replicated_state,
    sum_over_sharded_operand,
    sum_over_sharded_state,
    unused_axis,
)
from sdy.passes.account.lint.thresholds import FixThresholds


@dataclass(frozen=True)
class Rule:
    """A lint rule.

    Attributes:
        name: The name, such as `unused-axis`.
        page: The documentation: the docstring of the rule's module.
        check: Yields the matches of the rule in a program.
        least: The threshold that the total of equal matches must reach: its bytes, or for `many` its count; None if its
            check decides that.
        severity: The severity of its findings.
        needs_cure: True if a match is a finding only where a fix that was tried helps.
        saves_arguments: True if a fix helps that saves only memory of the arguments, also if not at the peak.
        is_unmeasured: True if the costs of a match are a guess, and only those of its fix are known.
        is_last: True if the rule runs only where no other one has findings.
        is_of_time: True if a match is large too whose collectives take a large part of the step time, and a fix helps
            that saves as much of it.
        is_evident: True if a match is a mistake whatever it costs: its fix goes before others that save little more.
        fix: The savings that a fix needs.
    """

    name: str
    page: str | None
    check: Callable[[LintedProgram], Iterator[Suspicion]]
    least: str | None = "large"
    severity: Severity = Severity.WARNING
    needs_cure: bool = False
    is_unmeasured: bool = False
    saves_arguments: bool = False
    is_last: bool = False
    is_of_time: bool = False
    is_evident: bool = False
    fix: FixThresholds = field(default_factory=FixThresholds)

    def size(self, suspicion: Suspicion) -> float:
        """Return the quantity of a match that counts toward the threshold."""
        return suspicion.times if self.is_of_number else suspicion.cost

    @property
    def is_of_number(self) -> bool:
        """True if the number of collectives is the problem rather than their bytes, which other rules explain."""
        return self.least == "many"

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


def _rule(module: ModuleType, fix: FixThresholds | None = None, **fields: Any) -> Rule:
    """Return the rule of a module: it has the module's name, its docstring, and its function `check`."""
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    return Rule(name, module.__doc__, module.check, fix=fix or FixThresholds(), **fields)


_RULES = (
    _rule(
        siblings_differ,
        FixThresholds(slower=0.1, growth=0.15, traded=16),
        needs_cure=True,
        is_unmeasured=True,
        saves_arguments=True,
        is_evident=True,
    ),
    _rule(late_cast),
    _rule(loop_over_sharded_dimension, is_of_time=True),
    _rule(manual_computation_repeats),
    _rule(manual_computation_gathers),
    _rule(manual_computation_returns_whole, needs_cure=True),
    _rule(sum_of_equal_values),
    _rule(sum_before_reduction),
    _rule(gather_before_reduction),
    _rule(batch_not_sharded, needs_cure=True, is_unmeasured=True),
    _rule(generated_not_sharded, FixThresholds(faster=0.5), needs_cure=True, is_unmeasured=True),
    _rule(forgotten_constraint, FixThresholds(share=0.12), needs_cure=True, is_unmeasured=True),
    _rule(optimizer_state, is_evident=True),
    _rule(replicated_tensor, least="replicated"),
    _rule(replicated_parameter, FixThresholds(share=0.15), needs_cure=True, saves_arguments=True),
    _rule(indivisible_dimension),
    _rule(unused_axis),
    _rule(state_changes_layout, needs_cure=True),
    _rule(resharded_result, FixThresholds(part=0.75), needs_cure=True),
    _rule(sliced_argument, FixThresholds(share=0.05, growth=0.0), needs_cure=True, saves_arguments=True),
    _rule(donated_not_reused),
    _rule(shuffled_batch),
    _rule(gather_before_custom_call),
    _rule(chunks_cross_devices),
    _rule(sum_of_replicated_state, FixThresholds(share=0.05, part=0.4), needs_cure=True),
    _rule(sum_over_sharded_state, FixThresholds(share=0.05), needs_cure=True, is_of_time=True),
    _rule(sum_over_sharded_operand, FixThresholds(share=0.2, part=0.75), needs_cure=True),
    _rule(exchange_along_dimension, FixThresholds(share=0.2, part=0.75), needs_cure=True),
    _rule(carry_changes_layout),
    _rule(lost_constraint),
    _rule(misplaced_constraint, FixThresholds(share=0.05), needs_cure=True),
    _rule(constraint_moves_batch, FixThresholds(share=0.2), needs_cure=True, is_unmeasured=True),
    _rule(conflict_by_order, FixThresholds(share=0.05, time_share=0.15, many_large=8, part=0.2, slower=0.03)),
    _rule(reshard_through_replication),
    _rule(costly_constraint, FixThresholds(share=0.3, time_share=0.08, slower=0.0, growth=0.15), needs_cure=True),
    _rule(avoidable_reshard, FixThresholds(share=0.05, part=0.2), needs_cure=True),
    _rule(collective_in_loop),
    _rule(loop_waits_for_rows, least=None),
    _rule(many_small_collectives, least="many", severity=Severity.REMARK, is_of_time=True),
    _rule(costly_argument, FixThresholds(faster=0.25), needs_cure=True, is_unmeasured=True, is_last=True),
)
"""The rules, each with the fields that differ from the defaults of `Rule` and `FixThresholds`."""

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}
"""The rules by name."""
