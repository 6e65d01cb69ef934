"""Bytes received in the collectives of a compiled program, parsed from XLA's HLO text.

The text is a sequence of computations, each a header line, its instructions, and a closing brace:

    %body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
      %g = f32[64]{0} all-gather(%x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}
    }
    ENTRY %main (x: f32[8]) -> f32[8] {
      %w = (s32[], f32[8]) while(%t), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"5"}}
    }

An asynchronous collective is two instructions: `all-gather-start` has the replica groups, and `all-gather-done` has the
result type.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdy.diagnostics import Location
from sdy.passes.jax.hlo_collectives import bytes_of
from sdy.passes.jax.hlo_places import HloPlaces

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{\n(?P<body>(?:.*\n)*?)\}", re.MULTILINE)
_LOOP = re.compile(r" while\(.*?condition=%?(?P<condition>[\w.\-]+), body=%?(?P<body>[\w.\-]+)(?P<rest>.*)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALL = re.compile(r" call\(.*?to_apply=%?(?P<callee>[\w.\-]+)")
_BRANCHES = re.compile(r" conditional\(.*?(?:branch_computations=\{(?P<listed>[^}]*)\}|(?P<pair>true_computation=.*))")
_INSTRUCTION = re.compile(
    r"^ *(?:ROOT )?%?(?P<name>\S+) = (?P<type>\(.*?\)|\S+) "
    r"(?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?P<half>-start|-done|)"
    r"\((?P<rest>.*)$",
    re.MULTILINE,
)
_OPERAND = re.compile(r"%?([\w.\-]+)\)")
_LISTED = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_TILED = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
_NAMED = re.compile(r"replica_groups=mesh\[([^\]]*)\].*?\{([^}]*)\}")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")


@dataclass(frozen=True, slots=True)
class HloCollective:
    """A collective of a compiled program.

    Attributes:
        kind: The kind, such as `all-gather`.
        where: The source line in the metadata, or None if it is unknown.
        times: How often it runs; a loop with an unknown trip count counts one iteration.
        bytes: The bytes that a device receives in all of these runs, averaged over devices.
    """

    kind: str
    where: Location | None
    times: int
    bytes: float


def bytes_received(hlo: str, devices: int) -> float:
    """Return the bytes received by a device, on average, in all collectives of one run of a program.

    The body of a loop counts once per iteration if the trip count is known, else once. Of the branches of a
    conditional, the one that receives most counts.

    Args:
        hlo: The optimized HLO text of the program.
        devices: The number of devices.

    Raises:
        ValueError: the replica groups of a collective cannot be parsed.
    """
    return sum(each.bytes for each in received_collectives(hlo, devices))


def received_collectives(hlo: str, devices: int) -> Sequence[HloCollective]:
    """Return the collectives of one run of a program; loops and branches count as in `bytes_received`.

    Args:
        hlo: The optimized HLO text of the program.
        devices: The number of devices.

    Raises:
        ValueError: the replica groups of a collective cannot be parsed.
    """
    bodies = {match["name"]: match["body"] for match in _COMPUTATION.finditer(hlo)}
    (entry,) = (match["name"] for match in _COMPUTATION.finditer(hlo) if match["entry"])
    places = HloPlaces(hlo)

    def found_in(name: str, times: int) -> list[HloCollective]:
        body = bodies[name]
        found = [
            HloCollective(kind, places.of(rest), times, times * _received(kind, type_, rest, devices))
            for kind, type_, rest in _collectives(body)
        ]
        for loop in _LOOP.finditer(body):
            trips = _TRIPS.search(loop["rest"])
            for part in ("body", "condition"):
                found += found_in(loop[part], times * (int(trips[1]) if trips else 1))
        for call in _CALL.finditer(body):
            found += found_in(call["callee"], times)
        for branches in _BRANCHES.finditer(body):
            names = re.findall(r"%?([\w.\-]+)", branches["listed"] or "") or re.findall(
                r"computation=%?([\w.\-]+)", branches["pair"]
            )
            found += max((found_in(name, times) for name in names), key=lambda each: sum(one.bytes for one in each))
        return found

    return found_in(entry, 1)


def _collectives(body: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each collective, its result type, and the text that contains its replica groups."""
    started: dict[str, str] = {}
    for match in _INSTRUCTION.finditer(body):
        rest = match["rest"]
        if match["half"] == "-start":
            started[match["name"]] = rest
            continue
        if match["half"] and (operand := _OPERAND.search(rest)):
            rest = started[operand[1]]
        yield match["kind"], match["type"], rest


def _received(kind: str, type_: str, rest: str, devices: int) -> float:
    """Return the bytes that a device receives in a collective.

    In a group of n devices, that is (n - 1) / n of the result of an all-gather or an all-to-all, n - 1 times the result
    of a reduce-scatter, and 2 (n - 1) / n of the result of an all-reduce, which is a reduce-scatter and an all-gather.
    """
    result = bytes_of(type_)
    if kind == "collective-permute":
        return result * _moved(rest) / devices
    others = _group_size(rest, devices) - 1
    share = others / (others + 1)
    return {
        "all-gather": result * share,
        "all-to-all": result * share,
        "reduce-scatter": result * others,
        "all-reduce": 2 * result * share,
    }[kind]


def _moved(text: str) -> int:
    """Return the number of devices that receive data from another device in a collective-permute."""
    pairs = _PAIRS.search(text)
    if not pairs:
        raise ValueError(f"a collective-permute without source_target_pairs: {text}")
    return sum(source != target for source, target in re.findall(r"(\d+),(\d+)", pairs[1]))


def _group_size(text: str, devices: int) -> int:
    if "replica_groups={}" in text:
        return devices
    if match := _LISTED.search(text):
        return len(match[1].split(","))
    if match := _TILED.search(text):
        return int(match[1])
    if match := _NAMED.search(text):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", match[1])}
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", match[2])
        return math.prod(int(size) if size else sizes[name] for name, size in axes)
    raise ValueError(f"a collective without replica groups: {text}")
