"""Devices along an axis repeat the same work in a `jax.shard_map`.

A spec replicates a tensor over each axis that it does not name. Where no spec names an axis, and the body uses it for
no collective, all devices along it repeat the body. The rule reports bodies that take a good part of the step.

Before::

    search = jax.shard_map(search, in_specs=(P(), P("shard")), out_specs=P())
    search(queries, rows)  # queries are sharded as P("query")

After::

    search = jax.shard_map(search, in_specs=(P("query"), P("shard")), out_specs=P("query"))
"""

from collections.abc import Iterator
from math import prod

from xdsl.ir import Operation

from sdy.diagnostics import location_of
from sdy.dialect.ops import ManualComputationOp
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.body_edits import FreeManualAxes
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram, manual_computation
from sdy.passes.account.lint.varying import Varying
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import num_bytes

_LEAST_TIME = 0.25
"""The part of the computation of a step that a body has."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find manual computations that are equal along an axis, with the reshards along it: of what the body gathers."""
    for manual, (axes, part) in repeated(program).items():
        size = prod(map(program.mesh.axis_size, axes))
        largest = max(num_bytes(value.type) for op in manual.body.walk() for value in op.results)
        reshards = [each for each in program.collectives if each.is_reshard and {*axes}.issuperset(each.axes)]
        named, them = quoted_axes(axes), "it" if len(axes) == 1 else "them"
        advice = f"name {named} in the specs that split the batch, and in the collectives that sum over the batch"
        kept = tuple(name for name in manual.manual_axes.data if name not in axes)
        yield Suspicion(
            manual,
            f"devices along {named} repeat the same work in jax.shard_map: its specs do not name {them}",
            "",
            [(None, f"its body is {part:.0%} of the computation; {advice}")],
            received=sum(each.bytes for each in reshards),
            held=largest - largest // size,
            collectives=[each.op for each in reshards],
            cures=[Cure((FreeManualAxes(location_of(manual), tuple(axes), kept),))],
        )


def repeated(program: LintedProgram) -> dict[ManualComputationOp, tuple[list[str], float]]:
    """Return the large manual computations that are equal along axes: these axes, and the part of the computation."""
    computations = operations_of(program.module, ManualComputationOp)
    seconds: dict[Operation, float] = {}
    for op, each in program.times.computation if computations else ():
        manual = (source := program.traced.sources.get(op)) and manual_computation(source)
        if manual:
            seconds[manual] = seconds.get(manual, 0.0) + each
    found: dict[ManualComputationOp, tuple[list[str], float]] = {}
    for manual in computations:
        part = seconds.get(manual, 0.0) / max(program.costs.compute, 1e-12)
        if part >= _LEAST_TIME:
            used = Varying(manual, program.mesh).used
            axes = [name for name in manual.manual_axes.data if name not in used and program.mesh.axis_size(name) > 1]
            if axes:
                found[manual] = axes, part
    return found
