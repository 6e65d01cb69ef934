"""Batches that are not sharded over an axis of the mesh."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, Mistake, constrained, descend, mlp, mlp_loss
from lint_programs.planted import Written, tensor


def contrastive(params: Any, images: jax.Array, texts: jax.Array) -> jax.Array:
    def local(params: Any, images: jax.Array, texts: jax.Array) -> jax.Array:
        a = lax.all_gather(images @ params["image"], "data", tiled=True)
        b = lax.all_gather(texts @ params["text"], "data", tiled=True)
        logits = a @ b.T  # mistake
        return jnp.mean(jax.nn.logsumexp(logits, 1)) - jnp.mean(jnp.sum(a * b, 1))

    specs = (P(), P("data"), P("data"))
    return jax.shard_map(local, in_specs=specs, out_specs=P(), check_vma=False)(params, images, texts)


def infer(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w) @ w.T


def infer_mapped(model: Any, features: jax.Array) -> jax.Array:
    def one(x: jax.Array) -> jax.Array:
        for layer in model:
            x = jnp.tanh(layer["weight"] @ x + layer["bias"])
        return x

    return jax.vmap(one)(features)


def token_loss(params: Any, batch: Any) -> jax.Array:
    x = params["table"][batch["tokens"]]
    logits = jnp.tanh(x @ params["up"]) @ params["out"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["labels"][..., None], -1)
    return -chosen.mean()


def token_params() -> dict[str, Any]:
    return {
        "table": tensor(8192, 512, split=P("model")),
        "up": tensor(512, 2048, split=P(None, "model")),
        "out": tensor(2048, 8192, split=P("model")),
    }


def mixed_loss(params: Any, x: jax.Array, key: jax.Array) -> jax.Array:
    others = x[jax.random.permutation(key, len(x))]  # mistake
    return mlp_loss(params, 0.7 * x + 0.3 * others)


def kept_loss(params: Any, x: jax.Array) -> jax.Array:
    h = constrained(jnp.tanh(x @ params["up"]), P("data"))
    return jnp.mean(constrained(h @ params["down"], P("data")) ** 2)


def residual_loss(params: Any, x: jax.Array) -> jax.Array:
    h = x
    for layer in params:
        h = h + jax.nn.relu(h @ layer["up"]) @ layer["down"]
    return jnp.mean((h - x) ** 2)


def image_loss(kernels: Any, images: jax.Array) -> jax.Array:
    for kernel in kernels:
        images = jax.nn.relu(lax.conv_general_dilated(images, kernel, (1, 1), "SAME"))
    return jnp.mean(images**2)


def filtered(kernels: Any, images: jax.Array) -> jax.Array:
    for kernel in kernels:
        images = jax.nn.relu(lax.conv_general_dilated(images, kernel, (1, 1), "SAME"))
    return images


def integrated(params: Any, state: jax.Array) -> jax.Array:
    def turn(state: jax.Array, _: None) -> tuple[jax.Array, None]:
        return state + 0.1 * jnp.tanh(state @ params["up"]) @ params["down"], None

    return lax.scan(turn, state, None, length=16)[0]


def integrated_until(params: Any, state: jax.Array) -> jax.Array:
    def turn(state: jax.Array) -> jax.Array:
        return state + 0.1 * jnp.tanh(state @ params["up"]) @ params["down"]

    return lax.while_loop(lambda state: jnp.sum(state) > 1, turn, state)


def messages_loss(params: Any, graph: Any) -> jax.Array:
    nodes = graph["nodes"]
    for layer in params:
        ends = [nodes[graph[name]] for name in ("senders", "receivers")]
        messages = jax.nn.relu(jnp.concatenate([*ends, graph["edges"]], -1) @ layer)
        nodes = nodes + jax.ops.segment_sum(messages, graph["receivers"], len(nodes))
    return jnp.mean(nodes**2)


def graph(edges: P) -> dict[str, Any]:
    ends = {name: tensor(262144, split=edges, dtype="int32") for name in ("senders", "receivers")}
    return {"nodes": tensor(16384, 64, split=P()), "edges": tensor(262144, 64, split=edges)} | ends


def points_loss(params: Any, cloud: Any) -> jax.Array:
    """Return a loss of the neighbours of points: without shardings, devices receive nothing."""
    near = cloud["positions"][cloud["neighbours"]].reshape(len(cloud["features"]), -1)
    hidden = jax.nn.relu(near @ params["up"]) @ params["down"]
    return jnp.mean((hidden + cloud["features"]) ** 2)


def joined_loss(params: Any, real: jax.Array, fake: jax.Array) -> jax.Array:
    both = jnp.concatenate([real, fake])  # mistake
    scores = jnp.tanh(both @ params["up"]) @ params["down"]
    return jnp.mean(scores[: len(real)]) - jnp.mean(scores[len(real) :])


def joined_views_loss(params: Any, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return a loss whose gradient is cut into the parts of the batch again."""
    first, second = (jnp.tanh(each @ params["up"]) for each in (first, second))
    both = jnp.concatenate([first, second])  # mistake
    return jnp.mean(jnp.square(both @ params["down"]))


