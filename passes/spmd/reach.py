"""Which rows of a split dimension each device needs, and the plan of which neighbours send them.

Along the dimension each of p devices has `shard` rows. An operation with a window, a stride or an offset makes each
device need `length` places, from a start of its own, on a line on which the rows stand `dilation` places apart. For a
dimension of 8 rows over 4 devices and a window of 3 that slides by one, without padding:

    device    has       needs
    0         0 1       0 1 2 3
    1         2 3       2 3 4 5
    2         4 5       4 5 6 7
    3         6 7       6 7 . .       nothing that matters

so each device gets two rows of its neighbour to the right, its halo. A plan is a buffer for each device: rows of its
neighbours to the left, its own, rows of its neighbours to the right, in order. What it needs is then in one run of it:
where a device needs rows of two neighbours, these stand side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Reach:
    """What each part of a dimension of `size` rows needs: places on a line on which row r stands at `r * dilation`.

    Part t needs the `length` places from `starts[t]` on; only those in `matters[t]`, counted from there, matter.
    """

    size: int
    shard: int
    starts: tuple[int, ...]
    matters: tuple[range, ...]
    length: int
    dilation: int = 1

    @classmethod
    def steady(cls, size: int, parts: int, low: int, step: int, length: int, total: int, dilation: int = 1) -> "Reach":
        """Part t begins at place `t * step - low`; of all places from `-low` on the first `total` matter."""
        begins = [part * step for part in range(parts)]
        matters = tuple(range(max(0, min(length, total - begin))) for begin in begins)
        return cls(size, -(-size // parts), tuple(begin - low for begin in begins), matters, length, dilation)

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.starts)

    @property
    def leaves_tensor(self) -> bool:
        """Whether some place that matters is before the first row or after the last."""
        return any(map(self.leaves, range(self.parts)))

    @property
    def is_identity(self) -> bool:
        """Whether each part needs what it has, where it has it."""
        has_all = all(
            start == part * self.shard
            for part, (start, places) in enumerate(zip(self.starts, self.matters, strict=True))
            if places
        )
        return has_all and self.dilation == 1 and self.length == self.shard

    @property
    def stays(self) -> bool:
        """Whether each part needs rows of its own only."""
        return all(
            not rows or (part * self.shard <= rows[0] and rows[-1] < (part + 1) * self.shard)
            for part, rows in enumerate(map(self.rows, range(self.parts)))
        )

    def leaves(self, part: int) -> bool:
        """Whether some place that matters to a part is before the first row or after the last."""
        start, places = self.starts[part], self.matters[part]
        return bool(places) and (start + places[0] < 0 or start + places[-1] > (self.size - 1) * self.dilation)

    def rows(self, part: int) -> range:
        """The rows that matter to a part."""
        start, places = self.starts[part], self.matters[part]
        return self._rows(-(-(start + places.start) // self.dilation), -(-(start + places.stop) // self.dilation))

    def rows_at_most(self, part: int) -> range:
        """An estimate of the rows that a part needs, as though its places were rows: never too few."""
        start = self.starts[part]
        first = start // self.dilation if start > 0 else -(-start // self.dilation)
        return self._rows(first, first + self.length)

    def _rows(self, first: int, end: int) -> range:
        first, end = max(first, 0), min(end, self.size)
        return range(first, max(first, end))


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the buffer: the rows `start` to `limit` of another part, for each that gets some the one of `senders`.

    No part sends to two; those that get nothing have zeros there. What all have of themselves is not sent.
    """

    start: int
    limit: int
    senders: Mapping[int, int]

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.limit - self.start

    @property
    def is_own(self) -> bool:
        """Whether these are rows that each part has."""
        return all(receiver == sender for receiver, sender in self.senders.items())


@dataclass(frozen=True)
class Exchange:
    """The buffer: its pieces in order, and the padding to put before and after them, in places.

    For each part, `offsets` says where in all of this the places begin that it needs.
    """

    reach: Reach
    pieces: tuple[Piece, ...]
    low: int
    high: int
    offsets: tuple[int, ...]
    pays: bool
    """Whether this is worth it: else the dimension may as well be made whole on each device."""
    is_trimmed: bool
    """Whether only rows that are needed are sent, and nothing is done that has no effect."""

    @property
    def constant_offset(self) -> int | None:
        """The one place in the buffer where all parts begin, if there is one and that is to be made use of."""
        offsets = {offset for offset, places in zip(self.offsets, self.reach.matters, strict=True) if places}
        return offsets.pop() if self.is_trimmed and len(offsets) == 1 else None

    @property
    def moves(self) -> bool:
        """Whether a part needs more than its own rows, or rows that are not there."""
        return not all(piece.is_own for piece in self.pieces) or any(
            not self.reach.rows_at_most(part) for part in range(self.reach.parts)
        )


