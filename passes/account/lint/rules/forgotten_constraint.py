"""A tensor of the batch loses the axis of the batch, since no constraint keeps it.

Two operands of an operation shard different dimensions of its result over one axis: the batch, and a dimension of a
parameter, such as the features of an embedding. The result can have the axis once. If it takes that of the parameter,
all that follows computes the whole batch. The rule tries a constraint on the first such results.

Before::

    x = embedding[tokens]  # embedding is sharded as P("model", "data"), and tokens as P("data")

After::

    x = jax.lax.with_sharding_constraint(embedding[tokens], P("data"))
"""

from collections.abc import Iterator, Set

from xdsl.ir import Operation

from sdy.axes import Axes
from sdy.dialect.axis_syntax import axes_text
from sdy.ir.shapes import is_static_tensor
from sdy.passes.account.lint.body_edits import AddConstraint, Results
from sdy.passes.account.lint.edits import Cure, Dims, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.batch_not_sharded import data_arguments
from sdy.rules.registry import sharding_rule

_MOST_TRIED = 3
"""Number of results that are constrained."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find the first results that lose an axis of the batch that an operand has."""
    tried: dict[Results, None] = {}
    batch = batch_axes(program)
    for op in program.operations if batch else ():
        for index, lost, dims in lost_axes(op, batch):
            result = op.results[index]
            results = Results.of(result)
            if results is None or results in tried or len(tried) == _MOST_TRIED:
                continue
            tried[results] = None
            yield Suspicion(
                result,
                f"{program.called(result)}, {result.type}, loses axes {axes_text(lost)} of the batch, which an operand "
                "has in the same dimension",
                "",
                [GivenBy(result)],
                held=program.thresholds.large,
                cures=[Cure((AddConstraint(results, dims),))],
            )


def batch_axes(program: LintedProgram) -> frozenset[str]:
    """Return the axes that shard the first dimension of data."""
    data = [argument for arguments in data_arguments(program).values() for argument in arguments]
    return frozenset(axis.name for argument in data for axis in value_dims(argument)[0])


def lost_axes(op: Operation, batch: Set[str]) -> Iterator[tuple[int, Axes, Dims]]:
    """Yield the results that lose axes of the batch, with these axes and the layout that keeps them."""
    rule = sharding_rule(op) if op.results else None
    for operand, mapping in zip(op.operands, rule.operands, strict=True) if rule else ():
        given = {factors[0]: axes for factors, axes in zip(mapping, value_dims(operand), strict=True) if factors}
        for index, result in enumerate(op.results if rule and is_static_tensor(operand.type) else ()):
            before, factors = value_dims(result), rule.results[index] if rule else ()
            for dimension, own in enumerate(factors):
                axes = given.get(own[0], ()) if own else ()
                lost = tuple(axis for axis in axes if axis.name in batch and axis not in before[dimension])
                if lost and not any(axis.overlaps(each) for axis in lost for each in before[dimension]):
                    yield index, lost, _keeping(before, dimension, axes)


def _keeping(before: Dims, dimension: int, axes: Axes) -> Dims:
    """Return a layout with `axes` in one dimension, and in no other one."""
    others = [tuple(each for each in own if not any(each.overlaps(axis) for axis in axes)) for own in before]
    return (*others[:dimension], axes, *others[dimension + 1 :])
