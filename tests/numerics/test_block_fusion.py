"""Fusion of random small programs: groups depend on each other without cycles, and compute what the program does."""

import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import sdy
from samples import covering
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph
from sdy.passes.blocks.fit_blocks import fit_blocks
from sdy.passes.blocks.schedule import depth_first, run
from sdy.passes.blocks.validation import validate

STEPS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "add": lambda x, y: x + y,
    "tanh": lambda x, _: jnp.tanh(x),
    "multiply by a constant": lambda x, _: x * 2,
    "product": lambda x, y: x @ y / 6,
    "softmax": lambda x, _: jax.nn.softmax(x, axis=1),
    "sum": lambda x, y: x - y.sum(0),
    "transpose": lambda x, _: x.T,
    "reverse": lambda x, _: x[::-1],
    "pad": lambda x, y: jnp.pad(x[:4], ((0, 2), (0, 0)), constant_values=2) + y,
    "concatenate": lambda x, y: jnp.concatenate([x[3:], y[:3]]),
    "interior pad": lambda x, _: lax.pad(x[::2], np.float32(2), ((0, 1, 1), (0, 0, 0))),
    "reshape": lambda x, _: x.reshape(4, 9).reshape(9, 4).reshape(6, 6),
    "split": lambda x, _: x.reshape(2, 3, 6).sum(0).reshape(3, 6)[np.array([0, 1, 2, 0, 1, 2])],
    "sort": lambda x, _: jnp.sort(x, axis=1),
    "update": lambda x, y: lax.dynamic_update_slice(x, y[:2, :2], (1, 2)),
    "loop": lambda x, y: lax.fori_loop(0, 2, lambda _, z: jnp.tanh(z) + y, x),
    "branch": lambda x, y: lax.cond(x[0, 0] > 0, lambda: x + y, lambda: x - y),
}


def random_program(seed: int) -> Callable[[jax.Array, jax.Array], list[jax.Array]]:
    """Return a program of nine steps that read two values computed before."""
    generator = random.Random(seed)
    steps = [(name, generator.random(), generator.random()) for name in generator.choices([*STEPS], k=9)]

    def program(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        values = [x, y]
        for name, first, second in steps:
            values.append(STEPS[name](values[int(first * len(values))], values[int(second * len(values))]))
        return values[-2:]

    return program


@covering
@pytest.mark.parametrize("limit", [160, 600])
@pytest.mark.parametrize("seed", range(8))
def test_groups_have_no_cycles(seed: int, limit: int) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, 6, 6)).astype(np.float32)
    program = jax.jit(random_program(seed), keep_unused=True)
    module = sdy.from_jax(program, x, y)
    fit_blocks(module, limit)
    graph = block_graph(module, within(limit))
    validate(graph)
    assert len(list(depth_first(graph))) == sum(1 for _ in graph.shards())
    results, _ = run(graph, [x, y], 4 * limit)
    for result, expected in zip(results, program(x, y), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
