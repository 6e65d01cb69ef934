"""Two operands of an operation have conflicting shardings, and one of them is resharded.

They shard the same factor over different axes, or different factors over the same axis. The program order and the bytes
to move decide which of them is resharded, not an annotation.

Unavoidable and intended conflicts are not reported: a tensor times its own transpose; a parameter that is all-gathered
because the rows of the other operand are sharded over its axis, as in fully sharded data parallelism; a tensor that is
all-gathered from a sharding constraint, as in sequence parallelism; and one for which every layout that was tried costs
more, in a loop or if it is less than half of the bytes of a step.

Before::

    hidden = jax.nn.gelu(x @ up)  # up is sharded as P(None, "model"), and so is hidden
    return hidden @ down          # down is sharded as P(None, "model") too

After::

    return hidden @ down          # down is sharded as P("model", None), along the contracting dimension
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.rule_syntax import factor_name
from sdy.dialect.shardings import get_sharding
from sdy.factors import project
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.gather_before_custom_call import is_kernel
from sdy.passes.account.lint.wording import from_to, spec_of
from sdy.passes.common.loops import loops_around
from sdy.rule import OpShardingRule
from sdy.rules.registry import sharding_rule

_LEAST_UNCURED = 0.5
"""The smallest part of the bytes of a step for which a conflict is reported though no layout costs less."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find operands that are resharded because of a conflict with another operand."""
    for cause, collectives in program.collectives_by_cause.items():
        op = cause.operation
        position = next((index for index, operand in enumerate(op.operands) if operand is cause.tensor), None)
        if cause.purpose is not Purpose.RESHARD or position is None or is_kernel(op):
            continue
        sides = _Sides.of(program, op)
        conflict = sides and sides.conflict(position)
        if sides and conflict and not _is_intended(program, cause, collectives, sides, conflict):
            yield _suspicion(program, cause, conflict, sides, collectives)


@dataclass(frozen=True)
class _Conflict:
    """The resharded operand shards factor `own` over `axes`; operand `other` shards `others` over `others_axes`."""

    own: int
    axes: tuple[AxisRef, ...]
    other: int
    others: int
    others_axes: tuple[AxisRef, ...]


@dataclass(frozen=True)
class _Sides:
    """Factor shardings of the operands of an operation."""

    op: Operation
    rule: OpShardingRule
    axes: list[Mapping[int, tuple[AxisRef, ...]]]
    """For each operand, the axes of each factor that it shards."""

    @classmethod
    def of(cls, program: LintedProgram, op: Operation) -> "_Sides | None":
        rule = sharding_rule(op) if len(op.operands) > 1 else None
        shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
        if rule is None or len(rule.operands) != len(op.operands):
            return None
        meshes = {program.mesh_of(sharding) for sharding in shardings if sharding}
        if len(meshes) != 1 or (mesh := meshes.pop()) is None:
            return None
        operands = project(rule, shardings, mesh).operands
        return cls(op, rule, [{f: s.axes for f, s in each.factors.items() if s.axes} for each in operands])

    def conflict(self, position: int) -> _Conflict | None:
        """Return the first conflict of the operand at `position` with another operand."""
        for own, axes in self.axes[position].items():
            for other, theirs in enumerate(self.axes):
                for factor, their_axes in theirs.items() if other != position else ():
                    overlap = any(a.overlaps(b) for a in axes for b in their_axes)
                    if (factor == own and not overlap) or (factor != own and overlap):
                        return _Conflict(own, axes, other, factor, their_axes)
        return None


def _is_intended(
    program: LintedProgram, cause: Cause, collectives: list[Collective], sides: _Sides, conflict: _Conflict
) -> bool:
    """Return whether a conflict is unavoidable, or part of a known parallelization scheme."""
    assert cause.tensor is not None
    sources = [*program.use_def.trace(cause.tensor)]
    if not {*sources}.isdisjoint(program.use_def.trace(cause.operation.operands[conflict.other])):
        return True
    if any(each.kind != "all-gather" for each in collectives) or conflict.others in sides.rule.reduction:
        return False
    return program.is_argument(cause.tensor) or any(
        program.is_constrained(cause.tensor, axis) for axis in conflict.axes
    )


def _suspicion(
    program: LintedProgram, cause: Cause, conflict: _Conflict, sides: _Sides, collectives: list[Collective]
) -> Suspicion:
    assert cause.tensor is not None
    op, other = cause.operation, cause.operation.operands[conflict.other]
    mine, theirs = program.called(cause.tensor), program.called(other)
    sizes = sides.rule.factor_sizes
    received = sum(each.bytes for each in collectives)
    what = (
        f"two operands of {op.name} have conflicting shardings: {mine} shards factor "
        f"{factor_name(conflict.own)}={sizes[conflict.own]} over {axes_text(conflict.axes)}, and {theirs} shards "
        f"factor {factor_name(conflict.others)}={sizes[conflict.others]} over {axes_text(conflict.others_axes)}; the "
        f"first is resharded {from_to(cause.before, cause.after)}"
    )
    return Suspicion(
        op,
        what,
        f"shard {mine} as {spec_of(cause.after)}, as the operation requires, or change the sharding of {theirs}",
        [GivenBy(cause.tensor, conflict.axes), GivenBy(other, conflict.others_axes)],
        received=received,
        collectives=[each.op for each in collectives],
        cures=Candidates(program).of_cause(cause),
        needs_cure=any(loops_around(op)) or received < _LEAST_UNCURED * program.costs.received,
        cause=_origin(program, cause.tensor, conflict.axes),
    )


def _origin(program: LintedProgram, value: SSAValue, axes: Sequence[AxisRef]) -> object:
    """Return the origin of axes of a value, which all conflicts that it leads to share; None if it is unknown."""
    chains = (chain for chain in program.chains(value) if any(chain.axis.overlaps(axis) for axis in axes))
    return next(((chain.origin.text, chain.origin.where) for chain in chains), None)
