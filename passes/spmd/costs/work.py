"""Roofline model of one operation: its arithmetic operations and its memory traffic."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Operation

from sdy.dialect.attributes import OPERATOR, WORK
from sdy.ir.operation_key import key_by_identity
from sdy.ir.shapes import shape_of
from sdy.operators.work import Work
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.arithmetic import arithmetic_of, masked_copies_of, product_sizes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.traffic import Times, times_in_memory


@dataclass(frozen=True, slots=True)
class OperationWork:
    """The arithmetic and memory traffic of an operation on unpartitioned tensors."""

    arithmetic: Work
    times: Times
    """The number of memory reads of each operand and writes of each result."""

    def seconds(self, parts: float, bytes_of: Iterable[float], hardware: Hardware, padding: float = 1.0) -> float:
        """Estimate the time in seconds of one of `parts` equal shards of the operation.

        Args:
            parts: The number of shards; a fraction if the last one is smaller.
            bytes_of: The bytes of one device's shard of each operand, then of each result.
            hardware: The hardware.
            padding: The operations that the device computes for each of a shard's; see `padding`.
        """
        traffic = sum([times * bytes_ for times, bytes_ in zip(self.times, bytes_of, strict=True) if times])
        return hardware.seconds(self.arithmetic, padding * self.arithmetic.operations / parts, traffic)


def work_of(op: Operation, fused: FusedValues) -> OperationWork:
    """Return the arithmetic and memory traffic of `op`; `fused` values cause no traffic."""
    # A ragged product does not materialize the masked copies of its factor.
    times = [
        0 if copies > 1 else each for each, copies in zip(times_in_memory(op, fused), masked_copies_of(op), strict=True)
    ]
    return OperationWork(arithmetic_of(op), tuple(times))


class OperationTimes:
    """Times of the operations of a module on one device.

    Layers repeat the same operations, so that each time is memoized by all that it depends on: the key of the
    operation, its traffic, and its masked copies. The module must not change meanwhile.
    """

    def __init__(self, hardware: Hardware, fused: FusedValues) -> None:
        self._hardware = hardware
        self._fused = fused
        self._known: dict[Hashable, float] = {}

    def of(self, op: Operation) -> float:
        """Estimate the time in seconds of `op`, without the operations nested in it. This is a hot path."""
        if (declared := op.attributes.get(WORK)) is not None:
            return _declared_seconds(cast(StringAttr, declared).data, self._hardware)
        around = times_in_memory(op, self._fused), masked_copies_of(op), id(op.attributes.get(OPERATOR))
        key = *key_by_identity(op), *around
        if key not in self._known:
            self._known[key] = self._seconds(op)
        return self._known[key]

    def _seconds(self, op: Operation) -> float:
        values = (*op.operands, *op.results)
        shapes = [shape_of(value) for value in op.operands if isinstance(value.type, TensorType)]
        filled = padding(op, shapes, self._hardware)
        return work_of(op, self._fused).seconds(1, map(value_bytes, values), self._hardware, filled)


def padding(op: Operation, shapes: Sequence[Sequence[int]], hardware: Hardware) -> float:
    """Return the operations that the matrix unit computes for each of a product's, on operands of `shapes`.

    The unit computes tiles, so that sizes are rounded up. XLA may exchange the operands.
    """
    sizes = product_sizes(op, shapes)
    if sizes is None or not all(sizes):
        return 1.0
    rows, columns, summed = sizes
    tile_rows, tile_columns, tile_summed = hardware.tile
    return _filled(summed, tile_summed) * min(
        _filled(rows, tile_rows) * _filled(columns, tile_columns),
        _filled(columns, tile_rows) * _filled(rows, tile_columns),
    )


def _filled(size: int, tile: int) -> float:
    """Return the size rounded up to a multiple of `tile`, over the size."""
    return math.ceil(size / tile) * tile / size


def _declared_seconds(text: str, hardware: Hardware) -> float:
    """Return the time of an operator whose declared work is on the first of its operations; 0 for the others."""
    if not text:
        return 0.0
    operations, element_type, precision, moved = text.split()
    return hardware.seconds(Work(0.0, element_type, precision), float(operations), float(moved))
