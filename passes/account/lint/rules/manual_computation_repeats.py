"""Devices along an axis repeat the same work in a `jax.shard_map`.

A spec replicates a tensor over each axis that it does not name. Where no spec names an axis, and the body uses it for
no collective, all devices along it repeat the body. The rule reports bodies that take a good part of the step, and
products of tensors that are both gathered, where most of the step is computed from such tensors.

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
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.reducing_collectives import AllReduceOp

_LEAST_TIME = 0.25
"""The part of the computation of a step that a body has."""

_LEAST_EQUAL = 0.5
"""The part of the computation of a step that operations on equal operands have."""


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
    yield from _equal_products(program)


def _equal_products(program: LintedProgram) -> Iterator[Suspicion]:
    """Find products whose operands are equal along an axis that other values of a manual computation differ along.

    They and other operations on such operands take most of the computation of a step.
    """
    known = {each: Varying(each, program.mesh) for each in operations_of(program.module, ManualComputationOp)}
    found: dict[tuple[ManualComputationOp, str], dict[Operation, float]] = {}
    for op, seconds in program.times.computation if known else ():
        source = program.traced.sources.get(op)
        if source is not None and source.operands and (manual := manual_computation(source)):
            differs = {axis for each in source.operands for axis in known[manual].axes(each)}
            for axis in known[manual].used - differs:
                equal = found.setdefault((manual, axis), {})
                equal[source] = equal.get(source, 0.0) + seconds
    for (_, axis), equal in found.items():
        size, part = program.mesh.axis_size(axis), sum(equal.values()) / max(program.costs.compute, 1e-12)
        products = [each for each in equal if isinstance(each, DotGeneralOp | ConvolutionOp)]
        if size == 1 or not products or part < _LEAST_EQUAL:
            continue
        product = max(products, key=lambda each: equal[each])
        local = num_bytes(product.results[0].type)
        traced = [value.owner for each in product.operands for value in program.use_def.trace(each)]
        yield Suspicion(
            product,
            f"devices along {quoted_axes([axis])} compute the same {product.results[0].type} in jax.shard_map, since "
            "both operands are equal on them",
            "leave one of the operands sharded, and sum or gather what is computed from the result",
            [
                (program.place(each), "this collective makes an operand equal on them")
                for each in dict.fromkeys(traced)
                if isinstance(each, AllGatherOp | AllReduceOp)
            ],
            held=local - local // size,
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
