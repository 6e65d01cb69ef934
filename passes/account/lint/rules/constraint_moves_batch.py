"""A constraint splits another dimension over the axis of the batch, and so does all that leads to it.

Propagation carries a constraint back through elementwise operations and products to where a tensor still has the axis
in the batch. The cheap reshard is there, of the images or of the tokens, while all that follows the constraint computes
with another dimension split, such as the sequence, which attention gathers. The rule tries to change or to remove the
constraint that takes the axis from the batch.

Before::

    x = embed(patches(images))  # images are sharded as P("data")
    x = jax.lax.with_sharding_constraint(x, P(None, "data"))

After::

    x = jax.lax.with_sharding_constraint(x, P("data"))
"""

from collections.abc import Iterator

from sdy.dialect.axis_syntax import axes_text, format_dims
from sdy.dialect.ops import ReshardOp
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.forgotten_constraint import batch_axes, lost_axes

_MOST_TRIED = 2
"""Number of constraints that are changed."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find the constraints that the first results stem from which lose an axis of the batch."""
    candidates, tried = Candidates(program), dict[ReshardOp, None]()
    batch = batch_axes(program)
    for op in program.operations if batch else ():
        for index, lost, _ in lost_axes(op, batch):
            result = op.results[index]
            for constraint in candidates.constraints_behind(result, lost):
                if constraint in tried or len(tried) == _MOST_TRIED:
                    continue
                tried[constraint] = None
                yield Suspicion(
                    constraint,
                    f"the sharding constraint {format_dims(constraint.sharding.data)} on {constraint.result.type} "
                    f"splits another dimension than the batch over {axes_text(lost)}: {program.called(result)}, "
                    f"{result.type}, loses the axes",
                    "",
                    [GivenBy(result, lost)],
                    held=program.thresholds.large,
                    cures=candidates.of_constraint(constraint),
                )
