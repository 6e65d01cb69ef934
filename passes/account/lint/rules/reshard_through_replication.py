"""A tensor is gathered and split again.

It is split before and afterwards over the same axis, but in between each device holds what several of them hold: XLA
calls it rematerialization. It is so where the elements that a device needs are spread over all others, as after a
reshape that merges a split dimension into another one, or where an operation needs a dimension whole that is split.

Before::

    x = jax.lax.with_sharding_constraint(x, P(None, "data"))  # (3, 4096, width)
    tokens = x.reshape(-1, width)

After::

    x = jax.lax.with_sharding_constraint(x, P("data"))  # the dimension that is major in the result
    tokens = x.reshape(-1, width)
"""

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import num_elements
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.finding import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.gather_before_custom_call import is_kernel
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.shown_sharding import dims_of
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.sharding import TensorSharding

_End = tuple[SSAValue, TensorSharding | None]
"""A tensor, and how it lies."""

_CURE = "split a dimension that stays as it is there, before and after"


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The all-gathers along axes that split both what was there before and what is made of it."""
    for collective in program.collectives:
        op = collective.source
        if collective.kind != "all-gather" or op is None or is_kernel(op):
            continue
        ends = _ends(collective, op)
        if ends is None:
            continue
        (tensor, before), (_, after) = ends
        held = max(program.local_bytes(value, sharding) for value, sharding in ends)
        if _is_split_again(collective, before, after) and value_bytes(collective.op.results[0]) > held:
            yield Suspicion(
                op,
                f"{program.called(tensor)}, {tensor.type}, which lies as {dims_of(before)}, is gathered along "
                f"{quoted_axes(collective.axes)} for {op.name}, and split again, as {dims_of(after)}",
                _CURE,
                [GivenBy(tensor)],
                received=collective.bytes,
                collectives=[collective.op],
            )


def _ends(collective: Collective, op: Operation) -> tuple[_End, _End] | None:
    """A tensor, and how it lies before; it, or what is made of it alone, and how that lies afterwards."""
    cause = collective.cause
    operands = [operand for operand in op.operands if num_elements(operand) > 1]
    if len(operands) == 1 and len(op.results) == 1 and not op.regions:
        return (operands[0], get_sharding(operands[0])), (op.results[0], get_sharding(op.results[0]))
    if cause is None or cause.tensor is None or not collective.is_reshard:
        return None
    return (cause.tensor, cause.before), (cause.tensor, cause.after)


def _is_split_again(collective: Collective, before: TensorSharding | None, after: TensorSharding | None) -> bool:
    """Whether an axis of the all-gather splits the tensor again afterwards."""
    ends = (
        {axis.name for dim in sharding.dims for axis in dim.axes} if sharding else set[str]()
        for sharding in (before, after)
    )
    return not any(axes.isdisjoint(collective.axes) for axes in ends)
