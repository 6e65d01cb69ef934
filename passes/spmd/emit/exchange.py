"""Emission of a halo exchange: collective permutes fill a buffer, from which each device slices the rows it needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder
from sdy.passes.spmd.shards.halo import Exchange, Piece, ReadRanges
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.elementwise import AndOp, MaxOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp


@dataclass(frozen=True)
class Filler:
    """The scalar that fills positions without a row: padding and the gaps of a dilation."""

    value: SSAValue
    is_zero: bool
    """True if the scalar is known to be zero, which is also the result of a permute on a device without a sender."""


@dataclass(frozen=True)
class DimExchange:
    """A halo exchange along dimension `dim` of a tensor, in the body of a manual computation."""

    builder: ExchangeBuilder
    sharding: TensorSharding
    dim: int
    filler: Filler

    @property
    def _emit(self) -> Emitter:
        return self.builder.tensors(self.sharding)

    @property
    def _axes(self) -> tuple[AxisRef, ...]:
        return self.sharding.dims[self.dim].axes

    def run(self, value: SSAValue, exchange: Exchange) -> SSAValue:
        """Emit the exchange of the shards `value` and return the rows that each device needs."""
        pieces = [self._piece(value, piece) for piece in exchange.pieces]
        buffer = self._pad(self._emit.concatenate(pieces, self.dim), exchange)
        needed = self._slice_needed(buffer, exchange)
        if self.filler.is_zero or not exchange.ranges.leaves_tensor:
            return needed
        return self._fill_outside(needed, exchange.ranges)

    def take(self, value: SSAValue, ranges: ReadRanges) -> SSAValue:
        """Emit the slice of the unsharded `value` that each device needs, without an exchange."""
        reads = [start for start, places in zip(ranges.starts, ranges.matters, strict=True) if places] or [0]
        low = max(0, -min(reads))
        high = max(0, max(reads) + ranges.length - ((ranges.size - 1) * ranges.dilation + 1))
        offsets = tuple(low + max(start, -low) if start <= max(reads) else 0 for start in ranges.starts)
        lows, highs, interior = ([0] * len(shape_of(value)) for _ in range(3))
        lows[self.dim], highs[self.dim], interior[self.dim] = low, high, ranges.dilation - 1
        padded = self._emit.insert(PadOp(value, self.filler.value, lows, highs, interior))
        sizes = list(shape_of(padded))
        sizes[self.dim] = ranges.length
        return self._from(padded, self.builder.by_part(self._axes, offsets), sizes)

    def _piece(self, value: SSAValue, piece: Piece) -> SSAValue:
        rows = self._rows(value, piece)
        return rows if piece.is_own else self.builder.permute(self._emit, rows, self._axes, piece.senders)

    def _rows(self, value: SSAValue, piece: Piece) -> SSAValue:
        """Return the rows that the running device sends."""
        sizes = list(shape_of(value))
        if piece.size == sizes[self.dim]:
            return value
        sizes[self.dim] = piece.size
        if len(set(piece.starts)) > 1:
            return self._from(value, self.builder.by_part(self._axes, piece.starts), sizes)
        starts = [piece.starts[0] if dim == self.dim else 0 for dim in range(len(sizes))]
        return self._emit.slice(value, starts, [start + size for start, size in zip(starts, sizes, strict=True)])

    def _from(self, value: SSAValue, place: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """Return the slice of `value` of `sizes` that starts at `place` along the dimension."""
        zero = self.builder.scalars.integers([0], ())
        place = self.builder.scalars.binary(MaxOp, place, zero)
        indices = [place if dim == self.dim else zero for dim in range(len(sizes))]
        return self._emit.dynamic_slice(value, indices, sizes)

    def _pad(self, buffer: SSAValue, exchange: Exchange) -> SSAValue:
        low, high, interior = ([0] * len(shape_of(buffer)) for _ in range(3))
        low[self.dim], high[self.dim], interior[self.dim] = exchange.low, exchange.high, exchange.ranges.dilation - 1
        if not any((*low, *high, *interior)):
            return buffer
        return self._emit.insert(PadOp(buffer, self.filler.value, low, high, interior))

    def _slice_needed(self, buffer: SSAValue, exchange: Exchange) -> SSAValue:
        sizes = list(shape_of(buffer))
        starts = [0] * len(sizes)
        sizes[self.dim] = exchange.ranges.length
        if (offset := exchange.constant_offset) is not None:
            starts[self.dim] = offset
            limits = [start + size for start, size in zip(starts, sizes, strict=True)]
            return buffer if tuple(sizes) == shape_of(buffer) else self._emit.slice(buffer, starts, limits)
        return self._from(buffer, self.builder.by_part(self._axes, exchange.offsets), sizes)

    def _fill_outside(self, needed: SSAValue, ranges: ReadRanges) -> SSAValue:
        """Replace the positions of `needed` before the first row and after the last by the filler."""
        scalars, places = self.builder.scalars, TensorType(i64, (ranges.length,))
        place = self.builder.places(self._axes, ranges.starts, ranges.length)
        last = scalars.filled(places, (ranges.size - 1) * ranges.dilation)
        inside = scalars.binary(
            AndOp,
            scalars.compare(ComparisonDirection.GE, place, scalars.filled(places, 0)),
            scalars.compare(ComparisonDirection.LE, place, last),
        )
        shape = shape_of(needed)
        filler = self._emit.broadcast(self.filler.value, (), shape)
        return self._emit.select(self._emit.broadcast(inside, (self.dim,), shape), needed, filler)
