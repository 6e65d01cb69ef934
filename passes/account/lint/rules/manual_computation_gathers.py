"""Tensors are gathered for a `jax.shard_map` whose `in_specs` do not name an axis that shards them.

A spec replicates the tensor over each axis that it does not name. Where the body uses no axis of that name, the axis
can be left out of `axis_names`: it then shards the tensors inside as well.

Before::

    jax.shard_map(attend, in_specs=P("data"), out_specs=P("data"))(q, k, v)  # sharded as P("data", "heads")

After::

    jax.shard_map(attend, in_specs=P("data", "heads"), out_specs=P("data", "heads"))(q, k, v)
"""

from collections.abc import Iterator

from sdy.diagnostics import location_of
from sdy.dialect.ops import ManualComputationOp
from sdy.ir.walking import operations_of
from sdy.passes.account.causes import Purpose
from sdy.passes.account.lint.body_edits import FreeManualAxes
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes, spec_of
from sdy.sharding import TensorSharding


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find manual computations whose operands are all-gathered."""
    for manual in operations_of(program.module, ManualComputationOp):
        found = {
            cause: collectives
            for cause, collectives in program.collectives_by_cause.items()
            if cause.purpose is Purpose.RESHARD
            and cause.tensor in {*manual.operands}
            and (cause.operation is manual or cause.tensor in cause.operation.results)
        }
        collectives = [each for alike in found.values() for each in alike]
        if not collectives:
            continue
        tensors = [cause.tensor for cause in found if cause.tensor is not None]
        axes = sorted({axis for each in collectives for axis in each.axes})
        named = [axis.name for sharding in _shardings(manual) for dim in sharding.dims for axis in dim.axes]
        free = tuple(axis for axis in manual.manual_axes.data if axis not in named)
        kept = tuple(axis for axis in manual.manual_axes.data if axis in named)
        where, example = location_of(manual), spec_of(_shardings(manual)[[*manual.operands].index(tensors[0])])
        yield Suspicion(
            manual,
            f"jax.shard_map gathers {len(tensors):,} of its operands over {quoted_axes(axes)}: its in_specs, such as "
            f"{example}, do not name the axes that shard them",
            "name the axes in in_specs",
            [GivenBy(tensor) for tensor in tensors[:1]],
            received=sum(each.bytes for each in collectives),
            collectives=[each.op for each in collectives],
            cures=[Cure((FreeManualAxes(where, free, kept),))] if free else [],
            needs_cure=bool(free),
        )


def _shardings(manual: ManualComputationOp) -> list[TensorSharding]:
    return [*manual.in_shardings.data, *manual.out_shardings.data]