MISTAKES: dict[str, Mistake] = {
    "embeddings of images and texts that are both gathered": Mistake(
        "manual-computation-repeats",
        Written(
            contrastive,
            (
                {"image": tensor(1024, 512), "text": tensor(1024, 512)},
                *[tensor(16384, 1024, split=P("data"))] * 2,
            ),
            mesh=EIGHT,
        ),
        at=contrastive,
        has_cure=False,
    ),
    "a batch that is shuffled in a step": Mistake(
        "shuffled-batch",
        Written(
            descend(mixed_loss),
            (
                {"up": tensor(1024, 1024, split=P()), "down": tensor(1024, 1024, split=P())},
                DATA,
                tensor(2, split=P(), dtype="uint32"),
            ),
            mesh=EIGHT,
        ),
        at=mixed_loss,
        has_cure=False,
        needs_names=True,
    ),
    "states of a loop on every device": Mistake(
        "batch-not-sharded",
        Written(integrated, (mlp(P(None, "model"), P("model")), tensor(16384, 1024, split=P()))),
        "state",
        needs_names=True,
    ),
    "states of a loop with an unknown number of iterations on every device": Mistake(
        "batch-not-sharded",
        Written(integrated_until, (mlp(P(None, "model"), P("model")), tensor(16384, 1024, split=P()))),
        "state",
        needs_names=True,
    ),
    "edges of a graph on every device": Mistake(
        "replicated-tensor",
        Written(descend(messages_loss), ([tensor(192, 64, split=P())] * 3, graph(P())), mesh=EIGHT),
        "batch[0]['edges']",
        needs_names=True,
    ),
    "neighbours of points on every device": Mistake(
        "batch-not-sharded",
        Written(
            descend(points_loss),
            (
                {"up": tensor(48, 1024), "down": tensor(1024, 256)},
                {
                    "positions": tensor(65536, 3, split=P()),
                    "neighbours": tensor(65536, 16, split=P(), dtype="int32"),
                    "features": tensor(65536, 256, split=P()),
                },
            ),
            mesh=EIGHT,
        ),
        "batch[0]['neighbours']",
        needs_names=True,
    ),
    "two batches in one": Mistake(
        "chunks-cross-devices",
        Written(descend(joined_loss), (mlp(P(), P()), *[tensor(8192, 1024, split=P("data"))] * 2), mesh=EIGHT),
        at=joined_loss,
        has_cure=False,
    ),
    "two views of a batch in one": Mistake(
        "chunks-cross-devices",
        Written(descend(joined_views_loss), (mlp(P(), P()), *[tensor(8192, 1024, split=P("data"))] * 2), mesh=EIGHT),
        at=joined_views_loss,
        has_cure=False,
    ),
    "images sharded by rows": Mistake(
        "exchange-along-dimension",
        Written(
            filtered, ([tensor(128, 128, 3, 3)] * 4, tensor(64, 128, 64, 64, split=P(None, None, "data"))), mesh=EIGHT
        ),
        "images",
    ),
    "images sharded by channels": Mistake(
        "sum-over-sharded-operand",
        Written(filtered, ([tensor(128, 128, 3, 3)] * 4, tensor(64, 128, 64, 64, split=P(None, "data"))), mesh=EIGHT),
        "images",
    ),
    "a batch on every device": Mistake(
        "batch-not-sharded",
        Written(descend(mlp_loss), (mlp(P(None, "model"), P("model")), tensor(8192, 1024, split=P()))),
        "batch[0]",
    ),
    "tokens on every device": Mistake(
        "batch-not-sharded",
        Written(
            descend(token_loss),
            (token_params(), {name: tensor(32, 256, split=P(), dtype="int32") for name in ("tokens", "labels")}),
        ),
        "batch[0]['tokens']",
    ),
    "a batch on every device, that a constraint on an activation replaces": Mistake(
        "batch-not-sharded",
        Written(
            descend(residual_loss),
            (
                [{"up": tensor(2048, 8192, split=P(None, "model")), "down": tensor(8192, 2048, split=P("model"))}] * 4,
                tensor(16384, 2048, split=P()),
            ),
        ),
        "batch[0]",
    ),
    "a batch on half of the devices": Mistake(
        "batch-not-sharded", Written(descend(mlp_loss), (mlp(P(), P()), DATA)), "batch[0]"
    ),
    "images on every device": Mistake(
        "batch-not-sharded",
        Written(
            descend(image_loss),
            ([tensor(32, 32, 3, 3, split=P("model"))] * 3, tensor(64, 32, 64, 64, split=P())),
        ),
        "batch[0]",
    ),
    "inference on a replicated batch": Mistake(
        "batch-not-sharded",
        Written(
            infer,
            (tensor(8192, 1024, split=P()), tensor(1024, 4096, split=P(None, "model"))),
        ),
        "x",
    ),
    "a batch on every device, behind layers that are mapped over it": Mistake(
        "batch-not-sharded",
        Written(
            infer_mapped,
            (
                [
                    {"weight": tensor(2048, 2048, split=P("model")), "bias": tensor(2048, split=P("model"))},
                    {"weight": tensor(2048, 2048, split=P(None, "model")), "bias": tensor(2048, split=P())},
                ]
                * 2,
                tensor(8192, 2048, split=P()),
            ),
        ),
        "features",
    ),
    "one layer's input on every device, behind a layer that is mapped over it": Mistake(
        "batch-not-sharded",
        Written(
            infer_mapped,
            (
                [{"weight": tensor(2048, 2048, split=P("model")), "bias": tensor(2048, split=P("model"))}],
                tensor(8192, 2048, split=P()),
            ),
        ),
        "features",
    ),
    "a batch and a constraint that lack the axis of the replicas": Mistake(
        "batch-not-sharded",
        Written(
            descend(kept_loss),
            (mlp(P("data"), P("data")), tensor(65536, 1024, split=P("data"))),
            mesh={"replica": 2, "data": 4},
        ),
        "batch[0]",
    ),
    "a batch on every device, fully sharded parameters": Mistake(
        "batch-not-sharded",
        Written(descend(mlp_loss), (mlp(P("data"), P("data")), tensor(65536, 1024, split=P())), mesh=EIGHT),
        "batch[0]",
    ),
}
