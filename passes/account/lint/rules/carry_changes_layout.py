"""What a loop carries is resharded in each turn: the body gives it back split otherwise than it takes it.

A carried value has one layout for all turns. Where the body makes it in another one, each turn pays to bring it back.

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
from sdy.passes.account.lint.finding import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import from_to, moves, spec_of
from sdy.passes.common.loops import carried_unchanged
from sdy.stablehlo.control_flow import ReturnOp, WhileOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The reshards of what a body is given, and of what it gives back."""
    for cause, collectives in program.collectives_by_cause.items():
        times = max(each.times for each in collectives)
        if cause.purpose is not Purpose.RESHARD or cause.tensor is None or times < 2:
            continue
        if (carried := _carried(program, cause)) is not None:
            kept = cause.after if isinstance(cause.operation, ReturnOp) else cause.before
            yield Suspicion(
                cause.tensor,
                f"{carried.type}, which a loop carries, goes {from_to(cause.before, cause.after)} in each of {times:,} "
                "turns",
                f"split alike what the loop begins with and what the body returns, by "
                f"jax.lax.with_sharding_constraint(..., {spec_of(kept)})",
                [GivenBy(carried)],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
            )


def _carried(program: LintedProgram, cause: Cause) -> SSAValue | None:
    """What a loop carries that this reshards; None where it reshards something else.

    To gather a part of what is carried, for as long as it is used, is no other layout.
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
