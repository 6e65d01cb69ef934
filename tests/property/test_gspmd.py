"""Conversion between GSPMD and SDY shardings keeps every device's tile, in both directions."""

import random
import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from sdy.axes import AxisRef
from sdy.gspmd.hlo_sharding import HloSharding
from sdy.gspmd.meshes import RecoveredMeshes, hlo_sharding_of
from sdy.gspmd.syntax import HloShardingError, hlo_sharding_text, parse_hlo_sharding
from sdy.mesh import Mesh

Tiles = dict[int, tuple[int, ...]]
"""The tile indices of each device, and its position in its manual subgroup."""


def tiles_of_text(text: str) -> Tiles:
    """Return the tiles by GSPMD's definition: element [i, j, ...] of the device array has tile (i, j, ...)."""
    shape, devices = _array_of(text)
    subgroups = _subgroups_of(text)
    first = len(shape) - len(subgroups)
    manual = [first + index for index, name in enumerate(subgroups) if name == "manual" and shape[first + index] > 1]
    kept = [*range(first), *manual]
    return {
        device: tuple(place[dim] for dim in kept) for place in np.ndindex(*shape) for device in [int(devices[place])]
    }


def _array_of(text: str) -> tuple[tuple[int, ...], np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    tiled = re.match(r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))", text)
    assert tiled, text
    shape, rows, order, listed = (tuple(map(int, part.split(","))) if part else () for part in tiled.groups())
    if listed:
        return shape, np.array(listed).reshape(shape)
    return shape, np.arange(prod(rows)).reshape(rows).transpose(order or range(len(rows))).reshape(shape)


def _subgroups_of(text: str) -> list[str]:
    if "last_tile_dim_replicate" in text:
        return ["replicated"]
    found = re.search(r"last_tile_dims=\{(.*?)\}", text)
    return found.group(1).split(", ") if found else []


def tiles_of_axes(axes_of_dims: Sequence[Sequence[AxisRef]], mesh: Mesh) -> Tiles:
    """Return the tiles by SDY's definition: a device's coordinates along a dimension's axes are the tile's digits."""
    sizes = [size for _, size in mesh.axes]
    ids = np.array(mesh.device_ids or range(prod(sizes))).reshape(sizes)
    found: Tiles = {}
    for place in np.ndindex(*sizes):
        tile: list[int] = []
        for axes in axes_of_dims:
            number = 0
            for axis in axes:
                whole = mesh.axis_size(axis.name)
                size = whole if axis.size is None else axis.size
                minor = whole // ((axis.pre_size or 1) * size)
                number = number * size + place[mesh.axis_index(axis.name)] // minor % size
            tile.append(number)
        found[int(ids[place])] = tuple(tile)
    return found


def random_factors(rng: random.Random, number: int, count: int) -> list[int]:
    factors = [1] * count
    for prime in (2, 2, 2, 2, 2, 3, 3, 5):
        if number % prime == 0:
            number //= prime
            factors[rng.randrange(count)] *= prime
    assert number == 1
    return factors


def random_text(rng: random.Random, count: int) -> str:
    subgroups = rng.choice([(), ("replicated",), ("manual",), ("manual", "replicated"), ("unreduced", "replicated")])
    shape = random_factors(rng, count, rng.randint(1, 4) + len(subgroups))
    if rng.random() < 0.1:
        devices = ",".join(map(str, rng.sample(range(count), count)))
    else:
        rows = [size for size in random_factors(rng, count, rng.randint(1, 4)) if size > 1] or [1]
        order = rng.sample(range(len(rows)), len(rows))
        devices = f"<=[{','.join(map(str, rows))}]" + (f"T({','.join(map(str, order))})" if len(rows) > 1 else "")
    last = f" last_tile_dims={{{', '.join(subgroups)}}}" if subgroups else ""
    return f"{{devices=[{','.join(map(str, shape))}]{devices}{last}}}"


def read(text: str) -> HloSharding:
    sharding = parse_hlo_sharding(text)
    assert isinstance(sharding, HloSharding)
    return sharding


@pytest.mark.parametrize("seed", range(250))
def test_round_trip(seed: int):
    """Convert two to four shardings of one program with their recovered meshes."""
    rng = random.Random(seed)
    count = rng.choice([2, 4, 6, 8, 12, 16, 24, 32, 60])
    texts = [random_text(rng, count) for _ in range(rng.randint(2, 4))]
    shardings = {text: read(text) for text in texts}
    found = RecoveredMeshes.of(shardings.values())
    for text, sharding in shardings.items():
        if sharding.tiles is None:
            continue
        rank = len(sharding.tile_shape)
        tensor = found.tensor_sharding(sharding, rank)
        mesh, manual = found.mesh_of(sharding), found.manual_axes(sharding)
        expected = tiles_of_text(text)
        with_manual = [*tensor.dim_axes, *([manual] if "manual" in sharding.subgroups else [])]
        assert tiles_of_axes(with_manual, mesh) == expected, (text, tensor)
        back = hlo_sharding_text(hlo_sharding_of(tensor, mesh, [axis.name for axis in manual]))
        # Manual devices return in mesh order, which does not affect the tensor's tiles.
        assert {d: t[:rank] for d, t in tiles_of_text(back).items()} == {d: t[:rank] for d, t in expected.items()}
        assert _groups(back) == _groups(text)


