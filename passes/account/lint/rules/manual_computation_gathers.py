"""Tensors are gathered for a `jax.shard_map` whose `in_specs` do not name an axis that shards them.

A spec replicates the tensor over each axis that it does not name. Where the body uses no axis of that name, the axis
can be left out of `axis_names`: it then shards the tensors inside as well.

Before::

    jax.shard_map(attend, in_specs=P("data"), out_specs=P("data"))(q, k, v)  # sharded as P("data", "heads")

After::

    jax.shard_map(attend, in_specs=P("data", "heads"), out_specs=P("data", "heads"))(q, k, v)
"""

from collections.abc import Iterator

from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import location_of
from sdy.dialect.ops import ManualComputationOp, ReshardOp
from sdy.ir.walking import operations_of
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.lint.body_edits import FreeManualAxes
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes, spec
from sdy.sharding import TensorSharding
from sdy.stablehlo.collectives import AllGatherOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find manual computations whose operands are all-gathered."""
    for manual in operations_of(program.module, ManualComputationOp):
        found = [
            (operand, alike)
            for cause, alike in program.collectives_by_cause.items()
            if cause.purpose is Purpose.RESHARD and (operand := _operand(cause, manual)) is not None
        ]
        collectives = [each for _, alike in found for each in alike]
        if not collectives:
            continue
        tensors = [operand for operand, _ in found]
        axes = sorted({axis for each in collectives for axis in each.axes})
        named = [axis.name for sharding in _shardings(manual) for dim in sharding.dims for axis in dim.axes]
        free = tuple(axis for axis in manual.manual_axes.data if axis not in named)
        kept = tuple(axis for axis in manual.manual_axes.data if axis in named)
        where = location_of(manual)
        position = [*manual.operands].index(tensors[0])
        needed = manual.in_shardings.data[position].dim_axes
        of_operand = next(alike for operand, alike in found if operand is tensors[0])
        gathered = {
            each.op.all_gather_dim.value.data: each.axes for each in of_operand if isinstance(each.op, AllGatherOp)
        }
        added = (map(AxisRef, gathered.get(index, ())) for index in range(len(needed)))
        parts = tuple((*own, *more) for own, more in zip(needed, added, strict=True))
        several = f" and {len(tensors) - 1:,} others" if len(tensors) > 1 else ""
        yield Suspicion(
            manual,
            f"jax.shard_map gathers operand {position}, {program.called(tensors[0])}, {tensors[0].type},{several} over "
            f"{quoted_axes(axes)}: its spec {spec(needed)} in in_specs does not name the axes that can shard it",
            f"let the body take its part of operand {position}, and name the axes in in_specs"
            + (f": {spec(parts)}" if parts != needed else ""),
            [GivenBy(tensor) for tensor in tensors[:1]],
            received=sum(each.bytes for each in collectives),
            collectives=[each.op for each in collectives],
            cures=[Cure((FreeManualAxes(where, free, kept),))] if free else [],
            needs_cure=bool(free),
        )


def _operand(cause: Cause, manual: ManualComputationOp) -> SSAValue | None:
    """Return the operand of a manual computation that a reshard is for; in a loop, it can be the reshard's result."""
    op, tensor = cause.operation, cause.tensor
    if tensor in manual.operands and (op is manual or tensor in op.results):
        return tensor
    is_inserted = isinstance(op, ReshardOp) and location_of(op) == location_of(manual)
    return next((each for each in op.results if is_inserted and each in manual.operands), None)


def _shardings(manual: ManualComputationOp) -> list[TensorSharding]:
    return [*manual.in_shardings.data, *manual.out_shardings.data]
