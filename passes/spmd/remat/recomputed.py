"""Summary of the rematerialization of a per-device program: the recomputed values and products, and the saved bytes."""

from dataclasses import dataclass, replace
from math import prod
from typing import Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.dialect.attributes import RECOMPUTES
from sdy.formatting import format_bytes
from sdy.ir.companions import Copies, companion
from sdy.ir.walking import operations_of
from sdy.passes.common.loops import loop_trips, loops_around
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp


@dataclass
class Recomputed:
    """The values that a program recomputes, a companion of its module.

    Attributes:
        num_values: The number of values.
        saved_bytes: The difference of the predicted peak memory.
    """

    num_values: int = 0
    saved_bytes: int = 0

    def copied(self, copies: Copies) -> Self:
        """Return a copy."""
        return replace(self)


def describe_recomputed(local: ModuleOp) -> str:
    """Format what a per-device program recomputes; an empty text if it recomputes nothing.

    Example: `12 values: 8.3 MiB less memory, 9.1% more arithmetic in products`.
    """
    recomputed = companion(local, Recomputed)
    if not recomputed.num_values:
        return ""
    all_, again = product_operations(local)
    values = f"{recomputed.num_values:,} value{'s' if recomputed.num_values > 1 else ''}"
    arithmetic = f"{again / (all_ - again):.1%} more arithmetic in products" if again else "no more products"
    return f"{values}: {format_bytes(recomputed.saved_bytes)} less memory, {arithmetic}"


def product_operations(local: ModuleOp) -> tuple[float, float]:
    """Return the arithmetic operations of all products in a step of a per-device program, and of recomputed ones."""
    all_ = again = 0.0
    for op in operations_of(local, ConvolutionOp, DotGeneralOp):
        count = _runs(op) * arithmetic_of(op).operations
        all_ += count
        again += count if any(RECOMPUTES in each.attributes for each in (op, *loops_around(op))) else 0.0
    return all_, again


def _runs(op: Operation) -> int:
    """Return how often a step executes `op`, in the loops whose trip counts are known."""
    return prod(loop_trips(loop) or 1 for loop in loops_around(op))
