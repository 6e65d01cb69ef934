"""Flax Linen models."""

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import cross_entropy, train_step, train_step_with_statistics
from placed import (
    GRID,
    LINE,
    Build,
    Placed,
    Rule,
    by_name,
    filled,
    fully_sharded,
    integers,
    normal,
    placed,
)

_WIDTH, _HEADS, _VOCABULARY = 64, 4, 256
_BATCH, _LENGTH = 16, 32
_KEY = jax.random.key(0)


class FeedForward(nn.Module):
    """An MLP with a hidden width of four times the width."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(_WIDTH, name="down")(nn.gelu(nn.Dense(4 * _WIDTH, name="up")(x)))


class EncoderLayer(nn.Module):
    """A post-norm transformer encoder layer."""

    dropout: float = 0.0

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        drop = nn.Dropout(self.dropout, deterministic=self.dropout == 0)
        attended = nn.MultiHeadDotProductAttention(_HEADS, name="attention")(x, mask=mask)
        x = nn.LayerNorm()(x + drop(attended))
        return nn.LayerNorm()(x + drop(FeedForward()(x)))


class Bert(nn.Module):
    """BERT: embeddings of tokens, positions and segments, trained to predict masked tokens."""

    dropout: float = 0.0

    @nn.compact
    def __call__(self, tokens: jax.Array, segments: jax.Array, is_token: jax.Array) -> jax.Array:
        embed = nn.Embed(_VOCABULARY, _WIDTH, name="tokens")
        positions = self.param("positions", nn.initializers.normal(0.02), (_LENGTH, _WIDTH))
        x = nn.LayerNorm()(embed(tokens) + positions + nn.Embed(2, _WIDTH, name="segments")(segments))
        for _ in range(2):
            x = EncoderLayer(self.dropout)(x, nn.make_attention_mask(is_token, is_token))
        return embed.attend(nn.LayerNorm()(nn.gelu(nn.Dense(_WIDTH, name="transform")(x))))


class T5(nn.Module):
    """An encoder-decoder transformer with learned relative position biases, as T5."""

    @nn.compact
    def __call__(self, source: jax.Array, target: jax.Array) -> jax.Array:
        embed = nn.Embed(_VOCABULARY, _WIDTH, name="embed")
        encoded = embed(source)
        encoded = encoded + self.attention("encoder", encoded, encoded, causal=False)
        encoded = encoded + FeedForward()(nn.RMSNorm()(encoded))
        x = embed(target)
        x = x + self.attention("decoder", x, x, causal=True)
        x = x + nn.MultiHeadDotProductAttention(_HEADS, use_bias=False, name="cross")(nn.RMSNorm()(x), encoded)
        x = x + FeedForward()(nn.RMSNorm()(x))
        return nn.Dense(_VOCABULARY, use_bias=False, name="head")(x)

    def attention(self, name: str, x: jax.Array, y: jax.Array, causal: bool) -> jax.Array:
        table = self.param(f"{name}_bias", nn.initializers.normal(0.1), (32, _HEADS))
        distance = jnp.arange(y.shape[1])[None] - jnp.arange(x.shape[1])[:, None]
        bias = jnp.moveaxis(table[jnp.clip(distance + 16, 0, 31)], -1, 0)
        bias = jnp.where(distance > 0, -1e9, bias) if causal else bias
        project = [nn.DenseGeneral((_HEADS, _WIDTH // _HEADS), use_bias=False, name=f"{name}_{n}") for n in "qkv"]
        q, k, v = (dense(nn.RMSNorm()(z)) for dense, z in zip(project, (x, y, y), strict=True))
        attended = jax.nn.dot_product_attention(q, k, v, bias=bias[None])
        return nn.DenseGeneral(_WIDTH, (-2, -1), use_bias=False, name=f"{name}_out")(attended)


class ResNet(nn.Module):
    """Convolutional residual blocks with batch norm."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        def norm() -> nn.BatchNorm:
            return nn.BatchNorm(use_running_average=False, momentum=0.9)

        x = nn.relu(norm()(nn.Conv(64, (3, 3), use_bias=False)(images)))
        for width, stride in ((64, 1), (128, 2)):
            y = nn.relu(norm()(nn.Conv(width, (3, 3), (stride, stride), use_bias=False)(x)))
            y = norm()(nn.Conv(width, (3, 3), use_bias=False)(y))
            x = x if stride == 1 else norm()(nn.Conv(width, (1, 1), (stride, stride), use_bias=False)(x))
            x = nn.relu(x + y)
        return nn.Dense(10)(x.mean((1, 2)))


