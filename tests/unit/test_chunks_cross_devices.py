"""The rule `chunks-cross-devices`: findings and non-findings for fused weights of all common forms."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import sdy
from lint_programs.planted import Tensor, Written, tensor
from sdy.diagnostics import capture
from sdy.passes.account.lint.findings import Finding

GRID: Mapping[str, int] = {"data": 2, "model": 4}
ROWS, WIDE = tensor(8192, 1024, split=P("data")), tensor(1024, 8192, split=P(None, "model"))
CHUNK = 4096 * 1024 * 4
"""Bytes of a chunk's shard: 4,096 of 8,192 rows, 1,024 of 4,096 columns."""


def gated(gate: jax.Array, up: jax.Array) -> jax.Array:
    return jax.nn.silu(gate) * up


def split(x: jax.Array, w: jax.Array) -> jax.Array:
    return gated(*jnp.split(x @ w, 2, -1))


def slices(x: jax.Array, w: jax.Array) -> jax.Array:
    both = x @ w
    return gated(both[:, :4096], both[:, 4096:])


def gradient(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    return jax.grad(lambda w, x: function(x, w).sum())


def constrained(x: jax.Array, w: jax.Array) -> jax.Array:
    return gated(*jnp.split(lax.with_sharding_constraint(x @ w, P("data", "model")), 2, -1))


def transposed(x: jax.Array, w: jax.Array) -> jax.Array:
    return gated(*jnp.split(x @ w.T, 2, -1))


def scaled(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
    return gated(*jnp.split(x @ (w.astype("float32") * scale), 2, -1))


def grouped(x: jax.Array, params: Any) -> Any:
    q, k, v = jnp.split(x @ params["kernel"] + params["bias"], [4096, 6144], -1)
    return q, k * v


def stacked(x: jax.Array, w: jax.Array) -> jax.Array:
    both = jnp.einsum("bd,dcf->bcf", x, w)
    return reduce(gated, [both[:, chunk] for chunk in range(w.shape[1])])


def reshaped(x: jax.Array, w: jax.Array) -> jax.Array:
    both = (x @ w).reshape(len(x), 2, -1)
    return gated(both[:, 0], both[:, 1])


def convolved(x: jax.Array, w: jax.Array) -> jax.Array:
    return gated(*jnp.split(lax.conv_general_dilated(x, w, (1, 1), "SAME"), 2, 1))


def recurrent(xs: jax.Array, w: jax.Array, u: jax.Array, b: jax.Array) -> jax.Array:
    def step(carry: Any, x: jax.Array) -> Any:
        hidden, cell = carry
        i, f, g, o = jnp.split(x @ w + hidden @ u + b, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(cell), cell), None

    zeros = jnp.zeros((xs.shape[1], len(u)))
    return lax.scan(step, (zeros, zeros), xs)[0][0]


def layers(weights: Any, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: Any) -> Any:
        return x + split(x, w["up"]) @ w["down"], None

    return lax.scan(jax.checkpoint(layer), x, weights)[0].sum()


class Case(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    weights: str
    cure: str
    chunks: float
    """Bytes received, as a multiple of a chunk's shard."""


EQUAL = '`w.reshape(1024, 2, 4096)` sharded as P(None, None, "model")'
CASES = {
    "split": Case(split, (ROWS, WIDE), "argument 1 (w)", EQUAL, 1.5),
    "slices": Case(slices, (ROWS, WIDE), "argument 1 (w)", EQUAL, 1.5),
    "gradient of split": Case(gradient(split), (WIDE, ROWS), "argument 0 (w)", EQUAL, 3),
    "gradient of slices": Case(gradient(slices), (WIDE, ROWS), "argument 0 (w)", EQUAL, 3),
    "constraint on the product": Case(constrained, (ROWS, tensor(1024, 8192)), "argument 1 (w)", EQUAL, 1.5),
    "transposed weight": Case(
        transposed,
        (ROWS, tensor(8192, 1024, split=P("model"))),
        "argument 1 (w)",
        '`w.reshape(2, 4096, 1024)` sharded as P(None, "model", None)',
        1.5,
    ),
    "quantized weight": Case(
        scaled,
        (ROWS, tensor(1024, 8192, split=P(None, "model"), dtype="int8"), tensor(8192, split=P("model"))),
        "argument 1 (w) and argument 2 (scale)",
        f'{EQUAL}, `scale.reshape(2, 4096)` sharded as P(None, "model")',
        1.5,
    ),
    "chunks of different sizes": Case(
        grouped,
        (ROWS, {"kernel": WIDE, "bias": tensor(8192, split=P("model"))}),
        "argument 1 (params['bias']) and argument 2 (params['kernel'])",
        "`jnp.concatenate([chunk.reshape(1024, 4, -1) for chunk in jnp.split(params['kernel'], [4096, 6144], 1)], 2)` "
        'sharded as P(None, "model", None)',
        1.5,
    ),
    "split dimension of chunks": Case(
        stacked,
        (ROWS, tensor(1024, 4, 4096, split=P(None, "model"))),
        "argument 1 (w)",
        '`w` sharded as P(None, None, "model")',
        0,
    ),
    "reshape of the product": Case(reshaped, (ROWS, WIDE), "argument 1 (w)", EQUAL, 0),
    "convolution": Case(
        convolved,
        (tensor(64, 32, 64, 64, split=P("data")), tensor(128, 32, 3, 3, split=P("model"))),
        "argument 1 (w)",
        '`w.reshape(2, 64, 32, 3, 3)` sharded as P(None, "model", None, None, None)',
        0.75,
    ),
    "gates of an LSTM": Case(
        recurrent,
        (tensor(8, 1024, 1024, split=P(None, "data")), *[tensor(1024, 4096, split=P(None, "model"))] * 2, tensor(4096)),
        "argument 1 (w) and argument 2 (u) and argument 3 (b)",
        '`b.reshape(4, 1024)` sharded as P(None, "model")',
        0.75,
    ),
    "gradient of layers in a scan": Case(
        jax.grad(layers),
        (
            {
                "down": tensor(4, 4096, 1024, split=P(None, "model")),
                "up": tensor(4, 1024, 8192, split=P(None, None, "model")),
            },
            ROWS,
        ),
        "argument 1 (weights['up'])",
        "`weights['up'].reshape(4, 1024, 2, 4096)` sharded as P(None, None, None, \"model\")",
        4 * 4.5,
    ),
}


def findings(function: Callable[..., Any], *arguments: Any) -> list[Finding]:
    with capture():
        options = sdy.LintOptions(select=["chunks-cross-devices"])
        return [*sdy.lint(Written(function, arguments, mesh=GRID).lowered(), lint_options=options)]


@pytest.mark.parametrize("name", CASES)
def test_weight_bytes_and_layout_are_told(name: str) -> None:
    case = CASES[name]
    (finding,) = findings(case.function, *case.arguments)
    assert f"a product with {case.weights}, is cut along dimension" in finding.what
    assert case.cure in finding.cure
    assert finding.received == case.chunks * CHUNK if case.chunks else finding.received > CHUNK


def cut_whole(x: jax.Array, w: jax.Array) -> Any:
    gate, up = jnp.split(x @ w, 2, -1)
    return [lax.with_sharding_constraint(each, P("data")) for each in (gate, up)]


def windows(x: jax.Array, w: jax.Array) -> jax.Array:
    both = x @ w
    return both[:, 2048:] - both[:, :-2048]


def every_other(x: jax.Array, w: jax.Array) -> jax.Array:
    both = x @ w
    return gated(both[:, ::2], both[:, 1::2])


@pytest.mark.parametrize(
    ("function", "weight"),
    [
        pytest.param(cut_whole, WIDE, id="chunks that are wanted whole"),
        pytest.param(windows, WIDE, id="slices that overlap"),
        pytest.param(every_other, WIDE, id="columns in turns"),
        pytest.param(split, tensor(1024, 2 * 4094, split=P(None, "model")), id="chunks that the axis does not divide"),
        pytest.param(split, tensor(1024, 8192, split=P("model")), id="a weight that is split by rows"),
        pytest.param(stacked, tensor(1024, 2, 4096, split=P(None, None, "model")), id="an interleaved weight"),
    ],
)
def test_no_finding_if_interleaving_saves_nothing(function: Callable[..., Any], weight: Tensor) -> None:
    assert not findings(function, ROWS, weight)
