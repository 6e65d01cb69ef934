"""Planning of halo exchanges: the rows of a sharded dimension that each device needs, and which devices send them.

Along the dimension, each of p devices has a shard of `shard` rows. In the coordinates of the dilated operand, row r is
at position `r * dilation`, and each device needs `length` consecutive positions, from a start that depends on the
window, stride and offset of the operation. For a dimension of 8 rows over 4 devices and a window of 3 with stride 1 and
no padding:

    device    has       needs
    0         0 1       0 1 2 3
    1         2 3       2 3 4 5
    2         4 5       4 5 6 7
    3         6 7       6 7 . .       no valid window

so each device receives two rows, its halo, from its right neighbor. A plan describes a buffer on each device, the
concatenation of rows from the left neighbors, its own rows, and rows from the right neighbors. The rows that the device
needs are contiguous in the buffer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class ReadRanges:
    """The positions that each shard of a dimension needs, where row r is at position `r * dilation`.

    Attributes:
        size: The number of rows of the dimension.
        shard: The number of rows of a shard.
        starts: The first position that each shard needs.
        matters: The needed positions that affect the result, relative to the start, for each shard.
        length: The number of positions that each shard needs.
        dilation: The distance between the positions of two rows.
        replicas: The number of consecutive parts that hold the same shard: part t holds shard `t // replicas`.
    """

    size: int
    shard: int
    starts: tuple[int, ...]
    matters: tuple[range, ...]
    length: int
    dilation: int = 1
    replicas: int = 1

    @classmethod
    def steady(
        cls, size: int, parts: int, low: int, step: int, length: int, total: int, dilation: int = 1
    ) -> "ReadRanges":
        """Return the ranges of shards that start `step` apart: shard t needs the positions from `t * step - low` on.

        Args:
            size: The number of rows of the dimension.
            parts: The number of shards.
            low: The negated start of the first shard.
            step: The distance between the starts of two shards.
            length: The number of positions that each shard needs.
            total: The number of positions from `-low` on that affect the result.
            dilation: The distance between the positions of two rows.
        """
        begins = [part * step for part in range(parts)]
        matters = tuple(range(max(0, min(length, total - begin))) for begin in begins)
        return cls(size, -(-size // parts), tuple(begin - low for begin in begins), matters, length, dilation)

    @classmethod
    def resharded(cls, size: int, parts: int, before: int, new_parts: int, after: int) -> "ReadRanges":
        """Return the ranges of the shards of a dimension whose padded size and number of shards change.

        Args:
            size: The number of rows of the dimension.
            parts: The number of shards before.
            before: The padded size before.
            new_parts: The number of shards after, a multiple of `parts`.
            after: The padded size after.
        """
        length = after // new_parts
        starts = tuple(part * length for part in range(new_parts))
        matters = tuple(range(max(0, min(length, size - start))) for start in starts)
        return cls(size, before // parts, starts, matters, length, replicas=new_parts // parts)

    @classmethod
    def gathered(cls, size: int, parts: int, before: int, new_parts: int, after: int) -> "ReadRanges":
        """Return the ranges of `parts` equal pieces of the `new_parts` shards that an all-gather makes of them.

        Args:
            size: The number of rows of the dimension.
            parts: The number of shards before the all-gather.
            before: The padded size before.
            new_parts: The number of shards after it, a divisor of `parts`.
            after: The padded size after.
        """
        pieces, length = parts // new_parts, after // new_parts
        of_piece = -(-length // pieces)
        starts = tuple(part // pieces * length + part % pieces * of_piece for part in range(parts))
        ends = [min(size, (part // pieces + 1) * length) for part in range(parts)]
        matters = tuple(range(max(0, min(of_piece, end - start))) for start, end in zip(starts, ends, strict=True))
        return cls(size, before // parts, starts, matters, of_piece)

    @classmethod
    def trimmed(cls, parts: int, before: int, after: int) -> "ReadRanges":
        """Return the ranges of shards that lose their last rows, `before` and `after` this many in all shards."""
        shard, length = before // parts, after // parts
        starts = tuple(part * shard for part in range(parts))
        return cls(before, shard, starts, (range(length),) * parts, length)

    @property
    def parts(self) -> int:
        """The number of shards that read."""
        return len(self.starts)

    def first_row(self, part: int) -> int:
        """Return the first row that the device of shard `part` holds."""
        return part // self.replicas * self.shard

    @property
    def leaves_tensor(self) -> bool:
        """True if a position that affects the result is before the first row or after the last."""
        return any(map(self.leaves, range(self.parts)))

    @property
    def is_identity(self) -> bool:
        """True if each shard needs exactly its own rows, in place."""
        has_all = all(
            start == self.first_row(part)
            for part, (start, places) in enumerate(zip(self.starts, self.matters, strict=True))
            if places
        )
        return has_all and self.dilation == 1 and self.length == self.shard

    @property
    def stays(self) -> bool:
        """True if each shard needs only rows of its own."""
        return all(
            not rows or (self.first_row(part) <= rows[0] and rows[-1] < self.first_row(part) + self.shard)
            for part, rows in enumerate(map(self.rows, range(self.parts)))
        )

    def leaves(self, part: int) -> bool:
        """Return whether a position that affects the result of shard `part` is outside the rows of the dimension."""
        start, places = self.starts[part], self.matters[part]
        return bool(places) and (start + places[0] < 0 or start + places[-1] > (self.size - 1) * self.dilation)

    def rows(self, part: int) -> range:
        """Return the rows that affect the result of shard `part`."""
        start, places = self.starts[part], self.matters[part]
        return self._rows(-(-(start + places.start) // self.dilation), -(-(start + places.stop) // self.dilation))

    def rows_at_most(self, part: int) -> range:
        """Return an upper bound of the rows that shard `part` needs, which ignores the gaps of the dilation."""
        start = self.starts[part]
        first = start // self.dilation if start > 0 else -(-start // self.dilation)
        return self._rows(first, first + self.length)

    def _rows(self, first: int, end: int) -> range:
        first, end = max(first, 0), min(end, self.size)
        return range(first, max(first, end))


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the buffer: rows that each shard receives from one other shard, by one collective permute.

    Attributes:
        size: The number of rows.
        senders: The sender of each receiving shard; distinct receivers have distinct senders. Other shards get zeros.
        starts: The first row that each shard sends.
    """

    size: int
    senders: Mapping[int, int]
    starts: tuple[int, ...]

    @property
    def is_own(self) -> bool:
        """True if the rows are those of the shard itself, which need no permute."""
        return all(receiver == sender for receiver, sender in self.senders.items())


