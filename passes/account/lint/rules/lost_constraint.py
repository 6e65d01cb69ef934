"""A sharding constraint that every use of the tensor reshards away.

The constraint then only costs: the operations that follow compute with another sharding. An all-gather after a
constraint is reported only if the tensor did not have the axis before, since the constraint may serve other dimensions.

Before::

    v = jax.lax.with_sharding_constraint(v, P("data", "model"))  # the sequence, while q and k have their heads split

After::

    v = jax.lax.with_sharding_constraint(v, P("data", None, "model"))
"""

from collections.abc import Iterator

from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import dims_of
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import moves, sharded_as
from sdy.sharding import equivalent


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find constraints whose uses all reshard the constrained tensor."""
    causes: dict[ReshardOp, list[Cause]] = {}
    for cause in program.collectives_by_cause:
        if cause.purpose is Purpose.RESHARD and cause.tensor and isinstance(cause.tensor.owner, ReshardOp):
            causes.setdefault(cause.tensor.owner, []).append(cause)
    for constraint, uses in causes.items():
        if constraint not in program.passed_on and _is_lost(constraint, uses):
            collectives = [each for cause in uses for each in program.collectives_by_cause[cause]]
            wanted = constraint.sharding.data
            places = dict.fromkeys(
                (program.place(cause.operation), f"{cause.operation.name} requires it {sharded_as(cause.after)}")
                for cause in uses
            )
            yield Suspicion(
                constraint,
                f"every use of {constraint.result.type} reshards it from its constraint {format_dims(wanted)}",
                f"constrain it to {format_dims(uses[0].after)}, as its use requires, or remove the constraint",
                [*places],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
                needs_cure=True,
                cures=Candidates(program).of_constraint(constraint, dims_of(uses[0].after, constraint.result)),
            )


def _is_lost(constraint: ReshardOp, uses: list[Cause]) -> bool:
    resharding = {cause.operation for cause in uses}
    before, wanted = get_sharding(constraint.input), constraint.sharding.data
    return all(use.operation in resharding for use in constraint.result.uses) and all(
        equivalent(before, cause.after) or moves(wanted, cause.after) for cause in uses
    )
