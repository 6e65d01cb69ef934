"""Which rows of a split dimension each device needs, and the plan of which neighbours send them.

Along the dimension each of p devices has `shard` rows. An operation with a window, a stride or an offset makes each
device need `length` places, from a start of its own, on a line on which the rows stand `dilation` places apart. For a
dimension of 8 rows over 4 devices and a window of 3 that slides by one, without padding:

    device    has       needs
    0         0 1       0 1 2 3
    1         2 3       2 3 4 5
    2         4 5       4 5 6 7
    3         6 7       6 7 . .       nothing that matters

so everyone gets two rows of the neighbour to the right, its halo. A plan is a buffer for each device: rows of its
neighbours to the left, its own, rows of its neighbours to the right, in order. What it needs is then in one run of it:
where a device needs rows of two neighbours, these stand side by side.
"""

from collections.abc import Sequence
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
        last = (self.size - 1) * self.dilation
        return any(
            places and (start + places[0] < 0 or start + places[-1] > last)
            for start, places in zip(self.starts, self.matters, strict=True)
        )

    @property
    def is_identity(self) -> bool:
        """Whether each part needs what it has, where it has it."""
        has_all = all(
            start == part * self.shard
            for part, (start, places) in enumerate(zip(self.starts, self.matters, strict=True))
            if places
        )
        return has_all and self.dilation == 1 and self.length == self.shard

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
    """A part of the buffer: the rows `start` to `limit` of the device that is `hop` parts further left.

    Those of `receivers`, which are parts, get it; the others have zeros there.
    """

    hop: int
    start: int
    limit: int
    receivers: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.limit - self.start


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
        return any(piece.hop for piece in self.pieces) or any(
            not self.reach.rows_at_most(part) for part in range(self.reach.parts)
        )

    @property
    def sent(self) -> int:
        """How many rows a device receives, at most."""
        return sum(piece.size for piece in self.pieces if piece.hop)


def whole_shards(reach: Reach, furthest: int | None = None) -> Exchange:
    """The exchange in which neighbours send all they have, as Shardy plans it.

    It pays if nobody needs more than the neighbours on both sides, or at least not those of all; with `furthest`, if
    nobody needs more than those that are so many parts away.
    """
    needed = [reach.rows_at_most(part) for part in range(reach.parts)]
    left = max((part - rows[0] // reach.shard for part, rows in enumerate(needed) if rows), default=0)
    right = max((rows[-1] // reach.shard - part for part, rows in enumerate(needed) if rows), default=0)
    left, right = max(left, 0), max(right, 0)
    pieces = tuple(
        Piece(hop, 0, reach.shard, tuple(part for part in range(reach.parts) if 0 <= part - hop < reach.parts))
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
    sent = sum(piece.size for piece in pieces if piece.hop)
    return Exchange(reach, pieces, low, high, offsets, sent <= (reach.parts - 1) * reach.shard, is_trimmed=True)


def _needed_pieces(reach: Reach, needed: Sequence[range]) -> tuple[Piece, ...]:
    """The pieces of which some rows are needed; the own rows where there are none."""
    wanted: dict[int, dict[int, range]] = {}
    for part, rows in enumerate(needed):
        for sender in range(rows[0] // reach.shard, rows[-1] // reach.shard + 1) if rows else ():
            begin = sender * reach.shard
            wanted.setdefault(part - sender, {})[part] = range(
                max(rows[0] - begin, 0), min(rows[-1] + 1 - begin, reach.shard)
            )
    return tuple(
        Piece(hop, min(rows.start for rows in of.values()), max(rows.stop for rows in of.values()), tuple(of))
        for hop, of in sorted(wanted.items(), reverse=True)
    ) or (Piece(0, 0, reach.shard, ()),)


def _offset(reach: Reach, part: int, rows: range, pieces: Sequence[Piece]) -> int:
    """Where in the buffer the places of a part begin, whose first row of `rows` is in one of the pieces."""
    if not rows:
        return 0
    place = 0
    for piece in pieces:
        if piece.hop == part - rows[0] // reach.shard:
            place += rows[0] % reach.shard - piece.start
            break
        place += piece.size
    return place * reach.dilation - (rows[0] * reach.dilation - reach.starts[part])