@dataclass(frozen=True)
class Exchange:
    """The plan of a halo exchange: the pieces of the buffer, its padding, and the offsets at which shards slice it."""

    ranges: ReadRanges
    pieces: tuple[Piece, ...]
    """The pieces, in the order of their concatenation."""
    low: int
    """Padding before the pieces, in positions."""
    high: int
    """Padding after the pieces, in positions."""
    offsets: tuple[int, ...]
    """The offset in the padded buffer of the first position that each shard needs."""
    pays: bool
    """True if the exchange is worthwhile; otherwise, the dimension is replicated."""
    is_trimmed: bool
    """True if only needed rows are sent, and operations without effect are left out."""

    @property
    def constant_offset(self) -> int | None:
        """The common offset of all shards in a trimmed exchange; None if they differ."""
        offsets = {offset for offset, places in zip(self.offsets, self.ranges.matters, strict=True) if places}
        return offsets.pop() if self.is_trimmed and len(offsets) == 1 else None

    @property
    def received(self) -> int:
        """The number of rows received, summed over all shards."""
        return sum(piece.size * len(piece.senders) for piece in self.pieces if not piece.is_own)

    @property
    def moves(self) -> bool:
        """True if a shard needs rows of other shards, or no rows at all."""
        return not all(piece.is_own for piece in self.pieces) or any(
            not self.ranges.rows_at_most(part) for part in range(self.ranges.parts)
        )


