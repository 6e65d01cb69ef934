"""Scatters with windows of size 1 along a dimension, which may be split: each device writes the rows of its shard.

    input        start indices    windows       the sharding rule    this module
    [256, 64]    [n, 1]           [n, 64]       splits the rows      splits the rows
    [256, 64]    [n, 1]           [n, 1, 64]    replicates them      splits them

A window of several rows may cross the boundary between two shards, so that two devices would have to write it.
"""

from dataclasses import replace

from xdsl.ir import Operation

from sdy.ir.shapes import shape
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.stablehlo.scatter import ScatterOp


def rule_by_elements(op: Operation) -> OpShardingRule | None:
    """Return the sharding rule of `op`, relaxed by `rule_of_scatter` for a scatter, or None if it has no rule."""
    rule = sharding_rule(op)
    return rule_of_scatter(op, rule) if rule is not None and isinstance(op, ScatterOp) else rule


def rule_of_scatter(op: ScatterOp, rule: OpShardingRule) -> OpShardingRule:
    """Return `rule` without need-replication on the input dimensions along which the windows have size 1."""
    sizes = op.update_sizes(shape(op.updates[0].type))
    indexed = op.scatter_dimension_numbers.data.scatter_dims_to_operand_dims
    single = {factor for dim in indexed if sizes[dim] == 1 for factor in rule.operands[0][dim]}
    return replace(rule, need_replication=tuple(factor for factor in rule.need_replication if factor not in single))
