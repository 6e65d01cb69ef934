"""Collectives of a compiled program, parsed from XLA's HLO text: the count and result bytes of each kind.

The optimized HLO text has one instruction per line:

    %ar = (f32[64]{0}, f32[16,8]{1,0}) all-reduce(%a, %b), channel_id=1, replica_groups={{0,1},{2,3}}, ...

The bytes of a collective are those of its result on one device. An asynchronous collective is two instructions; only
the second (`all-gather-done`) is counted. An instruction in the body of a loop is counted once: trip counts are
ignored.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)
_INSTRUCTION = re.compile(
    rf"^ *(?:ROOT )?\S+ = (?P<type>\(.*?\)|\S+) (?P<kind>{'|'.join(_KINDS)})(?:-done)?\(", re.MULTILINE
)
_ARRAY = re.compile(r"\b(?P<element>pred|(?:bf|[fsuc])(?P<bits>\d+)\w*)\[(?P<shape>[\d,<=]*)\]")


@dataclass(frozen=True, slots=True)
class Traffic:
    """A number of collectives, and the total bytes of their results on one device."""

    count: int = 0
    bytes: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.count + other.count, self.bytes + other.bytes)


def collectives(hlo: str) -> dict[str, Traffic]:
    """Return the traffic of each kind of collective that occurs in the optimized HLO text `hlo`."""
    traffic: dict[str, Traffic] = {}
    for match in _INSTRUCTION.finditer(hlo):
        moved = Traffic(1, bytes_of(match["type"]))
        traffic[match["kind"]] = traffic.get(match["kind"], Traffic()) + moved
    return traffic


def total(traffic: Mapping[str, Traffic]) -> Traffic:
    """Return the sum over all kinds."""
    return sum(traffic.values(), Traffic())


def bytes_of(type_: str) -> int:
    """Return the total bytes of the arrays in an HLO type: 144 for `(f32[4,8]{1,0}, f32[4])`."""
    return sum(_bytes(array) for array in _ARRAY.finditer(type_))


def _bytes(array: re.Match[str]) -> int:
    elements = math.prod(int(size.removeprefix("<=")) for size in array["shape"].split(",") if size)
    return -(-elements * int(array["bits"] or 8) // 8)
