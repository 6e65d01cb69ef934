"""Builder of a device's shard of a concatenation."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder, TensorEmitter
from sdy.passes.spmd.ops.concatenate.redistribution import Message
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.elementwise import AndOp
from sdy.stablehlo.padding import PadOp


@dataclass(frozen=True)
class _Put:
    """Write into the shard: row p of shard t, if p is in `places[t]`, is row `begins[t] + p` of `rows`."""

    rows: SSAValue
    begins: Sequence[int]
    places: Sequence[range]

    @property
    def begin(self) -> int | None:
        """The offset in `begins` that all shards with nonempty `places` share, or None if they differ."""
        begins = {begin for begin, places in zip(self.begins, self.places, strict=True) if places}
        return begins.pop() if len(begins) == 1 else None

    @property
    def reach(self) -> range:
        """The range from the first row written in any shard to the last."""
        used = [places for places in self.places if places]
        return range(min(places.start for places in used), max(places.stop for places in used))

    @property
    def all_begins(self) -> list[int]:
        """`begins`, with the minimum in place of the irrelevant offsets of shards with empty `places`."""
        least = min(begin for begin, places in zip(self.begins, self.places, strict=True) if places)
        return [begin if places else least for begin, places in zip(self.begins, self.places, strict=True)]

    def fits(self, length: int, dim: int) -> bool:
        """Return whether `rows` are fewer than the `length` rows of a shard, and all within its bounds."""
        count = shape_of(self.rows)[dim]
        return count < length and all(0 <= -begin <= length - count for begin in self.all_begins)


@dataclass
class ConcatenatedPart:
    """Builder of a device's shard of the result: `length` rows along `dim`, which is split into `parts` shards."""

    builder: ExchangeBuilder
    sharding: TensorSharding
    dim: int
    parts: int
    length: int
    puts: list[_Put] = field(default_factory=list[_Put])

    @property
    def _emit(self) -> TensorEmitter:
        return self.builder.tensors(self.sharding)

    @property
    def _axes(self) -> Sequence[AxisRef]:
        return self.sharding.dims[self.dim].axes

    def put(self, rows: SSAValue, begins: Sequence[int], places: Sequence[range]) -> None:
        """Set row p of shard t, for p in `places[t]`, to row `begins[t] + p` of the device's `rows`."""
        self.puts.append(_Put(rows, begins, places))

    def keep(self, pool: SSAValue, messages: Sequence[Message]) -> None:
        """Copy rows of each device's own `pool`, for at most one message per device."""
        begins, places = [0] * self.parts, [range(0)] * self.parts
        for message in messages:
            begins[message.receiver] = message.start - message.place
            places[message.receiver] = range(message.place, message.place + message.size)
        self.put(pool, begins, places)

    def exchange(self, pool: SSAValue, messages: Sequence[Message]) -> None:
        """Send rows of each device's `pool` in one collective-permute, at most one message to and from a device."""
        size, count = max(message.size for message in messages), shape_of(pool)[self.dim]
        starts = [min(messages[0].start, count - size)] * self.parts
        begins, places = [0] * self.parts, [range(0)] * self.parts
        for message in messages:
            start = starts[message.sender] = min(message.start, count - size)
            begins[message.receiver] = message.start - start - message.place
            places[message.receiver] = range(message.place, message.place + message.size)
        sent = self._slice(pool, starts, size)
        senders = {message.receiver: message.sender for message in messages}
        self.put(self.builder.permute(self._emit, sent, self._axes, senders), begins, places)

    def rows(self) -> SSAValue:
        """Return the shard, after all of its rows have been written."""
        puts = sorted(self.puts, key=lambda put: put.reach.start)
        bounds = [0, *(put.reach.stop for put in puts)]
        is_contiguous = bounds[-1] == self.length and [put.reach.start for put in puts] == bounds[:-1]
        if is_contiguous and all(put.begin is not None for put in puts):
            return self._emit.concatenate([self._static_rows(put) for put in puts], self.dim)
        value = self._full_shard(puts[0])  # later puts overwrite the rows that this one does not set
        for put in puts[1:]:
            value = (
                self._with_update(value, put)
                if put.fits(self.length, self.dim)
                else self._with_selected_rows(value, put)
            )
        return value

    def _with_selected_rows(self, value: SSAValue, put: _Put) -> SSAValue:
        """Return `value` with the rows of `put`, selected from a full shard that holds them in place."""
        full_shard = self._full_shard(put)
        return self._emit.select(self._row_mask(put.places, full_shard), full_shard, value)

    def _with_update(self, value: SSAValue, put: _Put) -> SSAValue:
        """Return `value` with the rows of `put`, written by a dynamic-update-slice."""
        rows, sizes, starts = put.rows, shape_of(put.rows), [-begin for begin in put.all_begins]
        if any(len(places) < sizes[self.dim] for places in put.places):
            ranges = [range(places.start - at, places.stop - at) for places, at in zip(put.places, starts, strict=True)]
            old = self._slice(value, starts, sizes[self.dim])
            rows = self._emit.select(self._row_mask(ranges, old), rows, old)
        zero, place = self.builder.scalars.integers([0], ()), self._entry_of_device(starts)
        return self._emit.dynamic_update_slice(
            value, rows, [place if dim == self.dim else zero for dim in range(len(sizes))]
        )

    def _static_rows(self, put: _Put) -> SSAValue:
        """Return the rows that `put` writes, at the same offset in all shards."""
        assert put.begin is not None
        return self._slice(put.rows, [put.begin + put.reach.start] * self.parts, len(put.reach))

    def _full_shard(self, put: _Put) -> SSAValue:
        """Return a full shard that holds the rows of `put` in place, and arbitrary rows elsewhere."""
        rows, begins, count = put.rows, put.all_begins, shape_of(put.rows)[self.dim]
        before, behind = max(0, -min(begins)), max(0, max(begins) + self.length - count)
        if before or behind:
            low, high, interior = ([0] * self.sharding.rank for _ in range(3))
            low[self.dim], high[self.dim] = before, behind
            zero = self.builder.scalars.filled(TensorType(tensor_type(rows).element_type, ()), 0)
            rows = self._emit.insert(PadOp(rows, zero, low, high, interior))
        return self._slice(rows, [begin + before for begin in begins], self.length)

    def _slice(self, rows: SSAValue, starts: Sequence[int], size: int) -> SSAValue:
        """Return `size` rows from the running device's entry of `starts` on."""
        if size == shape_of(rows)[self.dim]:
            return rows
        if len(set(starts)) == 1:
            firsts = [starts[0] if dim == self.dim else 0 for dim in range(self.sharding.rank)]
            limits = [
                starts[0] + size if dim == self.dim else local_size for dim, local_size in enumerate(shape_of(rows))
            ]
            return self._emit.slice(rows, firsts, limits)
        zero = self.builder.scalars.integers([0], ())
        start = self._entry_of_device(starts)
        sizes = [size if dim == self.dim else local_size for dim, local_size in enumerate(shape_of(rows))]
        return self._emit.dynamic_slice(rows, [start if dim == self.dim else zero for dim in range(len(sizes))], sizes)

    def _entry_of_device(self, numbers: Sequence[int]) -> SSAValue:
        """Return the running device's entry of `numbers`, which has one for each shard."""
        if len(set(numbers)) == 1:
            return self.builder.scalars.integers(numbers[:1], ())
        return self.builder.by_part(self._axes, numbers)

    def _row_mask(self, places: Sequence[range], like: SSAValue) -> SSAValue:
        """Return a mask in the shape of `like` of the rows in the running device's entry of `places`."""
        scalars, shape = self.builder.scalars, (shape_of(like)[self.dim],)
        place = scalars.insert(IotaOp(0, TensorType(i64, shape)))
        first, end = (
            scalars.broadcast(self._entry_of_device(bounds), (), shape)
            for bounds in ([each.start for each in places], [each.stop for each in places])
        )
        among = scalars.binary(
            AndOp,
            scalars.compare(ComparisonDirection.GE, place, first),
            scalars.compare(ComparisonDirection.LT, place, end),
        )
        return self._emit.broadcast(among, (self.dim,), shape_of(like))
