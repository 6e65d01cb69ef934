"""Summary of the rematerialization of a per-device program: recomputed, offloaded and saved values, and their costs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import PurePath
from typing import NamedTuple, Self

from xdsl.dialects.builtin import CallSiteLoc, ModuleOp, NameLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sdy.diagnostics import location_of
from sdy.dialect.attributes import RECOMPUTES
from sdy.formatting import format_bytes, format_seconds
from sdy.ir.companions import Copies, companion
from sdy.ir.walking import operations_of
from sdy.passes.common.loops import loop_trips, loops_around
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp

_BACKWARD = "transpose("
"""The name scope of operations that transpose those of the forward pass."""


@dataclass(frozen=True)
class ValueGroup:
    """Values of one type that one source line computes, such as those of the layers of a model.

    Attributes:
        description: The type and the operation with its source line.
        source: The source line and the primitive of JAX, such as "model.py:31:8 dot_general"; empty for values of the
            backward pass, or if they are unknown.
        times: The number of the values.
        bytes: The bytes of all of them on a device.
        seconds: The estimated time of computing all of them again, or of their transfers from and to the host; 0 for
            values that are saved.
    """

    description: str
    source: str
    times: int
    bytes: int
    seconds: float = 0.0

    def __str__(self) -> str:
        seconds = f", {format_seconds(self.seconds)} longer" if self.seconds else ""
        return f"{self.times} x {self.description}: {format_bytes(self.bytes)}{seconds}"


@dataclass
class Recomputed:
    """The values that a program recomputes, offloads and saves, a companion of its module.

    Attributes:
        values: The values that are computed again, those with the most bytes first.
        offloaded: The values that are moved to the host and back, those with the most bytes first.
        saved: The values that the forward pass saves for the backward pass, those with the most bytes first.
        saved_bytes: The difference of the predicted peak memory.
        memory: The predicted peak memory in bytes; 0 without a limit.
    """

    values: Sequence[ValueGroup] = ()
    offloaded: Sequence[ValueGroup] = ()
    saved: Sequence[ValueGroup] = ()
    saved_bytes: int = 0
    memory: int = 0

    @property
    def num_values(self) -> int:
        """The number of values that are computed again."""
        return count(self.values)

    def copied(self, copies: Copies) -> Self:
        """Return a copy."""
        return replace(self)


def count(groups: Iterable[ValueGroup]) -> int:
    """Return the number of values in groups."""
    return sum(each.times for each in groups)


class Held(NamedTuple):
    """A value, its bytes (those of all elements of a stack), and the time of computing or moving it."""

    value: SSAValue
    bytes: int
    seconds: float = 0.0


def grouped(values: Iterable[Held]) -> Sequence[ValueGroup]:
    """Group `values` by their types and source lines, those with the most bytes first."""
    groups: defaultdict[tuple[str, str], list[Held]] = defaultdict(list)
    for each in values:
        groups[_describe(each.value), source_of(each.value)].append(each)
    found = [
        ValueGroup(*key, len(group), sum(each.bytes for each in group), sum(each.seconds for each in group))
        for key, group in groups.items()
    ]
    return sorted(found, key=lambda group: -group.bytes)


def _describe(value: SSAValue) -> str:
    """Format a value as `tensor<4x8xf32>, result of stablehlo.add at model.py:3:5`."""
    place, owner = location_of(value), value.owner
    name = owner.name if isinstance(owner, Operation) else "a loop"
    return f"{value.type}, result of {name}{f' at {place}' if place else ''}"


def source_of(value: SSAValue) -> str:
    """Return the source line and primitive of JAX that compute `value`; empty if unknown, or in the backward pass."""
    place, path = location_of(value), name_path(value.owner)
    if place is None or "/" not in path or _BACKWARD in path:
        return ""
    return f"{PurePath(place.filename).name}:{place.line}:{place.column} {path.rpartition('/')[2]}"


def is_in_backward_pass(op: Operation) -> bool:
    """Return whether `op` transposes an operation of the forward pass, by the path of its name scopes."""
    return _BACKWARD in name_path(op)


def name_path(op: Operation | Block) -> str:
    """Return the path of the name scopes of an operation, such as "jit(step)/jvp()/dot_general"; empty if unknown."""
    return _path_in(op.location) if isinstance(op, Operation) else ""


def _path_in(location: Attribute) -> str:
    """Return the path in a location; that of an inlined call is before those in its callee."""
    match location:
        case NameLoc():
            return location.desc.data
        case CallSiteLoc():
            return "/".join(filter(None, map(_path_in, (location.caller, location.callee))))
        case _:
            return ""


def describe_recomputed(local: ModuleOp) -> str:
    """Format what a per-device program recomputes; an empty text if it recomputes nothing.

    Example: `12 values, and 4 MiB offloaded to the host: 8.3 MiB less memory, 9.1% more arithmetic in products`.
    """
    recomputed = companion(local, Recomputed)
    if not recomputed.values and not recomputed.offloaded:
        return ""
    all_, again = product_operations(local)
    arithmetic = f"{again / (all_ - again):.1%} more arithmetic in products" if again else "no more products"
    values = describe_values(recomputed.values, recomputed.offloaded)
    return f"{values}: {format_bytes(recomputed.saved_bytes)} less memory, {arithmetic}"


def describe_values(values: Sequence[ValueGroup], offloaded: Sequence[ValueGroup]) -> str:
    """Format the numbers of recomputed values, and the bytes of offloaded ones."""
    number, moved = count(values), sum(each.bytes for each in offloaded)
    again = f"{number:,} value{'s' if number > 1 else ''}" if number or not moved else ""
    on_host = f"{format_bytes(moved)} offloaded to the host" if moved else ""
    return ", and ".join(filter(None, (again, on_host)))


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
