"""A sharding constraint that no use of the tensor keeps: it is resharded at once, to what it had before or elsewhere.

The constraint then costs, and gives nothing: what follows is split otherwise. An all-gather after a constraint is told
only where the tensor had no such axis before, as the constraint may be there to keep the rest split.

Before::

    v = jax.lax.with_sharding_constraint(v, P("data", "model"))  # the sequence, while q and k have their heads split

After::

    v = jax.lax.with_sharding_constraint(v, P("data", None, "model"))
"""

from collections.abc import Iterator

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import moves
from sdy.passes.common.shown_sharding import dims_of
from sdy.sharding import equivalent


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The constraints all of whose uses reshard what they say."""
    causes: dict[ReshardOp, list[Cause]] = {}
    for cause in program.collectives_by_cause:
        if cause.purpose is Purpose.RESHARD and cause.tensor and isinstance(cause.tensor.owner, ReshardOp):
            causes.setdefault(cause.tensor.owner, []).append(cause)
    for constraint, uses in causes.items():
        if _is_lost(constraint, uses):
            collectives = [each for cause in uses for each in program.collectives_by_cause[cause]]
            wanted = constraint.sharding.data
            places = dict.fromkeys(
                (program.place(cause.operation), f"{cause.operation.name} needs it as {dims_of(cause.after)}")
                for cause in uses
            )
            yield Suspicion(
                constraint,
                f"the constraint {dims_of(wanted)} on {constraint.result.type} is kept by no use of the tensor",
                f"ask for {dims_of(uses[0].after)} there, which is what is needed, or leave the constraint out",
                [*places],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
            )


def _is_lost(constraint: ReshardOp, uses: list[Cause]) -> bool:
    resharding = {cause.operation for cause in uses}
    before, wanted = get_sharding(constraint.input), constraint.sharding.data
    return all(use.operation in resharding for use in constraint.result.uses) and all(
        equivalent(before, cause.after) or moves(wanted, cause.after) for cause in uses
    )
