"""Carrying out an exchange: collective permutes bring the pieces of the buffer; each device takes its places of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.passes.spmd.exchange_builder import ExchangeBuilder
from sdy.passes.spmd.parts import shape_of
from sdy.passes.spmd.reach import Exchange, Piece, Reach
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.elementwise import AndOp, MaxOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp


@dataclass(frozen=True)
class Filler:
    """What places hold that no row stands at: a scalar, and whether it is known to be zero.

    Zero is also what a device has of a piece that it is not sent.
    """

    value: SSAValue
    is_zero: bool


@dataclass(frozen=True)
class DimExchange:
    """An exchange along dimension `dim` of a tensor, in the body of a manual computation."""

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
        """What each device needs along the dimension, from its part `value`."""
        pieces = [self._piece(value, piece) for piece in exchange.pieces]
        buffer = self._pad(self._emit.concatenate(pieces, self.dim), exchange)
        found = self._take(buffer, exchange)
        if self.filler.is_zero or not exchange.reach.leaves_tensor:
            return found
        return self._fill_outside(found, exchange.reach)

    def _piece(self, value: SSAValue, piece: Piece) -> SSAValue:
        rows = self._rows(value, piece)
        return rows if piece.is_own else self.builder.permute(self._emit, rows, self._axes, piece.senders)

    def _rows(self, value: SSAValue, piece: Piece) -> SSAValue:
        """The rows that the running device sends."""
        sizes = list(shape_of(value))
        if piece.size == sizes[self.dim]:
            return value
        sizes[self.dim] = piece.size
        if len(set(piece.starts)) > 1:
            return self._from(value, self.builder.by_part(self._axes, piece.starts), sizes)
        starts = [piece.starts[0] if dim == self.dim else 0 for dim in range(len(sizes))]
        return self._emit.slice(value, starts, [start + size for start, size in zip(starts, sizes, strict=True)])

    def _from(self, value: SSAValue, place: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """The part of `value` of `sizes` that begins at `place` along the dimension."""
        zero = self.builder.scalars.integers([0], ())
        place = self.builder.scalars.binary(MaxOp, place, zero)
        indices = [place if dim == self.dim else zero for dim in range(len(sizes))]
        return self._emit.dynamic_slice(value, indices, sizes)

    def _pad(self, buffer: SSAValue, exchange: Exchange) -> SSAValue:
        low, high, interior = ([0] * len(shape_of(buffer)) for _ in range(3))
        low[self.dim], high[self.dim], interior[self.dim] = exchange.low, exchange.high, exchange.reach.dilation - 1
        if not any((*low, *high, *interior)):
            return buffer
        return self._emit.insert(PadOp(buffer, self.filler.value, low, high, interior))

    def _take(self, buffer: SSAValue, exchange: Exchange) -> SSAValue:
        sizes = list(shape_of(buffer))
        starts = [0] * len(sizes)
        sizes[self.dim] = exchange.reach.length
        if (offset := exchange.constant_offset) is not None:
            starts[self.dim] = offset
            limits = [start + size for start, size in zip(starts, sizes, strict=True)]
            return buffer if tuple(sizes) == shape_of(buffer) else self._emit.slice(buffer, starts, limits)
        return self._from(buffer, self.builder.by_part(self._axes, exchange.offsets), sizes)

    def _fill_outside(self, found: SSAValue, reach: Reach) -> SSAValue:
        """`found` with the filler at places before the first row and after the last."""
        scalars, places = self.builder.scalars, TensorType(i64, (reach.length,))
        place = self.builder.places(self._axes, reach.starts, reach.length)
        last = scalars.filled(places, (reach.size - 1) * reach.dilation)
        inside = scalars.binary(
            AndOp,
            scalars.compare(ComparisonDirection.GE, place, scalars.filled(places, 0)),
            scalars.compare(ComparisonDirection.LE, place, last),
        )
        shape = shape_of(found)
        filler = self._emit.broadcast(self.filler.value, (), shape)
        return self._emit.select(self._emit.broadcast(inside, (self.dim,), shape), found, filler)
