"""Exchanges of rows in all-slices and before all-gathers, simulated for all small sizes and numbers of shards."""

import itertools
from collections.abc import Callable

import pytest

from sdy.passes.spmd.reshard.resize_cost import received_in_gather, received_in_slice, resizes_around
from sdy.passes.spmd.shards.halo import Exchange, ReadRanges, needed_rows
from sdy.passes.spmd.shards.layout import round_up

SIZES = [
    (size, parts, parts * more) for size, parts, more in itertools.product(range(1, 20), (1, 2, 3, 4, 8), (2, 3, 4))
]


def read_rows(exchange: Exchange, part: int) -> list[int | None]:
    """Return the rows that a shard reads from its buffer of pieces; None for padding and missing rows."""
    ranges = exchange.ranges
    buffer: list[int | None] = [None] * exchange.low
    for piece in exchange.pieces:
        sender = part if piece.is_own else piece.senders.get(part)
        first = None if sender is None else ranges.first_row(sender) + piece.starts[sender]
        buffer += [None if first is None else first + row for row in range(piece.size)]
    buffer += [None] * exchange.high
    offset = exchange.offsets[part]
    return buffer[offset : offset + ranges.length]


@pytest.mark.parametrize("plan", [ReadRanges.resharded, ReadRanges.gathered])
def test_each_device_reads_the_rows_that_it_needs(plan: Callable[..., ReadRanges]) -> None:
    for size, few, many in SIZES:
        counts = (few, many) if plan == ReadRanges.resharded else (many, few)
        ranges = plan(size, counts[0], round_up(size, counts[0]), counts[1], round_up(size, counts[1]))
        exchange = needed_rows(ranges)
        assert exchange.pays
        for part, places in enumerate(ranges.matters):
            rows = read_rows(exchange, part)
            assert [rows[place] for place in places] == [ranges.starts[part] + place for place in places]


def test_devices_receive_no_more_than_in_resizes_around_the_collective() -> None:
    for size, few, many in SIZES:
        sliced = resizes_around((size,), (few,), (many,), many).received
        assert received_in_slice((size,), (few,), (many,), many) <= sliced
        resized, local = resizes_around((size,), (many,), (few,), many)
        assert received_in_gather((size,), (many,), (few,), many) <= resized + local * (many // few - 1) * many


def test_only_the_new_owner_of_a_row_receives_it() -> None:
    assert received_in_slice((5,), (2,), (4,), 4) == 1
    assert resizes_around((5,), (2,), (4,), 4).received == 2
