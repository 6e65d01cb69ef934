"""Communication cost of resizes around a collective, for dimensions that its two sides pad to different sizes.

A collective works on sizes that the numbers of shards on both sides divide. Six rows from eight shards to two:

    eight shards                0 | 1 | 2 | 3 | 4 | 5 | . | .
    two shards, gathered        0 1 2 3 | 4 5 . .
    two shards without padding  0 1 2 | 3 4 5

so after the all-gather, each device of the first shard sends row 3 to a device of the second.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from sdy.passes.spmd.shards.halo import ReadRanges, needed_rows
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
    exchange = needed_rows(ReadRanges.resized(size, parts, before, after))
    return exchange.received if exchange.pays else (parts - 1) * before
