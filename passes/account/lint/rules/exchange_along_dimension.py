"""An operation exchanges elements with other devices, since a dimension along which it works is sharded.

A convolution reads the rows beside those of a device, a concatenation or a slice of a sharded dimension moves elements
to other devices. Along the batch, or another dimension that the operation keeps, devices need nothing of each other. A
finding has a layout of an argument or a constraint that was tried; nothing is reported where every other one costs
about as much, as for images that are sharded because few of them make a batch.

Before::

    x = jax.device_put(x, P(None, "data"))  # (batch, height, width, channels)
    y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

After::

    x = jax.device_put(x, P("data"))
"""

from collections.abc import Iterable, Iterator

from xdsl.ir import BlockArgument

from sdy.diagnostics import Location
from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.ops import ReshardOp
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.dimensions import Dimension, Origins, sharded, sources
from sdy.passes.account.lint.edits import Cure, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram, is_in_manual_computation


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find operations that exchange elements along a dimension that arguments or constraints shard."""
    found: dict[Dimension, list[Collective]] = {}
    constrained: dict[tuple[Location | None, int], list[tuple[ReshardOp, Collective]]] = {}
    origins = Origins(program)
    for collective in program.collectives:
        op = collective.source
        if collective.cause is None and op is not None and not is_in_manual_computation(op):
            dimensions = [*sharded(op, collective.axes)]
            given = [each for each in dict.fromkeys(each for at in dimensions for each in origins.of(at)) if each.axes]
            for each in given:
                found.setdefault(each, []).append(collective)
            for constraint, index in () if given else _constraints(program, dimensions):
                constrained.setdefault((program.place(constraint), index), []).append((constraint, collective))
    candidates = Candidates(program)
    for at, collectives in found.items():
        argument, first = at.tensor, max(collectives, key=lambda each: each.bytes).source
        assert isinstance(argument, BlockArgument)
        assert first is not None
        yield Suspicion(
            first,
            f"{first.name} exchanges elements along dimension {at.index} of {program.called(argument)}, "
            f"{argument.type}, which {axes_text(at.axes)} shards",
            "",
            [GivenBy(argument, at.axes)],
            received=sum(each.bytes for each in collectives),
            collectives=[each.op for each in collectives],
            cures=[
                Cure(tuple(candidates.shard(each, dims) for each in candidates.in_layers(argument)))
                for dims in candidates.moved(argument, value_dims(argument))
            ],
        )
    for (_, index), moves in constrained.items():
        constraint, first = max(moves, key=lambda each: each[1].bytes)
        source = first.source
        assert source is not None
        axes = value_dims(constraint.result)[index]
        yield Suspicion(
            constraint,
            f"{source.name} exchanges elements along dimension {index} of {constraint.result.type}, which this "
            f"sharding constraint shards over {axes_text(axes)}",
            "",
            received=sum(each.bytes for _, each in moves),
            collectives=[each.op for _, each in moves],
            cures=candidates.of_constraint(constraint),
        )


def _constraints(program: LintedProgram, dimensions: Iterable[Dimension]) -> Iterator[tuple[ReshardOp, int]]:
    """Yield the nearest constraints that shard dimensions, or those that they come from, with the dimension of each."""
    for dimension in dimensions:
        for at in sources(program, dimension):
            op = at.tensor.owner
            if isinstance(op, ReshardOp) and at.axes and op not in program.passed_on:
                yield op, at.index
                break
