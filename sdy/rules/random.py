"""Rules of random number generators."""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.registry import register

if TYPE_CHECKING:
    from sdy.stablehlo.random import RngBitGeneratorOp


@register("stablehlo.rng_bit_generator")
def rng_bit_generator(op: "RngBitGeneratorOp", rule: RuleBuilder) -> None:
    """Require replication of the state; all dimensions of the output can be sharded."""
    for dim, size in enumerate(shape_of(op.initial_state)):
        rule.add(size, {0: dim}, {0: dim}, NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(shape_of(op.output)):
        rule.add(size, {}, {1: dim})
