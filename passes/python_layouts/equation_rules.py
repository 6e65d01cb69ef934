"""The rule of an equation: the sharding of its result, or of its operands, too."""

from collections.abc import Mapping, Sequence
from math import prod

from jax.sharding import PartitionSpec

from sdy.passes.python_layouts.constrained import Rule, axes_of
from sdy.passes.python_layouts.equations import Equation

_Axes = tuple[str, ...]


def rule_of(equation: Equation, specs: Sequence[PartitionSpec], sizes: Mapping[str, int]) -> Rule:
    """Return the rule of an equation with these shardings of its operands and its results.

    An equation with several results has a rule if they have one sharding.

    A product of matrices has the shardings of its operands, too: with a constraint of the result alone, XLA may
    all-reduce partial sums that sdy scatters, which receives twice as much, or gather an operand twice.
    """
    results = specs[len(specs) - len(equation.results) :]
    if len({*results}) != 1:
        return None
    on_shards = None if equation.dimensions is None else _on_shards(equation, specs, sizes)
    return on_shards or results[0]


def _on_shards(
    equation: Equation, specs: Sequence[PartitionSpec], sizes: Mapping[str, int]
) -> tuple[PartitionSpec, ...] | None:
    """Return the shardings of the operands and the result of a product of shards, or None if it needs other moves.

    The operands have the axes of the sum along their contracted dimensions, and the other axes of the result.
    """
    (contracted, batch), (*given, result), (shape,) = equation.dimensions, specs, equation.results
    pairs = [(axes_of(given[0], one), axes_of(given[1], other)) for one, other in zip(*contracted, strict=True)]
    summed = [one if one == other else () for one, other in pairs]
    axes = {axis for each in summed for axis in each}
    whole = [axes_of(result, dim) for dim in range(len(shape))]
    others = [tuple(axis for axis in each if axis not in axes) for each in whole]
    is_suffix = all(each[: len(other)] == other for each, other in zip(whole, others, strict=True))
    if not is_suffix:
        return None
    operands: list[list[_Axes]] = []
    free = len(batch[0])
    for side, dims in enumerate(equation.operands):
        operand = dict(zip(contracted[side], summed, strict=True)) | dict(zip(batch[side], others, strict=False))
        for dim in range(len(dims)):
            if dim not in operand:
                operand[dim] = others[free]
                free += 1
        operands.append([operand[dim] for dim in range(len(dims))])
    placed = [*zip(equation.operands, operands, strict=True), (shape, whole)]
    is_even = all(
        size % prod(sizes[axis] for axis in along) == 0
        for dims, axes_of_dims in placed
        for size, along in zip(dims, axes_of_dims, strict=True)
    )
    return tuple(map(_spec, (*operands, whole))) if is_even else None


def _spec(axes_of_dims: Sequence[_Axes]) -> PartitionSpec:
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in axes_of_dims]
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)
