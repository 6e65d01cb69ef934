"""Rule of a reshape, which merges and splits dimensions.

Both shapes are factored in parallel, from the major end. While the factors so far have the same product on both sides,
the greatest common divisor of the remaining dimension sizes is the next common factor:

    8 x 4     -> 32          ([i, j])->([ij]) {i=8, j=4}
    2 x 4 x 3 -> 4 x 6       ([i, jk, l])->([ij, kl]) {i=2, j=2, k=2, l=3}

If the divisor is 1, each side gets its own factors until the products are equal again:

    2 x 3 x 5 -> 3 x 2 x 5   ([i, k, m])->([j, l, m]) {i=2, j=3, k=3, l=2, m=5}
"""

from math import gcd
from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import RuleBuilder
from sdy.rules.registry import NoRule, register

if TYPE_CHECKING:
    from sdy.stablehlo.shape import ReshapeOp


class _Cursor:
    """The position in the factorization of a shape: the dimension `dim`, whose remaining size is `left`."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dim = 0
        self.product = 1
        """The product of the factors so far."""
        self.left = shape[0] if shape else 1

    @property
    def at_end(self) -> bool:
        return self.dim == len(self.shape)

    def at_dimension_of_one(self) -> bool:
        return not self.at_end and self.left == 1

    def take(self, factor: int) -> int:
        """Take `factor` from the current dimension, which it divides, and return the dimension."""
        dim = self.dim
        self.product *= factor
        self.left //= factor
        if self.left == 1:
            self.dim += 1
            self.left = 1 if self.at_end else self.shape[self.dim]
        return dim

    def next_to_reach(self, other: "_Cursor") -> int:
        """Return the next factor, while the product of `other` is larger.

        The factor makes both products equal, if possible; otherwise it leaves the common divisor of both dimensions for
        a later common factor.
        """
        missing, rest = divmod(other.product, self.product)
        if rest == 0 and self.left % missing == 0:
            return missing
        common = gcd(self.left, other.left)
        return self.left // common if self.left > common else self.left


@register("stablehlo.reshape")
def reshape(op: "ReshapeOp", rule: RuleBuilder) -> None:
    """Add the factors of a reshape."""
    add_reshaped(rule, shape_of(op.operand), shape_of(op.result))


def add_reshaped(rule: RuleBuilder, operand_shape: tuple[int, ...], result_shape: tuple[int, ...]) -> None:
    """Add the factors of a reshape of the first operand to the first result; raise `NoRule` for an empty tensor."""
    if 0 in operand_shape:
        raise NoRule
    operand, result = _Cursor(operand_shape), _Cursor(result_shape)
    while not (operand.at_end and result.at_end):
        if operand.at_dimension_of_one():
            rule.add(1, {0: operand.take(1)}, {})
        elif result.at_dimension_of_one():
            rule.add(1, {}, {0: result.take(1)})
        elif operand.product < result.product:
            size = operand.next_to_reach(result)
            rule.add(size, {0: operand.take(size)}, {})
        elif operand.product > result.product:
            size = result.next_to_reach(operand)
            rule.add(size, {}, {0: result.take(size)})
        elif (size := gcd(operand.left, result.left)) > 1:
            rule.add(size, {0: operand.take(size)}, {0: result.take(size)})
        else:
            rule.add(operand.left, {0: operand.take(operand.left)}, {})
            rule.add(result.left, {}, {0: result.take(result.left)})