class UNet(nn.Module):
    """A U-Net with skip connections and a time embedding, as in diffusion models."""

    @nn.compact
    def __call__(self, images: jax.Array, time: jax.Array) -> jax.Array:
        angles = time[:, None] * 1000 ** (-jnp.arange(16) / 16)
        time = nn.Dense(64)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))
        first = self.block(images, 64, time)
        second = self.block(nn.max_pool(first, (2, 2), (2, 2)), 128, time)
        x = nn.ConvTranspose(64, (2, 2), (2, 2))(second)
        x = self.block(jnp.concatenate([first, x], -1), 64, time)
        return nn.Conv(images.shape[-1], (1, 1))(x)

    def block(self, x: jax.Array, width: int, time: jax.Array) -> jax.Array:
        x = nn.swish(nn.GroupNorm(8)(nn.Conv(width, (3, 3))(x)))
        return x + nn.Dense(width)(nn.swish(time))[:, None, None]


class Autoencoder(nn.Module):
    """A variational autoencoder with a sampled latent."""

    @nn.compact
    def __call__(self, x: jax.Array, noise: jax.Array) -> Any:
        mean, log_variance = jnp.split(nn.Dense(2 * 64)(nn.relu(nn.Dense(256)(x))), 2, -1)
        z = mean + jnp.exp(0.5 * log_variance) * noise
        return nn.Dense(x.shape[-1])(nn.relu(nn.Dense(256)(z))), mean, log_variance


class Network(nn.Module):
    """An MLP with these widths."""

    widths: tuple[int, ...]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width in self.widths[:-1]:
            x = nn.leaky_relu(nn.Dense(width)(x), 0.2)
        return nn.Dense(self.widths[-1])(x)


class Mixer(nn.Module):
    """An MLP-Mixer: MLPs across patches and across channels."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = nn.Conv(_WIDTH, (4, 4), (4, 4))(images).reshape(len(images), -1, _WIDTH)
        for _ in range(2):
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            x = x + nn.Dense(x.shape[1])(nn.gelu(nn.Dense(64)(y))).swapaxes(1, 2)
            x = x + FeedForward()(nn.LayerNorm()(x))
        return nn.Dense(10)(x.mean(1))


class CarriedLayer(nn.Module):
    """An encoder layer with the signature of a scan body."""

    @nn.compact
    def __call__(self, x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return EncoderLayer()(x), None


class ScannedEncoder(nn.Module):
    """A transformer with scanned, rematerialized layers."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        embed = nn.Embed(_VOCABULARY, _WIDTH, name="tokens")
        layers = nn.scan(
            nn.remat(CarriedLayer, prevent_cse=False),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=4,
        )
        x, _ = layers(name="layers")(embed(tokens), None)
        return embed.attend(x)


class Generator(nn.Module):
    """Autoregressive decoding with a key-value cache."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        embed = nn.Embed(_VOCABULARY, _WIDTH, name="embed")
        x = embed(tokens)
        for _ in range(2):
            x = x + nn.MultiHeadDotProductAttention(_HEADS, decode=True)(nn.LayerNorm()(x))
            x = x + FeedForward()(nn.LayerNorm()(x))
        return embed.attend(x)


class Forecaster(nn.Module):
    """An LSTM on a GRU over a sequence."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(x.shape[-1])(nn.RNN(nn.OptimizedLSTMCell(_WIDTH))(nn.RNN(nn.GRUCell(_WIDTH))(x)))


def _initial(model: nn.Module, *inputs: Any) -> Any:
    return filled(jax.eval_shape(model.init, _KEY, *inputs))


def _trained(
    model: nn.Module,
    inputs: tuple[Any, ...],
    loss: Callable[..., jax.Array],
    rule: Rule | P,
    batch: P,
    mesh: Mapping[str, int] = LINE,
    optimizer: Any = None,
) -> Placed:
    """Return a train step for a `loss` of the model's outputs and its `inputs`."""
    params, optimizer = _initial(model, *inputs), optimizer or optax.adamw(1e-3)
    step = train_step(optimizer, lambda params, *inputs: loss(model.apply(params, *inputs), *inputs))
    return placed(
        step, (params, rule), (optimizer.init(params), rule), *((array, batch) for array in inputs), mesh=mesh
    )


