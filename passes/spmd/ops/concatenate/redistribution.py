"""Which rows of the parts of several tensors go where, when these are put one after the other along a split dimension.

Two tensors of 8 rows over 4 devices become one of 16, of which each device has 4:

    device    has              gets
    0         a0 a1  b0 b1     a0 a1 a2 a3
    1         a2 a3  b2 b3     a4 a5 a6 a7
    2         a4 a5  b4 b5     b0 b1 b2 b3
    3         a6 a7  b6 b7     b4 b5 b6 b7

so that nobody receives more than it keeps: device 0 sends b0 b1 to device 2 and receives a2 a3 from device 1. What a
device sends is taken from a pool, its parts of all the tensors one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Segment:
    """The `size` rows from row `start` of tensor `source` on, which begin at `place` in the result."""

    source: int
    start: int
    place: int
    size: int


@dataclass(frozen=True, slots=True)
class Message:
    """Rows that part `receiver` of the result gets of what part `sender` has.

    There they begin at row `start` of the pool, and here at row `place` of the part.
    """

    sender: int
    receiver: int
    start: int
    place: int
    size: int


def messages(segments: Sequence[Segment], shards: Sequence[int], result_shard: int) -> Iterator[Message]:
    """All that is to be sent so that each device has its `result_shard` rows of the result.

    Of each tensor it has as many rows as `shards` says. What a device sends to itself is among it.
    """
    bases = [0, *accumulate(shards)]
    for segment in segments:
        own, row = shards[segment.source], segment.start
        while row < segment.start + segment.size:
            sender, start = divmod(row, own)
            receiver, place = divmod(segment.place + row - segment.start, result_shard)
            size = min(segment.start + segment.size - row, own - start, result_shard - place)
            yield Message(sender, receiver, bases[segment.source] + start, place, size)
            row += size


def rounds(found: Sequence[Message]) -> list[list[Message]]:
    """The messages in rounds, in each of which a device sends one at most and receives one at most.

    Longer ones come first, so that those of a round are of about one size.
    """
    ordered: list[list[Message]] = []
    for message in sorted(found, key=lambda each: -each.size):
        for others in ordered:
            if all(message.sender != each.sender and message.receiver != each.receiver for each in others):
                others.append(message)
                break
        else:
            ordered.append([message])
    return ordered