def full_shards(ranges: ReadRanges, furthest: int | None = None) -> Exchange:
    """Plan the exchange in which neighbors send their full shards, as Shardy does.

    Args:
        ranges: The positions that each shard needs.
        furthest: The greatest distance in shards of a neighbor from which the exchange pays. By default, it pays if the
            needed rows are in the adjacent shards, or if a device does not need all shards.
    """
    needed = [ranges.rows_at_most(part) for part in range(ranges.parts)]
    left = max((part - rows[0] // ranges.shard for part, rows in enumerate(needed) if rows), default=0)
    right = max((rows[-1] // ranges.shard - part for part, rows in enumerate(needed) if rows), default=0)
    left, right = max(left, 0), max(right, 0)
    pieces = tuple(
        Piece(
            ranges.shard,
            {part: part - hop for part in range(ranges.parts) if 0 <= part - hop < ranges.parts},
            starts=(0,) * ranges.parts,
        )
        for hop in range(left, -right - 1, -1)
    )
    edge = ranges.length * ranges.dilation
    offsets = tuple(
        edge + start + (left - part) * ranges.shard * ranges.dilation for part, start in enumerate(ranges.starts)
    )
    hops = max(left, right)
    pays = hops <= (furthest or 1) or (furthest is None and left + right + 1 < ranges.parts)
    return Exchange(ranges, pieces, edge, edge, offsets, pays, is_trimmed=False)


def needed_rows(ranges: ReadRanges) -> Exchange:
    """Plan the exchange in which neighbors send only the needed rows, to the devices that need them.

    It pays if devices receive fewer rows than in an all-gather, or as many in as few permutes.
    """
    needed = [ranges.rows(part) for part in range(ranges.parts)]
    pieces = _needed_pieces(ranges, needed)
    unpadded = [_offset(ranges, part, rows, pieces) for part, rows in enumerate(needed)]
    inside = [offset for offset, rows in zip(unpadded, needed, strict=True) if rows] or [0]
    size = (sum(piece.size for piece in pieces) - 1) * ranges.dilation + 1
    only_outside = any(places and not rows for places, rows in zip(ranges.matters, needed, strict=True))
    low = ranges.length if only_outside else max(0, -min(inside))
    high = max(0, max(inside) + ranges.length - size)
    offsets = tuple(low + offset if rows else 0 for offset, rows in zip(unpadded, needed, strict=True))
    sent, shards = sum(piece.size for piece in pieces if not piece.is_own), ranges.parts // ranges.replicas
    gathered = (shards - 1) * ranges.shard
    exchange = Exchange(ranges, pieces, low, high, offsets, sent <= gathered, is_trimmed=True)
    return replace(exchange, pays=exchange.pays or exchange.received < ranges.parts * gathered)


def _needed_pieces(ranges: ReadRanges, needed: Sequence[range]) -> tuple[Piece, ...]:
    """Return the pieces with needed rows, or the own rows if no rows are needed.

    If a shard needs rows of its own, the rows of its neighbors must be adjacent to them. Otherwise, its rows are
    assigned to the slots that minimize the number of rows sent: of every second of 8 rows over 4 devices, device 0 has
    its first row already, and devices 1 to 3 receive theirs from up to 3 shards away.
    """
    slots: dict[int, _Slot] = {}
    movable: list[int] = []
    for part, rows in enumerate(needed):
        senders = _senders(ranges, part, rows)
        if part in senders or ranges.leaves(part):
            for sender in senders:
                slot = (sender - part) // ranges.replicas
                slots.setdefault(slot, _Slot()).add(part, sender, _rows_of(ranges, sender, rows))
        elif senders:
            movable.append(part)
    for part in movable:
        senders = _senders(ranges, part, needed[part])
        wanted = [_rows_of(ranges, sender, needed[part]) for sender in senders]
        first = _first_slot(slots, senders, wanted)
        for slot, (sender, rows) in enumerate(zip(senders, wanted, strict=True), first):
            slots.setdefault(slot, _Slot()).add(part, sender, rows)
    pieces = (slots[slot].piece(ranges, is_own=slot == 0) for slot in sorted(slots))
    return tuple(pieces) or (Piece(ranges.shard, {}, (0,) * ranges.parts),)


@dataclass(slots=True)
class _Slot:
    """A piece under construction: the sender of each receiving shard, and the rows that each sender sends."""

    senders: dict[int, int] = field(default_factory=dict[int, int])
    rows: dict[int, range] = field(default_factory=dict[int, range])
    size: int = 0

    def add(self, part: int, sender: int, rows: range) -> None:
        self.senders[part] = sender
        self.rows[sender] = rows
        self.size = max(self.size, len(rows))

    def piece(self, ranges: ReadRanges, is_own: bool) -> Piece:
        """Build the piece; each shard takes the same rows of its own.

        A sender with fewer rows than the others sends additional ones, so that all pieces have one size. It sends its
        last or first rows, so that the needed ones are adjacent to those of the next piece.
        """
        if is_own:
            first, end = min(rows.start for rows in self.rows.values()), max(rows.stop for rows in self.rows.values())
            return Piece(end - first, self.senders, (first,) * ranges.parts)
        starts = {sender: min(rows.start, ranges.shard - self.size) for sender, rows in self.rows.items()}
        others = next(iter(starts.values()))
        return Piece(self.size, self.senders, tuple(starts.get(part, others) for part in range(ranges.parts)))


def _senders(ranges: ReadRanges, part: int, rows: range) -> range:
    """Return the parts that have these rows: of the parts that hold the same shard, the one in the place of `part`."""
    if not rows:
        return range(0)
    first, last = rows[0] // ranges.shard, rows[-1] // ranges.shard
    place, step = part % ranges.replicas, ranges.replicas
    return range(first * step + place, last * step + place + 1, step)


def _rows_of(ranges: ReadRanges, sender: int, rows: range) -> range:
    """Return the rows that part `sender` holds and that are among `rows`, relative to the first that it holds."""
    begin = ranges.first_row(sender)
    return range(max(rows.start - begin, 0), min(rows.stop - begin, ranges.shard))


def _first_slot(slots: Mapping[int, _Slot], senders: range, wanted: Sequence[range]) -> int:
    """Return the first of the consecutive slots in which `senders` send the rows `wanted`.

    The slots exclude slot 0 of the own rows. They minimize, in this order, the additional rows sent, the number of new
    slots, and the distance from slot 0.
    """

    def is_free(first: int) -> bool:
        return all(
            slot != 0 and (slot not in slots or sender not in slots[slot].rows)
            for slot, sender in enumerate(senders, first)
        )

    def cost(first: int) -> tuple[int, int, int]:
        sent = 0
        for slot, rows in enumerate(wanted, first):
            old = slots.get(slot, _Slot())
            sent += max(old.size, len(rows)) * (len(old.senders) + 1) - old.size * len(old.senders)
        return sent, sum(slot not in slots for slot in range(first, first + len(senders))), abs(first)

    used = (0, *slots)
    return min(filter(is_free, range(min(used) - len(senders), max(used) + 2)), key=cost)


def _offset(ranges: ReadRanges, part: int, rows: range, pieces: Sequence[Piece]) -> int:
    """Return the offset in the unpadded buffer of the first position that shard `part` needs; 0 if it needs no rows."""
    if not rows:
        return 0
    place = 0
    sender = _senders(ranges, part, rows)[0]
    for piece in pieces:
        if piece.senders.get(part) == sender:
            place += rows[0] - ranges.first_row(sender) - piece.starts[sender]
            break
        place += piece.size
    return place * ranges.dilation - (rows[0] * ranges.dilation - ranges.starts[part])