def _language(model: nn.Module, rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    return lambda: _trained(model, (_tokens(),), cross_entropy, rule, batch, mesh)


def _tokens(seed: int = 0) -> Any:
    return integers(_BATCH, _LENGTH, below=_VOCABULARY, seed=seed)


def _images() -> Any:
    return normal(_BATCH, 16, 16, 3)


def _bert(rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    def build() -> Placed:
        inputs = (_tokens(), integers(_BATCH, _LENGTH, below=2), integers(_BATCH, _LENGTH, below=8) > 0)

        def masked(logits: jax.Array, tokens: jax.Array, segments: jax.Array, is_token: jax.Array) -> jax.Array:
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, tokens)
            return jnp.sum(losses * is_token) / jnp.sum(is_token)

        return _trained(Bert(), inputs, masked, rule, batch, mesh)

    return build


def bert_with_dropout() -> Placed:
    """BERT with dropout: a train step on Flax's TrainState, with the random key as argument."""
    model = Bert(0.1)
    inputs = (_tokens(), integers(_BATCH, _LENGTH, below=2), integers(_BATCH, _LENGTH, below=8) > 0)
    params = filled(jax.eval_shape(model.init, {"params": _KEY, "dropout": _KEY}, *inputs))
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(1e-3))

    def step(state: TrainState, key: jax.Array, *inputs: Any) -> Any:
        def loss(params: Any) -> jax.Array:
            drop = jax.random.fold_in(key, state.step)
            return cross_entropy(state.apply_fn(params, *inputs, rngs={"dropout": drop}), inputs[0])

        value, gradients = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradients), value

    return placed(step, (state, fully_sharded()), (_KEY, P()), *((array, P("x")) for array in inputs))


