"""Catalog of the lint rules, in the order in which they run and are listed."""

from collections.abc import Mapping

from sdy.diagnostics import Severity
from sdy.passes.account.lint.rule import Rule
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
