"""Dot products, reductions and elementwise operations.

A step of a dot product multiplies two elements and adds to a sum over the contracting axes; a step of a reduction
combines one element of each input with the accumulated value; the steps of an elementwise operation are the elements of
its results.
"""

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import NoBlocks, register
from sdy.ir.shapes import shape_of
from sdy.rules import linear_algebra, reduction
from sdy.rules.elementwise import POINTWISE
from sdy.rules.other_dialects import ARITH, CHLO, MATH
from sdy.stablehlo import DotGeneralOp, DotOp, ReduceOp

MULTIPLY_AND_ADD = 2


@register("stablehlo.dot_general")
def dot_general(op: DotGeneralOp, block: BlockBuilder) -> float:
    """Add the factors of the rule as axes."""
    linear_algebra.dot_general(op, block)
    return MULTIPLY_AND_ADD


@register("stablehlo.dot")
def dot(op: DotOp, block: BlockBuilder) -> float:
    """Add the factors of the rule as axes."""
    linear_algebra.dot(op, block)
    return MULTIPLY_AND_ADD


@register(
    *(f"stablehlo.{name}" for name in (*POINTWISE.split(), "clamp", "select")),
    *(f"chlo.{name}" for name in CHLO.split()),
    *(f"arith.{name}" for name in ARITH.split()),
    *(f"math.{name}" for name in MATH.split()),
)
def pointwise(op: Operation, block: BlockBuilder) -> float:
    """Add an axis per dimension; every step reads scalar operands."""
    if not isinstance(op.results[0].type, TensorType):
        raise NoBlocks
    for dim, size in enumerate(shape_of(op.results[0])):
        full = (number for number, operand in enumerate(op.operands) if shape_of(operand))
        block.add(size, dict.fromkeys(full, dim), {0: dim})
    return 1


@register("stablehlo.reduce")
def reduce(op: ReduceOp, block: BlockBuilder) -> float:
    """Add the factors of the rule as axes; a step runs the body once."""
    reduction.reduce(op, block)
    return len(op.body.block.ops) - 1  # without the terminator
