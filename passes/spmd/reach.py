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
from dataclasses import dataclass, field


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
    """A part of the buffer: `size` rows of another part, for each that gets some the one of `senders`.

    A sender sends to one part only, its rows from its entry of `starts` on. Parts that get nothing have zeros there.
    The rows that all parts have of themselves are not sent.
    """

    size: int
    senders: Mapping[int, int]
    starts: tuple[int, ...]

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
    def received(self) -> int:
        """The rows that all parts together receive."""
        return sum(piece.size * len(piece.senders) for piece in self.pieces if not piece.is_own)

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
        Piece(
            reach.shard,
            {part: part - hop for part in range(reach.parts) if 0 <= part - hop < reach.parts},
            starts=(0,) * reach.parts,
        )
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

    What parts need of a neighbour beside their own rows has its place beside these. What other parts need comes where
    it lets the fewest rows be sent: of every second row of 8 over 4 devices, device 0 has its first, and 1 to 3 receive
    theirs from 1 and 3 parts on.
    """
    slots: dict[int, _Slot] = {}
    movable: list[int] = []
    for part, rows in enumerate(needed):
        senders = _senders(reach, rows)
        if part in senders or reach.leaves(part):
            for sender in senders:
                slots.setdefault(sender - part, _Slot()).add(part, sender, _rows_of(reach, sender, rows))
        elif senders:
            movable.append(part)
    for part in movable:
        senders = _senders(reach, needed[part])
        wanted = [_rows_of(reach, sender, needed[part]) for sender in senders]
        first = _first_slot(slots, senders, wanted)
        for slot, (sender, rows) in enumerate(zip(senders, wanted, strict=True), first):
            slots.setdefault(slot, _Slot()).add(part, sender, rows)
    pieces = (slots[slot].piece(reach, is_own=slot == 0) for slot in sorted(slots))
    return tuple(pieces) or (Piece(reach.shard, {}, (0,) * reach.parts),)


@dataclass(slots=True)
class _Slot:
    """A piece that is being put together: for each part that gets some, the part that sends, and which of its rows."""

    senders: dict[int, int] = field(default_factory=dict[int, int])
    rows: dict[int, range] = field(default_factory=dict[int, range])
    size: int = 0

    def add(self, part: int, sender: int, rows: range) -> None:
        self.senders[part] = sender
        self.rows[sender] = rows
        self.size = max(self.size, len(rows))

    def piece(self, reach: Reach, is_own: bool) -> Piece:
        """The piece, of own rows the same of each part.

        A sender whose rows are fewer than those of others sends more, from its last row backwards or from its first
        one: so they stand beside what the receiver gets of the part before it or behind it.
        """
        if is_own:
            first, end = min(rows.start for rows in self.rows.values()), max(rows.stop for rows in self.rows.values())
            return Piece(end - first, self.senders, (first,) * reach.parts)
        starts = {sender: min(rows.start, reach.shard - self.size) for sender, rows in self.rows.items()}
        others = next(iter(starts.values()))
        return Piece(self.size, self.senders, tuple(starts.get(part, others) for part in range(reach.parts)))


def _senders(reach: Reach, rows: range) -> range:
    """The parts that have these rows."""
    return range(rows[0] // reach.shard, rows[-1] // reach.shard + 1) if rows else range(0)


def _rows_of(reach: Reach, sender: int, rows: range) -> range:
    """Return the rows of a part, counted from its first, that are among `rows`."""
    begin = sender * reach.shard
    return range(max(rows.start - begin, 0), min(rows.stop - begin, reach.shard))


def _first_slot(slots: Mapping[int, _Slot], senders: range, wanted: Sequence[range]) -> int:
    """The first of the slots, one after the other but not that of own rows, in which these parts can send these rows.

    As few rows more as can be are sent in them, there are as few new ones among them as can be, and they are as near to
    the own rows as can be.
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


def _offset(reach: Reach, part: int, rows: range, pieces: Sequence[Piece]) -> int:
    """Where in the buffer the places of a part begin, whose first row of `rows` is in one of the pieces."""
    if not rows:
        return 0
    place = 0
    for piece in pieces:
        if piece.senders.get(part) == rows[0] // reach.shard:
            place += rows[0] % reach.shard - piece.starts[rows[0] // reach.shard]
            break
        place += piece.size
    return place * reach.dilation - (rows[0] * reach.dilation - reach.starts[part])
