"""Batches that are not sharded over an axis of the mesh."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, Mistake, constrained, descend, mlp, mlp_loss
from lint_programs.planted import Written, tensor


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


MISTAKES: dict[str, Mistake] = {
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
