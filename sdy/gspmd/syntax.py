"""Syntax of `HloSharding`, as XLA parses and prints it.

{replicated}  {manual}  {unreduced}  {unknown shard_as 1}  {maximal device=3}
{devices=[2,2]0,2,1,3}  {devices=[4,2]<=[2,4]T(1,0)}  {devices=[2,1,4]<=[8] last_tile_dim_replicate}
{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}  {{replicated}, {manual}}
"""

import re
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TypeVar, get_args

from sdy.gspmd.hlo_sharding import HloSharding, Kind, ShardGroup, Subgroup
from sdy.gspmd.tile_assignment import TileAssignment
from sdy.mesh import MOST_DEVICES

T = TypeVar("T")

_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"\d+")
_SPACE = re.compile(r"\s*")
_KINDS = {kind: kind for kind in get_args(Kind)}
_SUBGROUPS = {subgroup: subgroup for subgroup in get_args(Subgroup)}


class HloShardingError(ValueError):
    """A syntax error in the text of a sharding, with its column."""


def parse_hlo_sharding(text: str) -> HloSharding | tuple[HloSharding, ...]:
    """Parse a sharding, or a tuple of shardings.

    Raises:
        HloShardingError: `text` is not a valid sharding.
    """
    reader = _Reader(text)
    sharding = reader.several(reader.sharding) if re.match(r"\s*\{\s*[{}]", text) else reader.sharding()
    if reader.pos != len(text):
        raise reader.error("expected nothing after the closing '}'")
    return sharding


def hlo_sharding_text(sharding: HloSharding | tuple[HloSharding, ...]) -> str:
    """Format `sharding` as XLA prints it."""
    if isinstance(sharding, tuple):
        return f"{{{', '.join(map(hlo_sharding_text, sharding))}}}"
    words: list[str] = [sharding.kind] if sharding.tiles is None else [f"devices={_tiles_text(sharding.tiles)}"]
    if sharding.device is not None:
        words.append(f"device={sharding.device}")
    if sharding.subgroups == ("replicated",):
        words.append("last_tile_dim_replicate")
    elif sharding.subgroups:
        words.append(f"last_tile_dims={{{', '.join(sharding.subgroups)}}}")
    if sharding.group is not None:
        words.append(f"{sharding.group.word} {sharding.group.number}")
    return f"{{{' '.join(words)}}}"


def _tiles_text(tiles: TileAssignment) -> str:
    iota = tiles.iota()
    if iota is None:
        return f"[{_commas(tiles.shape)}]{_commas(tiles.devices)}"
    rows, order = iota
    transposed = f"T({_commas(order)})" if len(order) > 1 else ""
    return f"[{_commas(tiles.shape)}]<=[{_commas(rows)}]{transposed}"


