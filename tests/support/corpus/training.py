"""Training steps: losses, their gradients, and the updates of parameters."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, constrain, ints, program


def layer_norm(x: jax.Array) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def mlp_step(up: jax.Array, down: jax.Array, x: jax.Array, y: jax.Array) -> Any:
    def loss(up: jax.Array, down: jax.Array) -> jax.Array:
        return jnp.mean((jax.nn.gelu(x @ up) @ down - y) ** 2)

    value, gradients = jax.value_and_grad(loss, (0, 1))(up, down)
    return value, up - 0.1 * gradients[0], down - 0.1 * gradients[1]


def adam_step(w: jax.Array, mean: jax.Array, square: jax.Array, x: jax.Array, y: jax.Array) -> Any:
    gradient = jax.grad(lambda w: cross_entropy(x @ w, y))(w)
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square**2 + 0.001 * gradient**2
    return w - 0.01 * mean / (jnp.sqrt(square) + 1e-3), mean, square


def attention(x: jax.Array, qkv: jax.Array, out: jax.Array) -> jax.Array:
    q, k, v = jnp.einsum("bsw,cwhd->cbshd", x, qkv)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9))
    return jnp.einsum("bhqk,bkhd,hdw->bqw", weights, v, out)


def block(x: jax.Array, qkv: jax.Array, out: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    x = x + attention(layer_norm(x), qkv, out)
    return x + jax.nn.gelu(layer_norm(x) @ up) @ down


def transformer_step(embedding: jax.Array, qkv: jax.Array, out: jax.Array, up: jax.Array, down: jax.Array, *data: Any):
    tokens, targets = data

    def loss(embedding: jax.Array, *weights: jax.Array) -> jax.Array:
        return cross_entropy(layer_norm(block(embedding[tokens], *weights)) @ embedding.T, targets)

    weights = (embedding, qkv, out, up, down)
    value, gradients = jax.value_and_grad(loss, tuple(range(5)))(*weights)
    return value, *(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))


def sequence_parallel_block(x: jax.Array, *weights: jax.Array) -> jax.Array:
    """Apply a transformer block with sequence-sharded activations between its halves, over the axis of the weights."""
    qkv, out, up, down = weights
    x = constrain(x, D, M)
    x = constrain(x + attention(layer_norm(x), qkv, out), D, M)
    return constrain(x + jax.nn.gelu(layer_norm(x) @ up) @ down, D, M)


def scanned_layers(x: jax.Array, *stacked: jax.Array) -> jax.Array:
    """Differentiate a scan over layers with rematerialization, with respect to `x`."""

    def loss(x: jax.Array) -> jax.Array:
        layer = jax.checkpoint(lambda x, weights: (block(x, *weights), None))
        return jnp.mean(lax.scan(layer, x, stacked)[0] ** 2)

    return jax.grad(loss)(x)


def mixture_of_experts(x: jax.Array, gate: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.einsum("te,teo->to", jax.nn.softmax(x @ gate), jnp.einsum("ti,eio->teo", x, w))


def dispatched_experts(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Send each token to its best expert, up to the expert's capacity."""
    capacity = 8
    weights = jax.nn.softmax(x @ gate)
    chosen = jax.nn.one_hot(jnp.argmax(weights, -1), gate.shape[1], dtype="float32")
    place = (jnp.cumsum(chosen, 0) * chosen - 1).astype("int32")
    sent = jax.nn.one_hot(place, capacity) * chosen[..., None]
    received = constrain(jnp.einsum("tec,tw->ecw", sent, x), M)
    given = constrain(jnp.einsum("ech,ehw->ecw", jax.nn.relu(jnp.einsum("ecw,ewh->ech", received, up)), down), M)
    return jnp.einsum("tec,ecw,te->tw", sent, given, weights)


