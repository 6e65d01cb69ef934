"""A `jax.shard_map` gathers its results, though what follows shards them again.

The body all-gathers a result, or a tensor whose rows it computes a result from one by one, and `out_specs` say that it
is replicated. Without the gather, and with the axis in `out_specs`, the result is the same, and stays sharded. Nothing
is reported where the whole result is needed.

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
from sdy.passes.account.lint.gathered_results import gathered_results
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find manual computations that return what they compute from gathered tensors part by part."""
    for manual in operations_of(program.module, ManualComputationOp):
        results, where = [*gathered_results(manual)], location_of(manual)
        gathers = {gather for each in results for gather in each.gathers}
        collectives = [each for each in program.collectives if each.source in gathers]
        axes = tuple(dict.fromkeys(axis for each in collectives for axis in each.axes))
        if collectives:
            yield Suspicion(
                manual,
                f"jax.shard_map returns {len(results):,} results that it gathers over {quoted_axes(axes)}, or computes "
                "from what it gathers: its out_specs do not name the axes, though each device could return its part",
                "",
                [(location_of(each), "this gather could be left out") for each in gathers],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
                cures=[Cure((ReturnParts(where, axes),))],
            )