def _commas(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


class _Reader:
    """A text and the current position."""

    def __init__(self, text: str):
        self.text = text
        self.pos = 0
        self.skip_space()

    def error(self, problem: str, pos: int | None = None) -> HloShardingError:
        return HloShardingError(f"column {(self.pos if pos is None else pos) + 1} of '{self.text}': {problem}")

    def skip_space(self) -> None:
        self.skip(_SPACE)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return match.group() if match else ""

    def optional(self, sign: str) -> bool:
        """Consume `sign` if it is next, and return whether it was."""
        is_next = self.text.startswith(sign, self.pos)
        if is_next:
            self.pos += len(sign)
            self.skip_space()
        return is_next

    def expect(self, sign: str) -> None:
        if not self.optional(sign):
            raise self.error(f"expected '{sign}'")

    def number(self) -> int:
        digits = self.skip(_NUMBER)
        if not digits:
            raise self.error("expected a number")
        self.skip_space()
        return int(digits)

    def word(self, known: dict[str, T], what: str) -> T:
        start = self.pos
        word = self.skip(_WORD)
        if word not in known:
            raise self.error(f"expected {what}: {', '.join(known)}", start)
        self.skip_space()
        return known[word]

    def several(self, read: Callable[[], T], signs: str = "{}") -> tuple[T, ...]:
        """Parse comma-separated items with `read`, between opening and closing `signs`."""
        self.expect(signs[0])
        if self.optional(signs[1]):
            return ()
        items = [read()]
        while self.optional(","):
            items.append(read())
        self.expect(signs[1])
        return tuple(items)

    def sharding(self) -> HloSharding:
        start = self.pos
        self.expect("{")
        words = _Words(self)
        while not self.optional("}"):
            self.word(words.parsers, "a kind of sharding or an attribute of one")()
        try:
            return words.sharding()
        except ValueError as problem:
            raise self.error(str(problem), start) from None


class _Words:
    """The contents of a pair of braces: words in any order."""

    def __init__(self, reader: _Reader):
        self.reader = reader
        self.kinds: list[Kind] = []
        self.device: int | None = None
        self.tiles: TileAssignment | None = None
        self.subgroups: tuple[Subgroup, ...] = ()
        self.group: ShardGroup | None = None
        self.parsers: dict[str, Callable[[], None]] = {
            "devices": self._devices,
            "device": self._device,
            "last_tile_dim_replicate": self._replicate,
            "last_tile_dims": self._last_dims,
            "shard_as": lambda: self._shard_group("shard_as"),
            "shard_like": lambda: self._shard_group("shard_like"),
            "metadata": self._metadata,
            **{word: lambda kind=kind: self.kinds.append(kind) for word, kind in _KINDS.items() if kind != "tiled"},
        }

    def sharding(self) -> HloSharding:
        if len(self.kinds) != 1:
            listed = ", ".join(self.kinds) or "none"
            raise ValueError(f"a sharding has one kind, such as replicated or devices=[...], not {listed}")
        kind = self.kinds[0]
        if (self.device is not None) != (kind == "maximal"):
            raise ValueError("device=N and maximal belong together")
        if self.subgroups and self.tiles is None:
            raise ValueError("last_tile_dims belongs to devices=[...]")
        if self.tiles is None:
            return HloSharding(kind, self.device, group=self.group)
        return replace(HloSharding.tiled(self.tiles, self.subgroups), group=self.group)

    def _devices(self) -> None:
        reader = self.reader
        reader.expect("=")
        start = reader.pos
        shape = reader.several(reader.number, "[]")
        if prod(shape) > MOST_DEVICES:
            raise reader.error(f"more than {MOST_DEVICES:,} devices", start)
        try:
            self.tiles = self._iota(shape) if reader.optional("<=") else TileAssignment(shape, self._listed())
        except HloShardingError:
            raise
        except ValueError as problem:
            raise reader.error(str(problem), start) from None
        self.kinds.append("tiled")

    def _iota(self, shape: tuple[int, ...]) -> TileAssignment:
        reader = self.reader
        rows = reader.several(reader.number, "[]")
        if prod(rows) != prod(shape):
            raise ValueError(f"{prod(shape)} tiles need as many devices, not {prod(rows)}")
        order = reader.several(reader.number, "()") if reader.optional("T") else tuple(range(len(rows)))
        return TileAssignment.of_iota(shape, rows, order)

    def _listed(self) -> tuple[int, ...]:
        devices = [self.reader.number()]
        while self.reader.optional(","):
            devices.append(self.reader.number())
        return tuple(devices)

    def _device(self) -> None:
        self.reader.expect("=")
        self.device = self.reader.number()

    def _replicate(self) -> None:
        self.subgroups = ("replicated",)

    def _last_dims(self) -> None:
        reader = self.reader
        reader.expect("=")
        self.subgroups = reader.several(lambda: reader.word(_SUBGROUPS, "a kind of subgroup"))

    def _shard_group(self, word: str) -> None:
        self.group = ShardGroup(self.reader.number(), "shard_as" if word == "shard_as" else "shard_like")

    def _metadata(self) -> None:
        """Skip the metadata, the origin of the sharding: names in braces, possibly quoted."""
        reader, depth = self.reader, 0
        reader.expect("=")
        for part in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}]', reader.text[reader.pos :]):
            depth += {"{": 1, "}": -1}.get(part.group(), 0)
            if depth == 0:
                reader.pos += part.end()
                reader.skip_space()
                return
        raise reader.error("expected '}' after metadata")