def whole_shards(reach: Reach, furthest: int | None = None) -> Exchange:
    """The exchange in which neighbours send all they have, as Shardy plans it.

    It pays if no device needs more than the neighbours on both sides, or at least not those of all; with `furthest`,
    if no device needs rows from further than so many parts away.
    """
    needed = [reach.rows_at_most(part) for part in range(reach.parts)]
    left = max((part - rows[0] // reach.shard for part, rows in enumerate(needed) if rows), default=0)
    right = max((rows[-1] // reach.shard - part for part, rows in enumerate(needed) if rows), default=0)
    left, right = max(left, 0), max(right, 0)
    pieces = tuple(
        Piece(0, reach.shard, {part: part - hop for part in range(reach.parts) if 0 <= part - hop < reach.parts})
        for hop in range(left, -right - 1, -1)
    )
    edge = reach.length * reach.dilation
    offsets = tuple(
        edge + start + (left - part) * reach.shard * reach.dilation for part, start in enumerate(reach.starts)
    )
    hops = max(left, right)
    pays = hops <= (furthest or 1) or (furthest is None and left + right + 1 < reach.parts)
    return Exchange(reach, pieces, edge, edge, offsets, pays, is_trimmed=False)


def needed_rows(reach: Reach) -> Exchange:
    """The exchange in which neighbours send the rows that are needed, and only to those who need some of them.

    It pays if a device receives no more rows than others have.
    """
    needed = [reach.rows(part) for part in range(reach.parts)]
    pieces = _needed_pieces(reach, needed)
    found = [_offset(reach, part, rows, pieces) for part, rows in enumerate(needed)]
    inside = [offset for offset, rows in zip(found, needed, strict=True) if rows] or [0]
    size = (sum(piece.size for piece in pieces) - 1) * reach.dilation + 1
    only_outside = any(places and not rows for places, rows in zip(reach.matters, needed, strict=True))
    low = reach.length if only_outside else max(0, -min(inside))
    high = max(0, max(inside) + reach.length - size)
    offsets = tuple(low + offset if rows else 0 for offset, rows in zip(found, needed, strict=True))
    sent = sum(piece.size for piece in pieces if not piece.is_own)
    return Exchange(reach, pieces, low, high, offsets, sent <= (reach.parts - 1) * reach.shard, is_trimmed=True)


def _needed_pieces(reach: Reach, needed: Sequence[range]) -> tuple[Piece, ...]:
    """The pieces of which some rows are needed; the own rows where there are none.

    What parts need that are so far apart as no others are, comes in the place of what these get, if that is as much:
    of every second row of 8 over 4 devices, device 0 has its first, and 1 to 3 receive theirs from 1 and 3 parts on.
    """
    spans: dict[int, range] = {}
    for part, rows in enumerate(needed):
        for sender in _senders(reach, rows):
            begin = sender * reach.shard
            wanted = range(max(rows[0] - begin, 0), min(rows[-1] + 1 - begin, reach.shard))
            known = spans.get(sender - part, wanted)
            spans[sender - part] = range(min(known.start, wanted.start), max(known.stop, wanted.stop))
    slots: dict[int, dict[int, int]] = {}
    movable: list[int] = []
    for part, rows in enumerate(needed):
        senders = _senders(reach, rows)
        if part in senders or reach.leaves(part):
            for sender in senders:
                slots.setdefault(sender - part, {})[part] = sender
        elif senders:
            movable.append(part)
    span_of = {slot: spans[slot] for slot in slots}
    for part in movable:
        senders = _senders(reach, needed[part])
        wanted_spans = [spans[sender - part] for sender in senders]
        first = _free_run(slots, span_of, senders, wanted_spans)
        for slot, (sender, span) in enumerate(zip(senders, wanted_spans, strict=True), first):
            slots.setdefault(slot, {})[part] = sender
            span_of[slot] = span
    pieces = (Piece(span_of[slot].start, span_of[slot].stop, slots[slot]) for slot in sorted(slots))
    return tuple(pieces) or (Piece(0, reach.shard, {}),)


def _senders(reach: Reach, rows: range) -> range:
    """The parts that have these rows."""
    return range(rows[0] // reach.shard, rows[-1] // reach.shard + 1) if rows else range(0)


def _free_run(
    slots: Mapping[int, Mapping[int, int]], span_of: Mapping[int, range], senders: range, spans: Sequence[range]
) -> int:
    """The first of the slots, one after the other but not those of own rows, in which these parts can send these rows.

    There are as few new ones among them as can be, and they are as near to the own rows as can be.
    """

    def is_free(first: int) -> bool:
        return all(
            slot != 0 and (slot not in slots or (span_of[slot] == span and sender not in slots[slot].values()))
            for slot, (sender, span) in enumerate(zip(senders, spans, strict=True), first)
        )

    def cost(first: int) -> tuple[int, int]:
        return sum(slot not in slots for slot in range(first, first + len(senders))), abs(first)

    used = (0, *slots)
    return min(filter(is_free, range(min(used) - len(senders), max(used) + 2)), key=cost)


def _offset(reach: Reach, part: int, rows: range, pieces: Sequence[Piece]) -> int:
    """Where in the buffer the places of a part begin, whose first row of `rows` is in one of the pieces."""
    if not rows:
        return 0
    place = 0
    for piece in pieces:
        if piece.senders.get(part) == rows[0] // reach.shard:
            place += rows[0] % reach.shard - piece.start
            break
        place += piece.size
    return place * reach.dilation - (rows[0] * reach.dilation - reach.starts[part])
