"""Large tables, graphs, and losses across the batch: recommendation, retrieval, clustering, molecules."""

from itertools import pairwise
from typing import Any

import einops
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax
from jax import lax
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import train_step
from placed import GRID, LINE, WHOLE, Build, Placed, by_name, fully_sharded, integers, normal, placed

_BATCH, _WIDTH, _ROWS = 64, 64, 1024


def _perceptron(*widths: int, seed: int = 0) -> list[Any]:
    sizes = pairwise(widths)
    return [
        {"w": normal(n, m, seed=seed + i, scale=n**-0.5), "b": np.zeros(m, np.float32)}
        for i, (n, m) in enumerate(sizes)
    ]


def applied(layers: list[Any], x: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def _recommendation(rule: Any, batch: P, mesh: Any) -> Build:
    """DLRM: embedding tables, an MLP of dense features, and products of all pairs of features."""

    def build() -> Placed:
        params = {
            "tables": normal(8, _ROWS, _WIDTH, scale=0.1),
            "below": _perceptron(16, 128, _WIDTH),
            "above": _perceptron(36 + _WIDTH, 128, 1, seed=5),
        }

        def loss(params: Any, numbers: jax.Array, categories: jax.Array, clicks: jax.Array) -> jax.Array:
            dense = applied(params["below"], numbers)
            sparse = jax.vmap(lambda table, rows: table[rows], (0, 1), 1)(params["tables"], categories)
            features = jnp.concatenate([dense[:, None], sparse], 1)
            pairs = jnp.einsum("bfw,bgw->bfg", features, features)[:, *jnp.triu_indices(9, 1)]
            logits = applied(params["above"], jnp.concatenate([dense, pairs], -1))[:, 0]
            return optax.sigmoid_binary_cross_entropy(logits, clicks).mean()

        optimizer = optax.adagrad(1e-2)
        kept = ((params, rule), (optimizer.init(params), rule))
        arrays = (normal(_BATCH, 16), integers(_BATCH, 8, below=_ROWS), integers(_BATCH, below=2).astype(np.float32))
        return placed(train_step(optimizer, loss), *kept, *((array, batch) for array in arrays), mesh=mesh)

    return build


def _contrastive(spec: P, mesh: Any, rule: Any = WHOLE) -> Build:
    """CLIP: a contrastive loss between all images and texts of the batch."""

    def build() -> Placed:
        params = {"image": _perceptron(256, 256, _WIDTH), "text": _perceptron(128, 256, _WIDTH), "scale": np.float32(1)}

        def loss(params: Any, images: jax.Array, texts: jax.Array) -> jax.Array:
            made = (applied(params["image"], images), applied(params["text"], texts))
            a, b = (x / jnp.linalg.norm(x, axis=-1, keepdims=True) for x in made)
            logits = jnp.exp(params["scale"]) * a @ b.T
            labels = jnp.arange(len(logits))
            return sum(optax.softmax_cross_entropy_with_integer_labels(x, labels).mean() for x in (logits, logits.T))

        optimizer = optax.adamw(1e-3)
        kept = ((params, rule), (optimizer.init(params), rule))
        pairs = ((normal(128, 256), spec), (normal(128, 128, seed=1), spec))
        return placed(train_step(optimizer, loss), *kept, *pairs, mesh=mesh)

    return build


def masked_patches() -> Placed:
    """A masked autoencoder: all patches are predicted from a random subset per image."""

    def loss(params: Any, images: jax.Array, key: jax.Array) -> jax.Array:
        patches = einops.rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
        order = jnp.argsort(jax.random.uniform(key, patches.shape[:2]), 1)
        seen = jnp.take_along_axis(patches, order[:, :8, None], 1)
        code = applied(params["encoder"], seen).mean(1, keepdims=True) + params["positions"]
        return jnp.mean(jnp.square(applied(params["decoder"], code) - patches))

    params = {
        "encoder": _perceptron(48, 256, _WIDTH),
        "decoder": _perceptron(_WIDTH, 256, 48, seed=3),
        "positions": normal(16, _WIDTH),
    }
    optimizer = optax.adam(1e-3)
    kept = ((params, fully_sharded()), (optimizer.init(params), fully_sharded()))
    return placed(train_step(optimizer, loss), *kept, (normal(32, 16, 16, 3), P("x")), (jax.random.key(0), P()))


_NODES, _EDGES = 256, 1024


def _graph_network(nodes: P, edges: P, mesh: Any = LINE) -> Build:
    """Message passing along edges with jraph, summed at the receivers."""

    def build() -> Placed:
        params = {"edge": _perceptron(2 * _WIDTH, 128, _WIDTH), "node": _perceptron(2 * _WIDTH, 128, _WIDTH, seed=5)}

        def loss(params: Any, features: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
            def edge(_: Any, sent: jax.Array, received: jax.Array, __: Any) -> jax.Array:
                return applied(params["edge"], jnp.concatenate([sent, received], -1))

            def node(features: jax.Array, _: Any, received: jax.Array, __: Any) -> jax.Array:
                return features + applied(params["node"], jnp.concatenate([features, received], -1))

            graph = jraph.GraphsTuple(
                features, None, receivers, senders, None, jnp.array([_NODES]), jnp.array([_EDGES])
            )
            network = jraph.GraphNetwork(edge, node)
            return jnp.mean(jnp.square(network(network(graph)).nodes))

        optimizer = optax.adam(1e-3)
        kept = ((params, P()), (optimizer.init(params), P()))
        ends = [(integers(_EDGES, below=_NODES, seed=seed), edges) for seed in range(2)]
        return placed(train_step(optimizer, loss), *kept, (normal(_NODES, _WIDTH), nodes), *ends, mesh=mesh)

    return build


def graph_attention() -> Placed:
    """Graph attention over incoming edges, by segments."""

    def run(w: jax.Array, a: jax.Array, features: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
        x = features @ w
        scores = jax.nn.leaky_relu(jnp.concatenate([x[senders], x[receivers]], -1) @ a)
        weights = jraph.segment_softmax(scores, receivers, _NODES)
        return jax.nn.elu(jax.ops.segment_sum(x[senders] * weights[:, None], receivers, _NODES))

    ends = [(integers(_EDGES, below=_NODES, seed=seed), P("x")) for seed in range(2)]
    return placed(
        run, (normal(_WIDTH, _WIDTH), P()), (normal(2 * _WIDTH), P()), (normal(_NODES, _WIDTH), P("x")), *ends
    )


def nearest() -> Placed:
    """Retrieval of the ten nearest neighbors in a sharded table, for sharded queries."""

    def run(queries: jax.Array, table: jax.Array) -> Any:
        values, indices = lax.top_k(queries @ table.T, 10)
        return values, table[indices].mean(1)

    return placed(run, (normal(_BATCH, _WIDTH), P("data")), (normal(_ROWS, _WIDTH), P("model")), mesh=GRID)


def clusters() -> Placed:
    """Three steps of k-means."""

    def step(_: int, centers: jax.Array, points: jax.Array) -> jax.Array:
        nearest = jnp.argmin(jnp.sum((points[:, None] - centers) ** 2, -1), -1)
        sums = jax.ops.segment_sum(points, nearest, len(centers))
        counts = jax.ops.segment_sum(jnp.ones(len(points)), nearest, len(centers))
        return sums / jnp.maximum(counts, 1)[:, None]

    def run(centers: jax.Array, points: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda i, centers: step(i, centers, points), centers)

    return placed(run, (normal(16, _WIDTH), P()), (normal(_ROWS, _WIDTH, seed=1), P("x")))


def principal_components() -> Placed:
    """PCA by orthogonal iteration."""

    def run(x: jax.Array, start: jax.Array) -> jax.Array:
        x = x - x.mean(0)
        return lax.fori_loop(0, 4, lambda _, v: jnp.linalg.qr(x.T @ (x @ v))[0], start)

    return placed(run, (normal(_ROWS, _WIDTH), P("data", "model")), (normal(_WIDTH, 8), P("model")), mesh=GRID)


def gaussian_process() -> Placed:
    """The marginal likelihood of a Gaussian process and its gradient, with sharded kernel rows."""

    def likelihood(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        distances = jnp.sum((x[:, None] - x) ** 2, -1)
        kernel = jnp.exp(params["scale"] - 0.5 * distances * jnp.exp(params["width"])) + 0.1 * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(kernel)
        solved = jax.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * y @ solved + jnp.sum(jnp.log(jnp.diag(factor)))

    params = {"scale": np.float32(0), "width": np.float32(-2)}
    return placed(
        jax.value_and_grad(likelihood), (params, P()), (normal(128, 4), P("x")), (normal(128, seed=1), P("x"))
    )


def molecules() -> Placed:
    """Molecular dynamics: forces between all pairs of particles, and several time steps."""

    def energy(places: jax.Array) -> jax.Array:
        distances = jnp.sum((places[:, None] - places) ** 2, -1) + jnp.eye(len(places))
        inverse = (1 / (distances + 1)) ** 3
        return 2 * jnp.sum((inverse**2 - inverse) * (1 - jnp.eye(len(places))))

    def run(places: jax.Array, speeds: jax.Array) -> Any:
        def step(_: int, state: Any) -> Any:
            places, speeds = state
            speeds = speeds - 1e-3 * jax.grad(energy)(places)
            return places + 1e-2 * speeds, speeds

        return lax.fori_loop(0, 4, step, (places, speeds))

    return placed(run, (normal(256, 3, scale=3), P("x")), (normal(256, 3, seed=1), P("x")))


def waves() -> Placed:
    """Shallow water equations on a grid sharded along both dimensions, by slices of a padded grid."""

    def step(state: Any, _: None) -> Any:
        height, u, v = state
        padded = {name: jnp.pad(array, 1, mode="wrap") for name, array in zip("huv", state, strict=True)}
        dx = {name: (p[2:, 1:-1] - p[:-2, 1:-1]) / 2 for name, p in padded.items()}
        dy = {name: (p[1:-1, 2:] - p[1:-1, :-2]) / 2 for name, p in padded.items()}
        moved = (height - 0.1 * (dx["u"] + dy["v"]), u - 0.1 * dx["h"], v - 0.1 * dy["h"])
        return moved, moved[0].mean()

    grids = tuple(normal(64, 64, seed=seed) for seed in range(3))
    return placed(lambda state: lax.scan(step, state, None, length=8), (grids, P("data", "model")), mesh=GRID)


_TABLES_BY_NUMBER = by_name({"tables": P("x")})
_TABLES_BY_ROW = by_name({"tables": P(None, "model"), "0/w": P(None, "model")})
_TABLES_BY_WIDTH = by_name({"tables": P(None, None, "x")})

PROGRAMS: dict[str, Build] = {
    "recommendation, a table on each device": _recommendation(_TABLES_BY_NUMBER, P("x"), LINE),
    "recommendation, rows of tables split": _recommendation(_TABLES_BY_ROW, P("data"), GRID),
    "recommendation, columns of tables split": _recommendation(_TABLES_BY_WIDTH, P("x"), LINE),
    "images and texts, data parallel": _contrastive(P("x"), LINE),
    "images and texts, fully sharded": _contrastive(P("x"), LINE, fully_sharded()),
    "masked patches, fully sharded": masked_patches,
    "graph network, edges split": _graph_network(P(), P("x")),
    "graph network, nodes and edges split": _graph_network(P("x"), P("x")),
    "graph network, features and edges split": _graph_network(P(None, "model"), P("data"), GRID),
    "graph attention, nodes and edges split": graph_attention,
    "nearest rows of a table that is split": nearest,
    "k-means, points split": clusters,
    "principal components, both dimensions split": principal_components,
    "Gaussian process, points split": gaussian_process,
    "particles split": molecules,
    "shallow water on a grid": waves,
}
