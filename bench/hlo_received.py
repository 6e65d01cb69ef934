"""The bytes that devices receive in the collectives of a compiled program, read from XLA's HLO text."""

import math
import re

_INSTRUCTION = re.compile(
    r"^ *(?:ROOT )?\S+ = (?P<type>\(.*?\)|\S+) "
    r"(?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)\((?P<rest>.*)$",
    re.MULTILINE,
)
_ARRAY = re.compile(r"\bf32\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_TILED = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
_NAMED = re.compile(r"replica_groups=mesh\[([^\]]*)\].*?\{([^}]*)\}")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")


def bytes_received(hlo: str, devices: int) -> float:
    """The bytes that one of `devices` receives on average in all collectives of `hlo`, whose arrays are all f32.

    A device in a group of n receives n - 1 of n parts of what an all-gather or an all-to-all gives it, as much as
    n - 1 results of a reduce-scatter, and both in an all-reduce. ValueError where the groups cannot be read.
    """
    received = 0.0
    for match in _INSTRUCTION.finditer(hlo):
        shapes = (re.findall(r"\d+", array[1]) for array in _ARRAY.finditer(match["type"]))
        result = sum(4 * math.prod(map(int, shape)) for shape in shapes)
        if match["kind"] == "collective-permute":
            received += result * _moved(match["rest"]) / devices
            continue
        others = _group_size(match["rest"]) - 1
        share = others / (others + 1)
        received += {
            "all-gather": result * share,
            "all-to-all": result * share,
            "reduce-scatter": result * others,
            "all-reduce": 2 * result * share,
        }[match["kind"]]
    return received


def _moved(text: str) -> int:
    """The number of devices that a permute gives something from another device."""
    pairs = _PAIRS.search(text)
    if not pairs:
        raise ValueError(f"a permute without pairs: {text}")
    return sum(source != target for source, target in re.findall(r"(\d+),(\d+)", pairs[1]))


def _group_size(text: str) -> int:
    if match := _LISTED.search(text):
        return len(match[1].split(","))
    if match := _TILED.search(text):
        return int(match[1])
    if match := _NAMED.search(text):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", match[1])}
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", match[2])
        return math.prod(int(size) if size else sizes[name] for name, size in axes)
    raise ValueError(f"a collective without groups: {text}")