def experts_step(x: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> Any:
    def loss(gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        return jnp.sum(dispatched_experts(x, gate, up, down) ** 2)

    return jax.grad(loss, (0, 1, 2))(gate, up, down)


def cnn_step(first: jax.Array, second: jax.Array, dense: jax.Array, images: jax.Array, labels: jax.Array) -> Any:
    def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def normalize(x: jax.Array) -> jax.Array:
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)

    def loss(first: jax.Array, second: jax.Array, dense: jax.Array) -> jax.Array:
        x = jax.nn.relu(normalize(convolve(images, first)))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x + jax.nn.relu(normalize(convolve(x, second)))
        return cross_entropy(x.mean((1, 2)) @ dense, labels)

    return jax.value_and_grad(loss, (0, 1, 2))(first, second, dense)


def recurrent_step(w: jax.Array, u: jax.Array, xs: jax.Array, y: jax.Array) -> Any:
    def loss(w: jax.Array, u: jax.Array) -> jax.Array:
        def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            forget = jax.nn.sigmoid(x @ u)
            return forget * h + (1 - forget) * jnp.tanh(h @ w + x @ u), None

        return jnp.mean((lax.scan(cell, jnp.zeros_like(y), xs)[0] - y) ** 2)

    return jax.grad(loss, (0, 1))(w, u)


def accumulated_gradient(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Accumulate the gradients of microbatches in a loop."""

    def add(total: jax.Array, batch: Any) -> tuple[jax.Array, None]:
        x, y = batch
        return total + jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w), None

    batches = tuple(constrain(a.reshape(4, -1, a.shape[1]), None, D) for a in (x, y))
    return lax.scan(add, jnp.zeros_like(w), batches)[0]


def low_rank_step(w: jax.Array, a: jax.Array, b: jax.Array, x: jax.Array) -> Any:
    return jax.grad(lambda a, b: jnp.sum(jnp.tanh(x @ w + (x @ a) @ b) ** 2), (0, 1))(a, b)


def narrow_step(w: jax.Array, x: jax.Array) -> jax.Array:
    """Take a step that computes in bfloat16 and stores parameters in float32."""
    gradient = jax.grad(lambda w: jnp.sum(jnp.tanh(x.astype("bfloat16") @ w) ** 2).astype("float32"))
    return w - 0.01 * gradient(w.astype("bfloat16")).astype("float32")


def embedding_loss(table: jax.Array, tokens: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(table[tokens]))


def contrastive_loss(images: jax.Array, texts: jax.Array) -> jax.Array:
    images, texts = (x * lax.rsqrt(jnp.sum(x * x, -1, keepdims=True)) for x in (images, texts))
    logits = images @ texts.T
    return cross_entropy(logits, jnp.arange(len(logits))) + cross_entropy(logits.T, jnp.arange(len(logits)))


def clipped_gradient(w: jax.Array, x: jax.Array) -> jax.Array:
    gradient = jax.grad(lambda w: jnp.mean(jnp.square(x @ w)))(w)
    return gradient / jnp.maximum(1.0, jnp.sqrt(jnp.sum(gradient * gradient)))


_WEIGHTS = (
    Argument((3, 8, 4, 4), (None, None, M)),
    Argument((4, 4, 8), (M,)),
    Argument((8, 32), (None, M)),
    Argument((32, 8), (M,)),
)
_TOKENS = ints((8, 6), D)
_STACKED = tuple(Argument((2, *w.shape), (None, *w.axes)) for w in _WEIGHTS)
_EXPERTS = (Argument((8, 4), (None, M)), Argument((4, 8, 16), (M,)), Argument((4, 16, 8), (M,)))

PROGRAMS: dict[str, Program] = {
    "perceptron": program(
        mlp_step,
        Argument((8, 32), (None, M)),
        Argument((32, 8), (M,)),
        Argument((16, 8), (D,)),
        Argument((16, 8), (D,)),
    ),
    "perceptron, data split only": program(
        mlp_step, Argument((8, 32)), Argument((32, 8)), Argument((16, 8), (X,)), Argument((16, 8), (X,)), mesh=LINE
    ),
    "perceptron, weights gathered": program(
        mlp_step,
        Argument((8, 32), (X, Z)),
        Argument((32, 8), (Z, X)),
        Argument((16, 8), ((X, Y),)),
        Argument((16, 8), ((X, Y),)),
        mesh=CUBE,
    ),
    "adam": program(
        adam_step, *(Argument((8, 16), (None, M)) for _ in range(3)), Argument((16, 8), (D,)), ints((16,), D)
    ),
    "transformer": program(transformer_step, Argument((16, 8), (M,)), *_WEIGHTS, _TOKENS, _TOKENS),
    "transformer, three axes": program(
        transformer_step,
        Argument((16, 8), (Z, Y)),
        Argument((3, 8, 4, 4), (None, Y, Z)),
        Argument((4, 4, 8), (Z, None, Y)),
        Argument((8, 32), (Y, Z)),
        Argument((32, 8), (Z, Y)),
        ints((8, 6), (X, Y)),
        ints((8, 6), (X, Y)),
        mesh=CUBE,
    ),
    "transformer block, sequence split": program(sequence_parallel_block, Argument((8, 6, 8), (D, M)), *_WEIGHTS),
    "transformer layers in a loop": program(scanned_layers, Argument((8, 6, 8), (D,)), *_STACKED),
    "mixture of experts": program(
        mixture_of_experts, Argument((16, 32), (D,)), Argument((32, 8), (None, M)), Argument((8, 32, 16), (M,))
    ),
    "experts with a capacity": program(dispatched_experts, Argument((16, 8), (D,)), *_EXPERTS),
    "experts with a capacity, gradient": program(experts_step, Argument((16, 8), (D,)), *_EXPERTS),
    "images": program(
        cnn_step,
        Argument((3, 3, 3, 4), (None, None, None, M)),
        Argument((3, 3, 4, 4), (None, None, None, M)),
        Argument((4, 10)),
        Argument((8, 8, 8, 3), (D,)),
        ints((8,), D),
    ),
    "images, height split": program(
        cnn_step,
        Argument((3, 3, 3, 4)),
        Argument((3, 3, 4, 4)),
        Argument((4, 10)),
        Argument((8, 8, 8, 3), (D, M)),
        ints((8,), D),
    ),
    "recurrent network": program(
        recurrent_step,
        Argument((8, 8), (None, M)),
        Argument((8, 8), (None, M)),
        Argument((5, 16, 8), (None, D)),
        Argument((16, 8), (D,)),
    ),
    "accumulated gradient": program(
        accumulated_gradient, Argument((8, 8), (None, M)), Argument((32, 8), (D,)), Argument((32, 8), (D, M))
    ),
    "low-rank update": program(
        low_rank_step,
        Argument((8, 16), (None, M)),
        Argument((8, 2)),
        Argument((2, 16), (None, M)),
        Argument((16, 8), (D,)),
    ),
    "bfloat16": program(narrow_step, Argument((8, 16), (None, M)), Argument((16, 8), (D,)), tolerance=1e-2),
    "embedding": program(jax.grad(embedding_loss), Argument((256, 64), (M,)), ints((16, 32), D), tolerance=1e-4),
    "pairs of images and texts": program(
        jax.grad(contrastive_loss, (0, 1)), Argument((16, 8), (D, M)), Argument((16, 8), (D, M))
    ),
    "clipped gradient": program(clipped_gradient, Argument((8, 16), (D, M)), Argument((32, 8), (D,))),
}
