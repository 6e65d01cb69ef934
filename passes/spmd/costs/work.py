"""Roofline model of one operation: its arithmetic operations and its memory traffic."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Operation

from sdy.dialect.attributes import WORK
from sdy.ir.shapes import shape_of
from sdy.operators.work import Work
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.arithmetic import arithmetic_of, masked_copies, product_sizes
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
    times = times_in_memory(op, fused)
    # A ragged product does not materialize the masked copies of its factor.
    copies = [masked_copies(value) > 1 for value in (*op.operands, *op.results)]
    if any(copies):
        times = tuple([0 if is_copied else each for each, is_copied in zip(times, copies, strict=True)])
    return OperationWork(arithmetic_of(op), times)


def seconds_of(op: Operation, hardware: Hardware, fused: FusedValues) -> float:
    """Estimate the time in seconds of `op` on one device, without the operations nested in it."""
    if (declared := op.attributes.get(WORK)) is not None:
        return _declared_seconds(cast(StringAttr, declared).data, hardware)
    values = (*op.operands, *op.results)
    filled = padding(op, [shape_of(value) for value in op.operands if isinstance(value.type, TensorType)], hardware)
    return work_of(op, fused).seconds(1, map(value_bytes, values), hardware, filled)


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
