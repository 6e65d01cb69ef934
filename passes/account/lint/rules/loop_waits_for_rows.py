"""A loop goes on while any row does, though the rows are sharded: each iteration waits for all devices.

`jax.vmap` of a `while_loop` makes such loops, with an all-reduce in the condition. Devices leave them when their own
rows have ended, without the all-reduce, unless values that change in rows that have ended are read later, or the body
communicates, too: solvers of diffrax that reuse the last stage of a step ask in each step whether any row began anew.
The finding says which. It is reported if the all-reduce takes a part of the predicted time, however few bytes it moves:
the number of iterations is unknown.

Before::

    def solve(y0):  # sharded over "data"
        return jax.vmap(one_solution)(y0)

After::

    @jax.shard_map(in_specs=P("data"), out_specs=P("data"))
    def solve(y0):  # each device goes on while any of its own rows does
        return jax.vmap(one_solution)(y0)
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr

from sdy.dialect.attributes import ROW_LOOP
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.loops import loops_around
from sdy.stablehlo.control_flow import WhileOp

_LEAST_TIME = 0.05
"""The part of the step time, with one iteration of the loop, that the all-reduce takes if it is reported."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find all-reduces in conditions of loops that devices cannot leave with their own rows."""
    for collective in program.collectives:
        loop = next(loops_around(collective.op), None)
        reason = _reason(collective, loop)
        if reason is None or program.seconds([collective.op]) < _LEAST_TIME * program.costs.seconds:
            continue
        axes = quoted_axes(collective.axes)
        yield Suspicion(
            collective.source or collective.op,
            f"{collective.kind} over {axes} in each iteration, because the loop goes on while any row does: {reason}",
            f"run the loop in jax.shard_map over {axes}, in which each device goes on while any of its own rows does, "
            "or return only values that do not change in rows that have ended",
            received=collective.bytes,
            collectives=[collective.op],
        )


def _reason(collective: Collective, loop: WhileOp | None) -> str | None:
    """Return why devices cannot leave a loop with their own rows, if it waits for a collective in its condition."""
    if loop is None or collective.op.parent is not loop.cond.block:
        return None
    reason = loop.attributes.get(ROW_LOOP)
    return reason.data if isinstance(reason, StringAttr) else None
