"""A `jax.shard_map` gathers its results, though what follows shards them again.

The body all-gathers a result and `out_specs` say that it is replicated. Without the gather, and with the axis in
`out_specs`, the result is the same, and stays sharded. Nothing is reported where the whole result is needed.

Before::

    def local(x):
        return jax.lax.all_gather(jnp.tanh(x), "data", tiled=True)

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P(), check_vma=False)(x)

After::

    y = jax.shard_map(jnp.tanh, in_specs=P("data"), out_specs=P("data"))(x)
"""

from collections.abc import Iterator

from sdy.diagnostics import location_of
from sdy.dialect.ops import ManualComputationOp
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.body_edits import ReturnParts
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.stablehlo.collectives import AllGatherOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find manual computations that return what their last operation all-gathers."""
    for manual in operations_of(program.module, ManualComputationOp):
        end, where = manual.body.block.last_op, location_of(manual)
        gathers = {value.owner for value in (end.operands if end else ()) if isinstance(value.owner, AllGatherOp)}
        collectives = [each for each in program.collectives if each.source in gathers]
        axes = tuple(dict.fromkeys(axis for each in collectives for axis in each.axes))
        if collectives:
            yield Suspicion(
                manual,
                f"jax.shard_map returns {len(gathers):,} results that it has gathered over {quoted_axes(axes)}: its "
                "out_specs do not name the axes that sharded them",
                "",
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
                cures=[Cure((ReturnParts(where, axes),))],
            )
