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
neighbours to the left, its own, rows of its neighbours to the right, in order, in which it then finds what it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Reach:
    """What each part of a dimension of `size` rows needs: places on a line on which row r stands at `r * dilation`.

    Part t needs the `length` places from `starts[t]` on, of which only the first `counts[t]` matter.
    """

    size: int
    shard: int
    starts: tuple[int, ...]
    counts: tuple[int, ...]
    length: int
    dilation: int = 1

    @classmethod
    def steady(cls, size: int, parts: int, low: int, step: int, length: int, total: int, dilation: int = 1) -> "Reach":
        """Part t begins at place `t * step - low`; of all places from `-low` on the first `total` matter."""
        begins = [part * step for part in range(parts)]
        counts = tuple(max(0, min(length, total - begin)) for begin in begins)
        return cls(size, -(-size // parts), tuple(begin - low for begin in begins), counts, length, dilation)

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.starts)

    @property
    def leaves_tensor(self) -> bool:
        """Whether some place that matters is before the first row or after the last."""
        last = (self.size - 1) * self.dilation
        return any(
            count and (start < 0 or start + count - 1 > last)
            for start, count in zip(self.starts, self.counts, strict=True)
        )

    @property
    def is_identity(self) -> bool:
        """Whether each part needs what it has, where it has it."""
        own = [part * self.shard for part in range(self.parts)]
        return (
            self.dilation == 1
            and self.length == self.shard
            and all(
                not count or start == begin for start, count, begin in zip(self.starts, self.counts, own, strict=True)
            )
        )

    def rows(self, part: int) -> range:
        """The rows that matter to a part."""
        start, end = self.starts[part], self.starts[part] + self.counts[part]
        return self._rows(-(-start // self.dilation), -(-end // self.dilation))

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

    Those of `receivers`, which are parts, get it; for the others it is padding.
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
    """The buffer: its pieces in order, and the padding to put before and after them, in places."""

    reach: Reach
    pieces: tuple[Piece, ...]
    low: int
    high: int
    pays: bool
    """Whether this is worth it: else the dimension may as well be made whole on each device."""
    is_trimmed: bool
    """Whether only rows that are needed are sent, and nothing is done that has no effect."""

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """For each part, where in the buffer the places begin that it needs."""
        return tuple(self.low + offset for offset in _offsets(self.reach, self._rows_before))

    @property
    def constant_offset(self) -> int | None:
        """The one place in the buffer where all parts begin, if there is one and that is to be made use of."""
        offsets = {offset for offset, count in zip(self.offsets, self.reach.counts, strict=True) if count}
        return offsets.pop() if self.is_trimmed and len(offsets) == 1 else None

    @property
    def moves(self) -> bool:
        """Whether a part needs more than its own rows, or rows that are not there."""
        return any(piece.hop for piece in self.pieces) or any(
            not self.reach.rows_at_most(part) for part in range(self.reach.parts)
        )

    @property
    def _rows_before(self) -> int:
        return sum(piece.size for piece in self.pieces if piece.hop > 0)


def whole_shards(reach: Reach, furthest: int | None = None) -> Exchange:
    """The exchange in which neighbours send all they have, from as far as `furthest` parts away, as Shardy plans it.

    Of the two ways to say that it does not pay, `furthest` and gathering from everyone, the former is for reshapes.
    """
    needed = [reach.rows_at_most(part) for part in range(reach.parts)]
    left = max((part - rows[0] // reach.shard for part, rows in enumerate(needed) if rows), default=0)
    right = max((rows[-1] // reach.shard - part for part, rows in enumerate(needed) if rows), default=0)
    left, right = max(left, 0), max(right, 0)
    pieces = tuple(
        Piece(hop, 0, reach.shard, tuple(part for part in range(reach.parts) if 0 <= part - hop < reach.parts))
        for hop in range(left, -right - 1, -1)
    )
    hops = max(left, right)
    pays = hops <= (furthest or 1) or (furthest is None and left + right + 1 < reach.parts)
    edge = reach.length * reach.dilation
    return Exchange(reach, pieces, edge, edge, pays, is_trimmed=False)


def needed_rows(reach: Reach) -> Exchange:
    """The exchange in which neighbours send the rows that are needed, and only to those who need some of them."""
    needed = [reach.rows(part) for part in range(reach.parts)]
    left = max((part * reach.shard - rows[0] for part, rows in enumerate(needed) if rows), default=0)
    right = max((rows[-1] + 1 - (part + 1) * reach.shard for part, rows in enumerate(needed) if rows), default=0)
    left, right = max(left, 0), max(right, 0)
    pieces = tuple(_trimmed_pieces(reach, needed, left, right))
    sent = sum(piece.size for piece in pieces if piece.hop and piece.receivers)
    counted = zip(_offsets(reach, left), reach.counts, strict=True)
    offsets = [offset for offset, count in counted if count] or [0]
    size = (left + reach.shard + right - 1) * reach.dilation + 1
    low = _edge(reach, -min(offsets))
    high = _edge(reach, max(offsets) + reach.length - size)
    return Exchange(reach, pieces, low, high, sent <= (reach.parts - 1) * reach.shard, is_trimmed=True)


def _trimmed_pieces(reach: Reach, needed: Sequence[range], left: int, right: int) -> list[Piece]:
    shard = reach.shard
    furthest_left, furthest_right = -(-left // shard), -(-right // shard)
    pieces: list[Piece] = []
    for hop in range(furthest_left, -furthest_right - 1, -1):
        start = max(0, hop * shard - left)
        limit = min(shard, right + (hop + 1) * shard) if hop < 0 else shard
        receivers = tuple(
            part
            for part, rows in enumerate(needed)
            if rows and rows[0] < (part - hop) * shard + limit and (part - hop) * shard + start <= rows[-1]
        )
        pieces.append(Piece(hop, start, limit, receivers))
    return pieces


def _offsets(reach: Reach, rows_before: int) -> list[int]:
    before = rows_before * reach.dilation
    return [before + start - part * reach.shard * reach.dilation for part, start in enumerate(reach.starts)]


def _edge(reach: Reach, missing: int) -> int:
    """So much padding that a part finds its places, or nothing but padding: no more than it has places."""
    return max(0, min(reach.length, missing))
