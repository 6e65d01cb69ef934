"""Scatters that write single elements along a dimension, which may be split: each device writes those in its part.

    rows that are split    start indices    windows    sharding rule                      here
    [256, 64]              [n, 1]           [n, 64]    the rows may be split              the same
    [256, 64]              [n, 1]           [n, 1, 64] the rows are needed whole          they may be split

A window that is longer than one row may cross the border between two parts, so that two devices would have to write it.
"""

from dataclasses import replace

from xdsl.ir import Operation

from sdy.ir.shapes import shape
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.stablehlo.scatter import ScatterOp


def rule_by_elements(op: Operation) -> OpShardingRule | None:
    """The sharding rule of any operation, for a scatter as `rule_of_scatter` has it; None where there is none."""
    rule = sharding_rule(op)
    return rule_of_scatter(op, rule) if rule is not None and isinstance(op, ScatterOp) else rule


def rule_of_scatter(op: ScatterOp, rule: OpShardingRule) -> OpShardingRule:
    """The `rule` of `op`, which need not ask for a whole dimension of what single elements are scattered into."""
    sizes = op.update_sizes(shape(op.updates[0].type))
    indexed = op.scatter_dimension_numbers.data.scatter_dims_to_operand_dims
    single = {factor for dim in indexed if sizes[dim] == 1 for factor in rule.operands[0][dim]}
    return replace(rule, need_replication=tuple(factor for factor in rule.need_replication if factor not in single))
