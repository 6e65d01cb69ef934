"""Prefetches in loops: what runs in the iteration before, with the results of one device, and what does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import sdy
from partitioned_programs import GRID, LINE, Argument, assert_same_as_whole, constrain, partitioned, program
from sdy.ir.walking import operations_of
from sdy.passes.common.loops import loops_around
from sdy.passes.communication.predicted_gain import predicted_seconds
from sdy.passes.communication.prefetch_in_loops import PrefetchInLoopsPass, prefetch
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo.collectives import AllGatherOp
from sdy.text import context

Loop = Callable[[jax.Array, jax.Array], Any]

LAYERS, WIDTH, ROWS = 4, 16, 24

HARDWARE = """
name = "eight devices whose loops are not pipelined"
memory = "80G"
memory_bandwidth = 3e12
pipelines_loops = false
[peak]
bf16 = 900e12
f32 = 400e12
[[links]]
devices = 8
bandwidth = 300e9
latency = 2e-6
"""


def layers(w: jax.Array, x: jax.Array) -> jax.Array:
    return lax.scan(lambda h, each: (jnp.tanh(h @ each), None), x, w)[0]


def step(w: jax.Array, x: jax.Array) -> Any:
    return jax.value_and_grad(lambda w: jnp.sum(layers(w, x) ** 2))(w)


def recomputed(w: jax.Array, x: jax.Array) -> Any:
    """Recompute layers of two parameters in the backward pass, behind an optimization barrier."""

    def total(w: jax.Array) -> jax.Array:
        layer = jax.checkpoint(lambda h, both: (jnp.tanh(jnp.tanh(h @ both[0]) @ both[1]), None))
        return jnp.sum(lax.scan(layer, x, (w, jnp.flip(w, 0)))[0] ** 2)

    return jax.value_and_grad(total)(w)


def backwards(w: jax.Array, x: jax.Array) -> jax.Array:
    return lax.scan(lambda h, each: (jnp.tanh(h @ each), None), x, w, reverse=True)[0]


def with_cast(w: jax.Array, x: jax.Array) -> jax.Array:
    return lax.scan(lambda h, each: (jnp.tanh(h @ each.astype(jnp.bfloat16).astype(h.dtype)), None), x, w)[0]


def by_index(w: jax.Array, x: jax.Array) -> jax.Array:
    """Read every other layer; the last prefetch is beyond the stack."""
    return lax.fori_loop(0, LAYERS // 2, lambda i, h: jnp.tanh(h @ w[2 * i + 1]), x)


def in_steps(w: jax.Array, x: jax.Array) -> jax.Array:
    def body(carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, h = carried
        return i + 3, jnp.tanh(h @ w[i])

    return lax.while_loop(lambda carried: carried[0] < LAYERS, body, (jnp.int32(0), x))[1]


def twice(w: jax.Array, x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda _, h: layers(w, h), x)


def both_dims(w: jax.Array, x: jax.Array) -> jax.Array:
    def layer(h: jax.Array, each: jax.Array) -> tuple[jax.Array, None]:
        rows = constrain(each, None, "model")
        return jnp.tanh(h @ constrain(rows)) + rows[0], None

    return lax.scan(layer, x, constrain(w, None, "data", "model"))[0]


PREFETCHED: dict[str, tuple[Loop, int]] = {
    "forward": (layers, 1),
    "training step": (step, 2),
    "recomputed layers": (recomputed, 4),
    "last layer first": (backwards, 1),
    "cast": (with_cast, 1),
    "beyond the end": (by_index, 1),
    "in steps of three": (in_steps, 1),
    "loop in a loop": (twice, 1),
}
"""Loops, and how many of their gathers are prefetched."""


def of_carried(w: jax.Array, x: jax.Array) -> jax.Array:
    """Gather values that the loop changes."""

    def body(_: jax.Array, each: jax.Array) -> jax.Array:
        return constrain(jnp.tanh(constrain(each) @ constrain(each)), "x")

    return lax.fori_loop(0, LAYERS, body, constrain(w[0], "x"))


def until_large(w: jax.Array, x: jax.Array) -> jax.Array:
    """Loop for an unknown number of iterations."""

    def body(carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, h = carried
        return i + 1, jnp.tanh(h @ w[i])

    return lax.while_loop(lambda carried: (carried[0] < LAYERS) & (jnp.sum(carried[1]) < 1e6), body, (jnp.int32(0), x))[
        1
    ]


def once(w: jax.Array, x: jax.Array) -> jax.Array:
    return lax.scan(lambda h, each: (jnp.tanh(h @ each), None), x, w[:1])[0]


def in_a_branch(w: jax.Array, x: jax.Array) -> jax.Array:
    def body(i: jax.Array, h: jax.Array) -> jax.Array:
        return lax.cond(i % 2 == 0, lambda: jnp.tanh(h @ w[i]), lambda: h)

    return lax.fori_loop(0, LAYERS, body, x)


def at_a_carried_index(w: jax.Array, x: jax.Array) -> jax.Array:
    """Read layers in an order that the values decide."""

    def body(_: jax.Array, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, h = carried
        h = jnp.tanh(h @ w[i])
        return (jnp.argmax(jnp.sum(h, axis=0)) % LAYERS).astype(jnp.int32), h

    return lax.fori_loop(0, LAYERS, body, (jnp.int32(0), x))[1]


UNCHANGED: dict[str, Loop] = {
    "carried values": of_carried,
    "unknown iterations": until_large,
    "one iteration": once,
    "in a branch": in_a_branch,
    "carried index": at_a_carried_index,
}
"""Loops without a collective that depends on the iteration by its number alone, or that run it too seldom."""


def local_of(loop: Loop, width: int = WIDTH, rows: int = ROWS) -> tuple[Any, Any]:
    arguments = Argument((LAYERS, width, width), (None, "x")), Argument((rows, width), ("x",))
    whole = program(loop, *arguments, mesh=LINE).module()
    return whole, partitioned(whole)


def gathers(local: Any) -> list[bool]:
    """Return, for each gather of the program, whether it is in a loop."""
    return [any(True for _ in loops_around(each)) for each in operations_of(local, AllGatherOp)]


@pytest.mark.parametrize("name", PREFETCHED)
def test_prefetched_values_are_those_of_one_device(name: str) -> None:
    loop, count = PREFETCHED[name]
    whole, local = local_of(loop)
    before = len(gathers(local))
    prefetch(local, range(9))
    local.verify()
    assert len(gathers(local)) == before + count
    assert_same_as_whole(whole, local, 1e-5)


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(name: str) -> None:
    _, local = local_of(UNCHANGED[name])
    assert operations_of(local, *COLLECTIVES)
    before = str(local)
    prefetch(local, range(9))
    assert str(local) == before


@pytest.mark.parametrize("numbers", [(0,), (1,), (0, 1)])
def test_one_gather_behind_another(numbers: tuple[int, ...]) -> None:
    arguments = Argument((LAYERS, 8, 8), (None, "data", "model")), Argument((8, 8), ("data",))
    whole = program(both_dims, *arguments, mesh=GRID).module()
    local = partitioned(whole)
    assert gathers(local) == [True, True]
    prefetch(local, numbers)
    local.verify()
    assert_same_as_whole(whole, local, 1e-5)


@pytest.fixture(scope="module")
def hardware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hardware") / "not_pipelined.toml"
    path.write_text(HARDWARE)
    return path


@pytest.mark.parametrize(
    ("rows", "options", "is_prefetched"),
    [
        (8 * 2048, {}, True),
        (8 * 2048, {"memory": "100M"}, False),
        (8 * 2**20, {}, False),
    ],
    ids=["pays", "too little memory", "too little gain"],
)
def test_prefetches_where_that_pays_and_fits(
    rows: int, options: dict[str, str], is_prefetched: bool, hardware: Path
) -> None:
    _, local = local_of(layers, 4096, rows)
    described = hardware_of(str(hardware))
    seconds = predicted_seconds(local, described)
    PrefetchInLoopsPass(str(hardware), **options).apply(context(), local)
    assert (gathers(local) == [False, True]) == is_prefetched
    assert (predicted_seconds(local, described) < seconds) == is_prefetched


def test_a_limit_that_is_no_size_is_reported(hardware: Path) -> None:
    _, local = local_of(layers)
    with pytest.raises(sdy.DiagnosticError, match="option 'memory' of 'sdy-prefetch-in-loops': 'much' is not a size"):
        PrefetchInLoopsPass(str(hardware), "much").apply(context(), local)


def test_needs_hardware_whose_loops_are_not_pipelined(hardware: Path) -> None:
    _, local = local_of(layers, 4096, 8 * 2048)
    before = str(local)
    PrefetchInLoopsPass().apply(context(), local)
    PrefetchInLoopsPass("tpu-v5p").apply(context(), local)
    assert str(local) == before


def test_functions_of_jit_prefetch_for_their_hardware(hardware: Path) -> None:
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec, place = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    arguments = [
        jax.ShapeDtypeStruct((LAYERS, 4096, 4096), "float32", sharding=place(mesh, spec(None, "x"))),
        jax.ShapeDtypeStruct((8 * 2048, 4096), "float32", sharding=place(mesh, spec("x"))),
    ]
    lowered = sdy.jit(layers, hardware=str(hardware)).lower(*arguments)
    assert gathers(lowered.program.local.module) == [False, True]