def _groups(text: str) -> dict[str, frozenset[frozenset[int]]]:
    """Return, for each kind of subgroup, the sets of devices that differ only along it."""
    shape, devices = _array_of(text)
    names = _subgroups_of(text)
    first = len(shape) - len(names)
    found: dict[str, frozenset[frozenset[int]]] = {}
    for index, name in enumerate(names):
        if shape[first + index] > 1:
            lines = np.moveaxis(devices, first + index, -1).reshape(-1, shape[first + index])
            found[name] = frozenset(frozenset(line.tolist()) for line in lines)
    return found


@pytest.mark.parametrize("seed", range(100))
def test_shardings_of_jax(seed: int):
    """XLA's text of a jax sharding parses to the same sharding, and prints the same."""
    rng = random.Random(seed)
    axes = {name: rng.choice([1, 2, 2, 3, 4]) for name in "abcd"[: rng.randint(1, 4)]}
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    split = rng.sample([*axes], rng.randint(0, len(axes)))
    cut = rng.randint(0, len(split))
    dims = (tuple(split[:cut]) or None, tuple(split[cut:]) or None)
    of_jax: Any = NamedSharding(mesh, P(*dims))
    by_xla = str(of_jax._to_xla_hlo_sharding(2))
    sharding = read(by_xla)
    assert hlo_sharding_text(sharding) == by_xla
    found = RecoveredMeshes.of([sharding])
    tensor = found.tensor_sharding(sharding, 2)
    assert hlo_sharding_text(hlo_sharding_of(tensor, found.mesh_of(sharding))) == by_xla
    own = [[AxisRef(axis) for axis in names or ()] for names in dims]
    if sharding.tiles is not None:
        assert tiles_of_axes(tensor.dim_axes, found.mesh_of(sharding)) == tiles_of_axes(own, Mesh.of(axes))


@pytest.mark.parametrize("seed", range(100))
def test_texts_that_xla_reads(seed: int):
    """XLA parses our text to the same sharding, and prints the same."""
    hlo_sharding = pytest.importorskip("jax._src.lib").xla_client.HloSharding
    rng = random.Random(seed)
    text = random_text(rng, rng.choice([4, 8, 12, 24]))
    written = hlo_sharding_text(read(text))
    by_xla = hlo_sharding.from_string(written)
    assert by_xla == hlo_sharding.from_string(str(by_xla))
    if by_xla.is_tiled():
        shape, devices = tuple(by_xla.tile_assignment_dimensions()), by_xla.tile_assignment_devices()
        listed = f"{{devices=[{','.join(map(str, shape))}]{','.join(map(str, devices))} {written.partition(' ')[2]}"
        assert tiles_of_text(listed) == tiles_of_text(text)
        assert _groups(listed) == _groups(text)


PLAIN = [
    "{replicated}",
    "{manual}",
    "{unreduced}",
    "{maximal device=3}",
    "{unknown shard_as 1}",
    "{unknown shard_like 7}",
    "{devices=[2,4]<=[8] shard_as 2}",
    "{{replicated}, {devices=[2]<=[2]}, {manual}}",
    "{}",
]


@pytest.mark.parametrize("text", PLAIN)
def test_hlo_shardings_round_trip(text: str):
    """Parsing and printing round-trip."""
    assert hlo_sharding_text(parse_hlo_sharding(text)) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "column 1 of '': expected '{'"),
        ("{replicated", "column 12 of '{replicated': expected"),
        ("{repl}", "column 2 of '{repl}': expected a kind of sharding"),
        ("{maximal}", "device=N and maximal belong together"),
        ("{replicated manual}", "has one kind, such as replicated or devices=[...], not replicated, manual"),
        ("{devices=[2,3]<=[8]}", "column 10 of '{devices=[2,3]<=[8]}': 6 tiles need as many devices, not 8"),
        ("{devices=[2]1,1}", "the devices of 2 tiles have to be 0 to 1, each once"),
        ("{devices=[2,2]<=[4]T(1,0)}", "the order of 1 dimensions has to be 0 to 0, each once"),
        ("{devices=[2]<=[2] last_tile_dims={manual, manual}}", "2 subgroups need as many dimensions, not 1"),
        ("{devices=[999999]<=[999999]}", "more than 131,072 devices"),
        ("{replicated} {manual}", "column 14 of '{replicated} {manual}': expected nothing after the closing '}'"),
        ("{replicated metadata={", "expected '}' after metadata"),
    ],
)
def test_malformed_hlo_shardings(text: str, problem: str):
    """Errors name the column."""
    with pytest.raises(HloShardingError, match=re.escape(problem)):
        parse_hlo_sharding(text)


def test_permuted_order_with_an_iota_prefix_is_kept():
    """The recovery of a mesh compares all devices, not only the start of an iota."""
    texts = ["{devices=[8]<=[8]}", "{devices=[8]0,1,2,3,4,6,5,7}"]
    found = RecoveredMeshes.of(map(read, texts))
    assert [mesh.device_ids for mesh in found.meshes] == [(), (0, 1, 2, 3, 4, 6, 5, 7)]
    assert hlo_sharding_text(read(texts[1])) == texts[1]


def test_many_devices_are_read():
    """Parsing is fast for any number of devices."""
    assert read("{devices=[256,512]<=[512,256]T(1,0)}").tiles is not None
