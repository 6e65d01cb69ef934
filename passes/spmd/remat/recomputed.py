"""Summary of the rematerialization of a per-device program: the recomputed values and products, and the saved bytes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import location_of
from sdy.dialect.attributes import RECOMPUTES
from sdy.formatting import format_bytes
from sdy.ir.companions import Copies, companion
from sdy.ir.walking import operations_of
from sdy.passes.common.loops import loop_trips, loops_around
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp


@dataclass(frozen=True)
class RecomputedValues:
    """Values of one type that one source line computes, such as those of the layers of a model.

    Attributes:
        description: The type and the operation with its source line.
        times: The number of the values.
        bytes: The bytes of all of them on a device.
    """

    description: str
    times: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.times} x {self.description}: {format_bytes(self.bytes)}"


@dataclass
class Recomputed:
    """The values that a program recomputes, a companion of its module.

    Attributes:
        values: The values, those with the most bytes first.
        saved_bytes: The difference of the predicted peak memory.
    """

    values: Sequence[RecomputedValues] = ()
    saved_bytes: int = 0

    @property
    def num_values(self) -> int:
        """The number of values."""
        return sum(each.times for each in self.values)

    def copied(self, copies: Copies) -> Self:
        """Return a copy."""
        return replace(self)


def grouped(values: Iterable[SSAValue]) -> Sequence[RecomputedValues]:
    """Group `values` by their types and source lines, those with the most bytes first."""
    times: Counter[str] = Counter()
    bytes_: Counter[str] = Counter()
    for value in values:
        description = _describe(value)
        times[description] += 1
        bytes_[description] += value_bytes(value)
    return [RecomputedValues(each, times[each], size) for each, size in bytes_.most_common()]


def _describe(value: SSAValue) -> str:
    """Format a value as `tensor<4x8xf32>, result of stablehlo.add at model.py:3:5`."""
    place, owner = location_of(value), value.owner
    name = owner.name if isinstance(owner, Operation) else "a loop"
    return f"{value.type}, result of {name}{f' at {place}' if place else ''}"


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
