"""Rules of StableHLO's collectives that change a dimension's size. Other collectives are in `elementwise.py`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.registry import register

if TYPE_CHECKING:
    from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp
    from sdy.stablehlo.reducing_collectives import ReduceScatterOp


@register("stablehlo.all_gather")
def all_gather(op: "AllGatherOp", rule: RuleBuilder) -> None:
    """Require replication of the gathered dimension."""
    _add_exchanged(op, rule, [op.all_gather_dim.value.data])


@register("stablehlo.reduce_scatter")
def reduce_scatter(op: "ReduceScatterOp", rule: RuleBuilder) -> None:
    """Require replication of the scattered dimension."""
    _add_exchanged(op, rule, [op.scatter_dimension.value.data])


@register("stablehlo.all_to_all")
def all_to_all(op: "AllToAllOp", rule: RuleBuilder) -> None:
    """Require replication of the split and the concatenated dimension."""
    split, concatenated = op.split_dimension.value.data, op.concat_dimension.value.data
    _add_exchanged(op, rule, [split] if split == concatenated else [split, concatenated])


def _add_exchanged(op: Operation, rule: RuleBuilder, dims: Sequence[int]) -> None:
    """Add the factors of a collective that exchanges elements along `dims`; these have separate factors per side."""
    operand, result = shape_of(op.operands[0]), shape_of(op.results[0])
    rule.add_pointwise(operand, skipped=dims)
    for dim in dims:
        rule.add_to_operands(dim, operand[dim], NEED_REPLICATION)
        rule.add_to_results(dim, result[dim], NEED_REPLICATION)
