"""A tensor is all-gathered over an axis and sharded over it again.

It is sharded over the same axis before and after an operation, but replicated in between; XLA calls this
rematerialization. This happens if the elements that a device needs are spread over all others, as after a reshape that
merges a sharded dimension into another one, or if an operation requires a sharded dimension to be unpartitioned.

Before::

    x = jax.lax.with_sharding_constraint(x, P(None, "data"))  # (3, 4096, width)
    tokens = x.reshape(-1, width)

After::

    x = jax.lax.with_sharding_constraint(x, P("data"))  # the dimension that is major in the result
    tokens = x.reshape(-1, width)
"""

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import num_elements
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.gather_before_custom_call import is_kernel
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import value_bytes
from sdy.sharding import TensorSharding
from sdy.stablehlo.windows import ReduceWindowOp

_End = tuple[SSAValue, TensorSharding | None]
"""A tensor and its sharding."""

_CURE = "shard a dimension that the operation preserves, before and after it"


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find all-gathers over axes that shard both the operand and the result of an operation."""
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
                f"{program.called(tensor)}, {tensor.type}, sharded as {format_dims(before)}, is all-gathered over "
                f"{quoted_axes(collective.axes)} for {op.name}, and sharded again as {format_dims(after)}",
                _CURE,
                [GivenBy(tensor)],
                received=collective.bytes,
                collectives=[collective.op],
            )


def _ends(collective: Collective, op: Operation) -> tuple[_End, _End] | None:
    """Return an operand and the result computed from it, or one tensor before and after a reshard, with shardings."""
    cause = collective.cause
    operands = [operand for operand in op.operands if num_elements(operand) > 1]
    if len(operands) == 1 and len(op.results) == 1 and (not op.regions or isinstance(op, ReduceWindowOp)):
        return (operands[0], get_sharding(operands[0])), (op.results[0], get_sharding(op.results[0]))
    if cause is None or cause.tensor is None or not collective.is_reshard:
        return None
    return (cause.tensor, cause.before), (cause.tensor, cause.after)


def _is_split_again(collective: Collective, before: TensorSharding | None, after: TensorSharding | None) -> bool:
    """Return whether an axis of the all-gather shards the tensor both before and after."""
    ends = (
        {axis.name for dim in sharding.dims for axis in dim.axes} if sharding else set[str]()
        for sharding in (before, after)
    )
    return not any(axes.isdisjoint(collective.axes) for axes in ends)