def _t5(rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    def loss(logits: jax.Array, source: jax.Array, target: jax.Array) -> jax.Array:
        return cross_entropy(logits[:, :-1], target[:, 1:])

    return lambda: _trained(T5(), (_tokens(), _tokens(1)), loss, rule, batch, mesh, optax.adafactor(1e-3))


def _resnet(rule: Rule | P, split: P, mesh: Mapping[str, int] = LINE) -> Build:
    def build() -> Placed:
        model, images, labels = ResNet(), _images(), integers(_BATCH, below=10)
        initial = _initial(model, images)
        optimizer = optax.sgd(0.1, momentum=0.9)

        def loss(params: Any, statistics: Any, images: jax.Array, labels: jax.Array) -> Any:
            variables = {"params": params, "batch_stats": statistics}
            logits, changed = model.apply(variables, images, mutable=["batch_stats"])
            return cross_entropy(logits, labels), changed["batch_stats"]

        kept = (initial["params"], initial["batch_stats"], optimizer.init(initial["params"]))
        step = train_step_with_statistics(optimizer, loss)
        return placed(step, *((tree, rule) for tree in kept), (images, split), (labels, P(split[0])), mesh=mesh)

    return build


def _diffusion(rule: Rule | P, batch: P, mesh: Mapping[str, int] = LINE) -> Build:
    """A diffusion model that predicts the added noise."""

    def build() -> Placed:
        model, images = UNet(), _images()
        time = np.linspace(0.1, 0.9, _BATCH, dtype=np.float32)

        def loss(params: Any, images: jax.Array, time: jax.Array, noise: jax.Array) -> jax.Array:
            kept = jnp.cos(0.5 * jnp.pi * time)[:, None, None, None]
            noisy = kept * images + jnp.sqrt(1 - kept**2) * noise
            return jnp.mean(jnp.square(model.apply(params, noisy, time) - noise))

        params, optimizer = _initial(model, images, time), optax.adam(1e-3)
        batches = ((images, batch), (time, P(batch[0])), (normal(*images.shape, seed=1), batch))
        return placed(train_step(optimizer, loss), (params, rule), (optimizer.init(params), rule), *batches, mesh=mesh)

    return build


def variational_autoencoder() -> Placed:
    def loss(outputs: Any, x: jax.Array, noise: jax.Array) -> jax.Array:
        seen, mean, log_variance = outputs
        divergence = -0.5 * jnp.mean(1 + log_variance - mean**2 - jnp.exp(log_variance))
        return jnp.mean(optax.sigmoid_binary_cross_entropy(seen, jax.nn.sigmoid(x))) + divergence

    return _trained(Autoencoder(), (normal(64, 784), normal(64, 64, seed=1)), loss, fully_sharded(), P("x"))


def adversarial_step() -> Placed:
    """A GAN step that updates generator and discriminator."""
    makes, judges = Network((256, 256, 784)), Network((256, 256, 1))
    optimizer = optax.adam(2e-4, b1=0.5)
    noise, real = normal(64, 64), normal(64, 784, seed=1)
    maker, judge = _initial(makes, noise), _initial(judges, real)

    def step(maker: Any, judge: Any, maker_state: Any, judge_state: Any, noise: jax.Array, real: jax.Array) -> Any:
        def judge_loss(judge: Any) -> jax.Array:
            made = judges.apply(judge, makes.apply(maker, noise))
            return jnp.mean(jax.nn.softplus(made) + jax.nn.softplus(-judges.apply(judge, real)))

        def maker_loss(maker: Any) -> jax.Array:
            return jnp.mean(jax.nn.softplus(-judges.apply(judge, makes.apply(maker, noise))))

        updates, judge_state = optimizer.update(jax.grad(judge_loss)(judge), judge_state)
        judge = optax.apply_updates(judge, updates)
        updates, maker_state = optimizer.update(jax.grad(maker_loss)(maker), maker_state)
        return optax.apply_updates(maker, updates), judge, maker_state, judge_state

    kept = (maker, judge, optimizer.init(maker), optimizer.init(judge))
    return placed(step, *((tree, fully_sharded()) for tree in kept), (noise, P("x")), (real, P("x")))


def mixer() -> Placed:
    model, images, labels = Mixer(), _images(), integers(_BATCH, below=10)
    params, optimizer = _initial(model, images), optax.lion(1e-4)
    step = train_step(optimizer, lambda params, x, labels: cross_entropy(model.apply(params, x), labels))
    kept = ((params, fully_sharded()), (optimizer.init(params), fully_sharded()))
    return placed(step, *kept, (images, P("x")), (labels, P("x")))


def generated_token() -> Placed:
    """A decoding step with a cache sharded along batch and heads."""
    model = Generator()
    variables = _initial(model, jnp.zeros((_BATCH, _LENGTH), jnp.int32))

    def step(params: Any, cache: Any, tokens: jax.Array) -> Any:
        logits, changed = model.apply({"params": params, "cache": cache}, tokens, mutable=["cache"])
        return jnp.argmax(logits[:, -1:], -1), changed["cache"]

    cache = by_name({"cached": P("data", None, "model")})
    arguments = ((variables["params"], _MEGATRON), (variables["cache"], cache), (_tokens()[:, :1], P("data")))
    return placed(step, *arguments, mesh=GRID)


def forecaster() -> Placed:
    def loss(predicted: jax.Array, series: jax.Array) -> jax.Array:
        return jnp.mean(jnp.abs(predicted[:, :-1] - series[:, 1:]))

    return _trained(Forecaster(), (normal(64, 12, 16),), loss, fully_sharded(), P("x"))


_MEGATRON = by_name(
    {
        "tokens/embedding|embed/embedding": P("model"),
        "(query|key|value|_[qkv])/kernel": P(None, "model"),
        "(query|key|value)/bias": P("model"),
        "out/kernel": P("model"),
        "head/kernel": P(None, "model"),
        "up/kernel": P(None, "model"),
        "up/bias": P("model"),
        "down/kernel": P("model"),
    }
)

PROGRAMS: dict[str, Build] = {
    "BERT, fully sharded": _bert(fully_sharded(), P("x")),
    "BERT, tensor parallel": _bert(_MEGATRON, P("data"), GRID),
    "BERT, data parallel, optimizer sharded": _bert(by_name({r"\bmu\b|\bnu\b": fully_sharded()}), P("x")),
    "BERT with dropout and a train state, fully sharded": bert_with_dropout,
    "T5 with adafactor, fully sharded": _t5(fully_sharded(), P("x")),
    "T5 with adafactor, tensor parallel": _t5(_MEGATRON, P("data"), GRID),
    "encoder layers in a loop, computed again, fully sharded": _language(ScannedEncoder(), fully_sharded(), P("x")),
    "ResNet, data parallel": _resnet(P(), P("x")),
    "ResNet, fully sharded": _resnet(fully_sharded(), P("x")),
    "ResNet, images split by height": _resnet(P(), P("data", "model"), GRID),
    "diffusion by a U-Net, fully sharded": _diffusion(fully_sharded(), P("x")),
    "diffusion by a U-Net, images split by height": _diffusion(P(), P("data", "model"), GRID),
    "variational autoencoder, fully sharded": variational_autoencoder,
    "adversarial networks, fully sharded": adversarial_step,
    "MLP mixer with lion, fully sharded": mixer,
    "decoding with a cache, tensor parallel": generated_token,
    "recurrent forecaster, fully sharded": forecaster,
}
