"""Communication cost of resizes around a collective, for dimensions that its two sides pad to different sizes.

A collective works on sizes that the numbers of shards on both sides divide. Six rows over eight devices are padded to
eight, and over two devices to six, so the shard boundaries differ:

    eight shards  0 | 1 | 2 | 3 | 4 | 5 | . | .
    two shards    0 1 2 | 3 4 5

An all-slice becomes an exchange of rows, and devices exchange rows before an all-gather. In other collectives, they do
so before and after it.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sdy.passes.spmd.shards.halo import Exchange, ReadRanges, needed_rows
from sdy.passes.spmd.shards.layout import round_up


class Resizes(NamedTuple):
    """The resizes around a collective.

    Attributes:
        received: The number of elements that all devices receive in them.
        local: The number of elements of a shard between them, when the collective begins.
    """

    received: int
    local: int


class _PaddedSizes(NamedTuple):
    """The padded sizes of a dimension before, in and after a collective."""

    before: int
    between: int
    after: int


@lru_cache(2**14)
def resizes_around(shape: tuple[int, ...], parts: tuple[int, ...], new_parts: tuple[int, ...], devices: int) -> Resizes:
    """Return the cost of the resizes around a collective.

    Args:
        shape: The global shape, without padding.
        parts: The number of shards of each dimension before the collective.
        new_parts: The number of shards of each dimension after it.
        devices: The number of devices.
    """
    dims = [_padded_sizes(*each) for each in zip(shape, parts, new_parts, strict=True)]
    local = [dim.before // number for dim, number in zip(dims, parts, strict=True)]
    received = sum(_resize(local, d, shape[d], parts[d], dim.between, devices) for d, dim in enumerate(dims))
    between = math.prod(local)
    local = [dim.between // number for dim, number in zip(dims, new_parts, strict=True)]
    received += sum(_resize(local, d, shape[d], new_parts[d], dim.after, devices) for d, dim in enumerate(dims))
    return Resizes(received, between)


@lru_cache(2**14)
def received_in_slice(shape: tuple[int, ...], parts: tuple[int, ...], new_parts: tuple[int, ...], devices: int) -> int:
    """Return the number of elements that all devices receive in an all-slice; see `resizes_around`."""
    return _received(exchanges_in_slice, shape, parts, new_parts, devices).received


@lru_cache(2**14)
def received_in_gather(shape: tuple[int, ...], parts: tuple[int, ...], new_parts: tuple[int, ...], devices: int) -> int:
    """Return the number of elements that all devices receive in an all-gather; see `resizes_around`."""
    received, local = _received(exchanges_before_gather, shape, parts, new_parts, devices)
    return received + local * (math.prod(parts) // math.prod(new_parts) - 1) * devices


def _received(
    plan: Callable[..., dict[int, Exchange]],
    shape: tuple[int, ...],
    parts: tuple[int, ...],
    new_parts: tuple[int, ...],
    devices: int,
) -> Resizes:
    """Return the cost of the exchanges of `plan`."""
    before, after = (tuple(map(round_up, shape, numbers)) for numbers in (parts, new_parts))
    local = [size // number for size, number in zip(before, parts, strict=True)]
    received = 0
    for dim, exchange in plan(shape, parts, new_parts, before, after).items():
        rest = math.prod(local) // local[dim]
        received += exchange.received * rest * devices // exchange.ranges.parts
        local[dim] = exchange.ranges.length
    return Resizes(received, math.prod(local))


def exchanges_in_slice(
    shape: Sequence[int], parts: Sequence[int], new_parts: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> dict[int, Exchange]:
    """Return the exchange along each dimension of an all-slice that moves shard boundaries, else nothing.

    Each device receives rows of its new shard only. For 5 rows, to be split over 2 devices and then over 2 x 2:

        device    has      needs
        0, 0      0 1 2    0 1
        0, 1      0 1 2    2 3
        1, 0      3 4 .    4 .
        1, 1      3 4 .    . .

    In a resize to 8 rows before a slice, both devices of the first shard would receive row 3.

    Args:
        shape: The unpadded global shape.
        parts: The number of shards of each dimension before the all-slice.
        new_parts: The number of shards of each dimension after it.
        before: The padded shape before.
        after: The padded shape after.

    Returns:
        The exchanges by dimension, those that receive nothing first.
    """
    if all(count == 1 or old == new for count, old, new in zip(parts, before, after, strict=True)):
        return {}
    dims = zip(shape, parts, before, new_parts, after, strict=True)
    ranges = {dim: ReadRanges.resharded(*each) for dim, each in enumerate(dims)}
    exchanges = {dim: needed_rows(of_dim) for dim, of_dim in ranges.items() if not of_dim.is_identity}
    return dict(sorted(exchanges.items(), key=lambda each: each[1].received > 0))


def exchanges_before_gather(
    shape: Sequence[int], parts: Sequence[int], new_parts: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> dict[int, Exchange]:
    """Return the exchange along each dimension whose shard boundaries an all-gather moves.

    After it, the devices of a new shard hold equal parts of that shard. For 5 rows over 2 x 2 devices, to be split over
    2 devices:

        device    has    needs    gathers
        0, 0      0 1    0 1      0 1 2 .
        0, 1      2 3    2 .      0 1 2 .
        1, 0      4 .    3 4      3 4 . .
        1, 1      . .    . .      3 4 . .

    In a resize after the all-gather, both devices of the last shard would receive row 3.

    Args:
        shape: The unpadded global shape.
        parts: The number of shards of each dimension before the all-gather.
        new_parts: The number of shards of each dimension after it.
        before: The padded shape before.
        after: The padded shape after.
    """
    dims = enumerate(zip(shape, parts, before, new_parts, after, strict=True))
    return {
        dim: needed_rows(ReadRanges.gathered(size, count, old, new_count, new))
        for dim, (size, count, old, new_count, new) in dims
        if new_count > 1 and old != new
    }


def collective_size(size: int, new_size: int, parts: int, new_parts: int) -> int:
    """Return the padded size of a dimension in a collective.

    Args:
        size: The padded size before the collective.
        new_size: The padded size after it.
        parts: The number of shards before the collective.
        new_parts: The number of shards after it.
    """
    return round_up(max(size, new_size), math.lcm(parts, new_parts))


def _padded_sizes(size: int, parts: int, new_parts: int) -> _PaddedSizes:
    before, after = round_up(size, parts), round_up(size, new_parts)
    between = collective_size(before, after, parts, new_parts)
    return _PaddedSizes(before, between, after)


def _resize(local: list[int], d: int, size: int, parts: int, new_size: int, devices: int) -> int:
    """Resize dimension `d` of a shard of shape `local`, in place; return the elements that all devices receive."""
    rows = _rows_received(size, parts, local[d] * parts, new_size)
    received = rows * math.prod(local[:d] + local[d + 1 :]) * devices // parts
    local[d] = new_size // parts
    return received


@lru_cache(2**12)
def _rows_received(size: int, parts: int, before: int, after: int) -> int:
    if parts == 1 or before == after:
        return 0
    exchange = needed_rows(ReadRanges.resharded(size, parts, before, parts, after))
    return exchange.received if exchange.pays else (parts - 1) * before
