"""Rules of reductions, sorts and random number generators."""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, REDUCTION, Factors, RuleBuilder
from sdy.rules.registry import register

if TYPE_CHECKING:
    from sdy.stablehlo.random import RngBitGeneratorOp
    from sdy.stablehlo.reduction import ReduceOp
    from sdy.stablehlo.sort import SortOp


@register("stablehlo.reduce")
def reduce(op: "ReduceOp", rule: Factors) -> None:
    """Add the factors `([i, j],[])->([i])`; several inputs are reduced together, each with an initial value."""
    dimensions = set(op.dimensions.get_values())
    kept = 0
    for dim, size in enumerate(shape_of(op.inputs[0])):
        inputs = dict.fromkeys(range(len(op.inputs)), dim)
        if dim in dimensions:
            rule.add(size, inputs, {}, REDUCTION)
        else:
            rule.add(size, inputs, dict.fromkeys(range(len(op.results)), kept))
            kept += 1


@register("stablehlo.sort")
def sort(op: "SortOp", rule: RuleBuilder) -> None:
    """Require replication of the sorted dimension; block propagation along it if it is the only one of size above 1."""
    shape = shape_of(op.inputs[0])
    sorted_dim = op.dimension.value.data
    if sorted_dim < 0:
        sorted_dim += len(shape)
    is_only_dim = all(dim == sorted_dim or size == 1 for dim, size in enumerate(shape))
    rule.add_pointwise(shape, kinds={sorted_dim: NEED_REPLICATION}, blocked=(sorted_dim,) if is_only_dim else ())


@register("stablehlo.rng_bit_generator")
def rng_bit_generator(op: "RngBitGeneratorOp", rule: RuleBuilder) -> None:
    """Require replication of the state; all dimensions of the output can be sharded."""
    for dim, size in enumerate(shape_of(op.initial_state)):
        rule.add(size, {0: dim}, {0: dim}, NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(shape_of(op.output)):
        rule.add(size, {}, {1: dim})
