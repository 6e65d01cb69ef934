"""Messages between devices that redistribute the rows of a concatenation along a split dimension.

Two tensors of 8 rows over 4 devices become one of 16 rows, 4 on each device:

    device    holds            needs
    0         a0 a1  b0 b1     a0 a1 a2 a3
    1         a2 a3  b2 b3     a4 a5 a6 a7
    2         a4 a5  b4 b5     b0 b1 b2 b3
    3         a6 a7  b6 b7     b4 b5 b6 b7

Device 0 sends b0 b1 to device 2, and receives a2 a3 from device 1. Devices send rows of their pool: the concatenation
of their shards of all operands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows `[start, start + size)` of operand number `source`, which are rows `[place, place + size)` of the result."""

    source: int
    start: int
    place: int
    size: int


@dataclass(frozen=True, slots=True)
class Message:
    """Message of `size` rows from one shard to another.

    Attributes:
        sender: The shard index of the sender.
        receiver: The shard index of the receiver; it may be the sender.
        start: The first row in the sender's pool.
        place: The first row in the receiver's shard of the result.
        size: The number of rows.
    """

    sender: int
    receiver: int
    start: int
    place: int
    size: int


def messages(segments: Sequence[Segment], shards: Sequence[int], result_shard: int) -> Iterator[Message]:
    """Yield the messages that redistribute `segments`, including those of devices to themselves.

    Args:
        segments: The ranges of rows of the operands, and their places in the result.
        shards: The number of rows in a shard of each operand.
        result_shard: The number of rows in a shard of the result.
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


def rounds(unscheduled: Sequence[Message]) -> list[list[Message]]:
    """Schedule messages in rounds, such that a device sends and receives at most one message per round.

    The scheduling is greedy, longest message first, so that the messages of a round have similar sizes.
    """
    ordered: list[list[Message]] = []
    for message in sorted(unscheduled, key=lambda each: -each.size):
        for others in ordered:
            if all(message.sender != each.sender and message.receiver != each.receiver for each in others):
                others.append(message)
                break
        else:
            ordered.append([message])
    return ordered
