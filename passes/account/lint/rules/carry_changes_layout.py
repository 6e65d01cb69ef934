"""A loop-carried value is resharded in each iteration: the body returns it with a different sharding.

A loop-carried value has one sharding for all iterations. If the body computes it with another one, each iteration
reshards it.

Before::

    def layer(x, w):
        y = jnp.tanh(jax.lax.with_sharding_constraint(x, P("data", None)) @ w)
        return jax.lax.with_sharding_constraint(y, P(None, "data")), None

After::

    def layer(x, w):
        return jax.lax.with_sharding_constraint(jnp.tanh(x @ w), P("data", None)), None
"""

from collections.abc import Iterator

from xdsl.ir import BlockArgument, SSAValue

from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import from_to, moves, spec_of
from sdy.passes.common.loops import carried_unchanged
from sdy.stablehlo.control_flow import ReturnOp, WhileOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find reshards of loop-carried values, at the beginning or end of the body."""
    for cause, collectives in program.collectives_by_cause.items():
        times = max(each.times for each in collectives)
        if cause.purpose is not Purpose.RESHARD or cause.tensor is None or times < 2:
            continue
        if (carried := _carried(program, cause)) is not None:
            carry = cause.after if isinstance(cause.operation, ReturnOp) else cause.before
            yield Suspicion(
                cause.tensor,
                f"a loop-carried {carried.type} is resharded {from_to(cause.before, cause.after)} in each of {times:,} "
                "iterations",
                "shard the initial value and the value that the body returns alike, with "
                f"jax.lax.with_sharding_constraint(..., {spec_of(carry)})",
                [GivenBy(carried)],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
            )


def _carried(program: LintedProgram, cause: Cause) -> SSAValue | None:
    """Return the loop-carried value that a reshard moves, or None.

    An all-gather of a loop-carried value for one use, such as a parameter, does not change its sharding.
    """
    assert cause.tensor is not None
    if isinstance(cause.operation, ReturnOp) and isinstance(cause.operation.parent_op(), WhileOp):
        return cause.tensor
    if not moves(cause.before, cause.after):
        return None
    for value in program.use_def.trace(cause.tensor):
        loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
        if isinstance(loop, WhileOp) and value not in carried_unchanged(loop) and value.type == cause.tensor.type:
            return value
    return None
