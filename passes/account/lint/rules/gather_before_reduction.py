"""A `jax.shard_map` gathers a tensor, and then keeps only its largest elements, its sum or another reduction.

Each device can reduce its own part. The results are much smaller: those of all devices are gathered, or summed, and
reduced again.

Before::

    scores = jax.lax.all_gather(scores, "data", axis=1, tiled=True)
    best, at = jax.lax.top_k(scores, 100)

After::

    best, at = jax.lax.top_k(scores, 100)
    best, again = jax.lax.top_k(jax.lax.all_gather(best, "data", axis=1, tiled=True), 100)
"""

from collections.abc import Iterator

from xdsl.ir import Operation

from sdy.ir.shapes import rank, shape_of
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.use_def import users_through
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import is_elementwise
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.reduction import ReduceOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find all-gathers of a `shard_map` whose results are only reduced along the gathered dimension."""
    for collective in program.collectives:
        gather = collective.source
        if collective.kind != "all-gather" or not isinstance(gather, AllGatherOp) or len(gather.results) != 1:
            continue
        dim = gather.all_gather_dim.value.data
        part = shape_of(gather.operands[0])[dim]
        kept = [_kept(op, dim) for op in users_through(gather.results[0]) if not is_elementwise(op)]
        most = max((count or part for count in kept), default=part)
        if most < part:
            axes, what = quoted_axes(collective.axes), f"the {most:,} largest elements" if most > 1 else "one element"
            yield Suspicion(
                gather,
                f"{program.called(gather.operands[0])} is gathered over {axes}, but devices only keep {what} of "
                f"dimension {dim}, of {part:,} of each device",
                "reduce the part of each device first, and gather or sum the results",
                received=collective.bytes * (1 - most / part),
                collectives=[collective.op],
            )


def _kept(op: Operation, dim: int) -> int | None:
    """Return the number of elements of dimension `dim` that remain of those that `op` reduces; None if it does not."""
    if isinstance(op, ReduceOp) and dim in op.dimensions.get_values():
        return 1
    if isinstance(op, TopKOp) and dim == rank(op.operand.type) - 1:
        return op.k.value.data
    return None
