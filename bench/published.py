"""Predicted step times and memory of published training runs, compared with what the publications report.

    python bench/published.py [--only TEXT]

Each run is a Llama-like model with the layout, batch and rematerialization that its source names. The program is
traced as a scan over layers and partitioned for the published mesh; attention is an annotated operator with the cost of
a flash attention kernel. Ratios are predicted / published step time.
"""

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name, checkpoint_policies
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from rich.console import Console
from rich.progress import track
from rich.table import Table

import sdy
from sdy.formatting import format_bytes
from sdy.ir.shapes import shape_of
from sdy.passes.auto.truth import LayoutOfModule, truth_of
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import StepCost

_LOWEST, _HIGHEST = 0.85, 1.15
"""The range of a good ratio."""

_HERE = Path(__file__).parent
_BF16, _F32 = jnp.bfloat16, jnp.float32
Policy = Callable[..., Any] | None


@dataclass(frozen=True)
class Model:
    """The sizes of a Llama-like model."""

    layers: int
    embedding: int
    heads: int
    key_heads: int
    head_size: int
    hidden: int
    vocabulary: int

    @property
    def parameters(self) -> int:
        """The number of parameters in products."""
        attention = 2 * self.embedding * (self.heads + self.key_heads) * self.head_size
        layer = attention + 3 * self.embedding * self.hidden
        return self.layers * layer + self.vocabulary * self.embedding

    def operations(self, sequence: int, causal: float) -> float:
        """Return the model's operations per token of a step; `causal` is the part of attention that counts."""
        return 6 * self.parameters + causal * 12 * self.layers * self.heads * self.head_size * sequence


@dataclass(frozen=True)
class Run:
    """A published training run."""

    name: str
    source: str
    model: Model
    hardware: str
    mesh: dict[str, int]
    batch: int
    """Sequences of all devices in a step."""
    sequence: int
    saved: str
    """The activations that the backward pass does not recompute: an entry of `_POLICIES`."""
    tokens: float = 0.0
    """Published tokens a second and device."""
    tflops: float = 0.0
    """Published TFLOP/s of the model and device, if not `tokens`."""
    causal: float = 1.0
    """The part of attention that counts in `tflops`: a half where the source leaves out what the mask removes."""
    tensor: str = ""
    """The dimension of a layer's input that tensor parallelism splits over "tp": "sequence" or "embedding"."""
    one_hot: bool = True
    """True if the loss multiplies logits by one-hot labels, which stay in a fusion; False if it reads their logits."""
    memory: float = 0.0
    """The published peak memory of a device in GiB; 0 if only its capacity is known."""
    is_fitted: bool = False
    """True if its hardware file is fitted on the run."""

    @property
    def seconds(self) -> float:
        """The published step time."""
        per_device = self.batch * self.sequence / math.prod(self.mesh.values())
        if self.tokens:
            return per_device / self.tokens
        return per_device * self.model.operations(self.sequence, self.causal) / (self.tflops * 1e12)


def _offloaded(*names: str) -> Policy:
    """Return the policy that moves the activations of these names to the host, and saves no others."""
    return checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=names,
        offload_src="device",
        offload_dst="pinned_host",
    )


_NAMED = checkpoint_policies.save_only_these_names
_POLICIES: dict[str, Policy] = {
    "nothing": None,
    "products": checkpoint_policies.dots_with_no_batch_dims_saveable,
    "products and attention": _NAMED("query", "key", "value", "attention", "out", "gate", "up", "down"),
    "every second product": _NAMED("query", "value", "attention", "gate", "down"),
    "products but those of the first half of the MLP": _NAMED("query", "key", "value", "out", "down"),
    "projections on the host": _offloaded("query", "key", "value"),
    "inputs and projections on the host": _offloaded("input", "query", "key", "value"),
    "inputs, projections and out on the host": _offloaded("input", "query", "key", "value", "out"),
}

_LLAMA_8B = Model(32, 4096, 32, 8, 128, 14336, 128256)
_LLAMA_70B = Model(80, 8192, 64, 8, 128, 28672, 128256)
_LLAMA2_7B = Model(32, 4096, 32, 32, 128, 11008, 32000)
_LLAMA2_70B = Model(80, 8192, 64, 8, 128, 28672, 32000)
_SCALE_16 = Model(32, 4096, 64, 64, 128, 28672, 32000)
_SCALE_32 = Model(32, 8192, 64, 64, 128, 28672, 32000)
_SCALE_64 = Model(64, 8192, 64, 64, 128, 28672, 32000)

_TITAN = "https://github.com/pytorch/torchtitan/blob/b5bcd76/benchmarks/llama3_h100_202412_torchtitan.md"
_TITAN_TP = "https://github.com/pytorch/torchtitan/blob/b5bcd76/benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md"
_MAXTEXT = "https://github.com/AI-Hypercomputer/maxtext/blob/bdc4d8d/README.md"
_MAXTEXT_V5E = "https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/tpu/v5e/README.md"
_A3 = "https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/gpu/a3/llama_2_7b/README.md"
_TIERS = "https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/docs/reference/models/tiering.md"
_500_WATTS = str(_HERE / "published_h100_500w.toml")

_ATTENTION = {"h100": 480e12, _500_WATTS: 330e12, "tpu-v5e": 98e12, "tpu-v5p": 230e12, "tpu-v6e": 460e12}
"""Operations a second of causal flash attention, forward and backward: FlashAttention-2 in PyTorch and cuDNN's in
MaxText, by the figures of Shah et al., "FlashAttention-3" (2024); half of the peak on TPUs, which is an assumption."""

_POD = {"fsdp": 256}
RUNS: Sequence[Run] = (
    Run("torchtitan 8B, 8 H100", _TITAN, _LLAMA_8B, _500_WATTS, {"fsdp": 8}, 16, 8192, "every second product",
        tokens=6667, memory=77.0, one_hot=False, is_fitted=True),
    Run("torchtitan 8B, 128 H100", _TITAN, _LLAMA_8B, _500_WATTS, {"fsdp": 128}, 256, 8192, "every second product",
        tokens=6514, memory=62.0, one_hot=False),
    Run("torchtitan 8B, 64 H100, TP 8", _TITAN_TP, _LLAMA_8B, _500_WATTS, {"fsdp": 8, "tp": 8}, 96, 8192,
        "every second product", tokens=4378, one_hot=False, tensor="sequence"),
    Run("torchtitan 70B, 256 H100, TP 8", _TITAN_TP, _LLAMA_70B, _500_WATTS, {"fsdp": 32, "tp": 8}, 512, 8192,
        "nothing", tokens=597.3, one_hot=False, tensor="sequence"),
    Run("MaxText 7B, 8 H100", _A3, _LLAMA2_7B, "h100", {"fsdp": 8}, 4 * 8, 4096, "products and attention", tflops=492,
        is_fitted=True),
    Run("MaxText 16B, 256 v5e", _MAXTEXT, _SCALE_16, "tpu-v5e", _POD, 6 * 256, 2048, "nothing", tflops=120,
        is_fitted=True),
    Run("MaxText 32B, 256 v5e", _MAXTEXT, _SCALE_32, "tpu-v5e", _POD, 4 * 256, 2048, "nothing", tflops=132),
    Run("MaxText 64B, 256 v5e", _MAXTEXT, _SCALE_64, "tpu-v5e", _POD, 2 * 256, 2048, "nothing", tflops=118),
    Run("MaxText 70B, 256 v5e", _MAXTEXT_V5E, _LLAMA2_70B, "tpu-v5e", _POD, 2 * 256, 4096,
        "projections on the host", tflops=0.57 * 197),
    Run("MaxText 32B, 64 v5p, TP 4", _MAXTEXT, _SCALE_32, "tpu-v5p", {"fsdp": 16, "tp": 4}, 6 * 64, 2048, "products",
        tflops=328, tensor="embedding", is_fitted=True),
    Run("MaxText 64B, 64 v5p, TP 4", _MAXTEXT, _SCALE_64, "tpu-v5p", {"fsdp": 16, "tp": 4}, 3 * 64, 2048, "products",
        tflops=323, tensor="embedding"),
    Run("MaxText 70B, 512 v5p", _TIERS, _LLAMA2_70B, "tpu-v5p", {"fsdp": 512}, 4 * 512, 4096,
        "products but those of the first half of the MLP", tokens=692),
    Run("MaxText 8B, 256 v6e", _TIERS, _LLAMA_8B, "tpu-v6e", _POD, 4 * 256, 8192,
        "inputs, projections and out on the host", tokens=7207, is_fitted=True),
    Run("MaxText 70B (Llama 3.1), 256 v6e", _TIERS, _LLAMA_70B, "tpu-v6e", _POD, 5 * 256, 8192,
        "inputs and projections on the host", tokens=960),
    Run("MaxText 70B (Llama 2), 256 v6e", _TIERS, _LLAMA2_70B, "tpu-v6e", _POD, 3 * 256, 4096,
        "projections on the host", tokens=900),
)  # fmt: skip


def attention_work(shapes: Sequence[Sequence[int]]) -> sdy.Work:
    """Return the work of causal flash attention: half of two products of queries with keys or values.

    The kernel does not keep the scores, so that it reads and writes queries, keys, values and results alone. A gradient
    counts three times the forward pass, less than the 3.5 of a kernel that computes the scores again.
    """
    batch, sequence, heads, size = shapes[0]
    return sdy.Work(2.0 * batch * heads * sequence * sequence * size, "attention")


@sdy.register_op("b s^ h d^, b t^ h d^, b t^ h d^ -> b s^ h d^", check=False, cost=attention_work)
def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Stand for flash attention in programs that only cost models read; its gradient needs its result, too."""
    return jnp.tanh(query * key + value)


def _rotated(x: jax.Array) -> jax.Array:
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    cos, sin = (part(angle)[None, :, None].astype(x.dtype) for part in (jnp.cos, jnp.sin))
    left, right = x[..., :half], x[..., half:]
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1)


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    mean = jnp.mean(jnp.square(x.astype(_F32)), -1, keepdims=True)
    return x * jax.lax.rsqrt(mean + 1e-5).astype(x.dtype) * scale


def _layer(x: jax.Array, weights: Any, run: Run) -> jax.Array:
    model, w = run.model, jax.tree.map(lambda array: array.astype(_BF16), weights)
    x = checkpoint_name(_split(x, run, run.tensor), "input")
    batch, sequence, _ = x.shape
    y = _norm(x, w["norm"])

    def columns(name: str) -> jax.Array:
        return checkpoint_name(_split(y @ w[name], run, "embedding"), name)

    def rows(value: jax.Array, name: str) -> jax.Array:
        return checkpoint_name(_split(value @ w[name], run, run.tensor), name)

    query, key, value = (
        columns(name).reshape(batch, sequence, -1, model.head_size) for name in ("query", "key", "value")
    )
    key, value = (jnp.repeat(each, model.heads // model.key_heads, 2) for each in (_rotated(key), value))
    attended = checkpoint_name(attention(_rotated(query), key, value), "attention")
    x = x + rows(attended.reshape(batch, sequence, -1), "out")
    y = _norm(x, w["norm"])
    return x + rows(jax.nn.silu(columns("gate")) * columns("up"), "down")


def _split(x: jax.Array, run: Run, dim: str) -> jax.Array:
    """Constrain activations: the batch over "fsdp", and a dimension over "tp", if that is an axis of the run's mesh."""
    tensor = ("tp" if run.tensor and name == dim else None for name in ("sequence", "embedding"))
    mesh = AbstractMesh(tuple(run.mesh.values()), tuple(run.mesh))
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec("fsdp", *tensor)))


def program(run: Run) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the training step of a run with AdamW, and the shapes of its arguments."""
    model, policy = run.model, _POLICIES[run.saved]
    layer = jax.checkpoint(partial(_layer, run=run), policy=policy)

    def loss(params: Any, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = params["embedding"].astype(_BF16)[tokens]
        x, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), x, params["layers"])
        logits = (_norm(x, params["norm"].astype(_BF16)) @ params["head"].astype(_BF16)).astype(_F32)
        if run.one_hot:
            chosen = jnp.sum(logits * jax.nn.one_hot(labels, model.vocabulary), -1)
        else:
            chosen = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - chosen)

    def step(params: Any, mean: Any, square: Any, tokens: jax.Array, labels: jax.Array) -> Any:
        gradients = jax.grad(loss)(params, tokens, labels)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
        square = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, square, gradients)
        updated = jax.tree.map(lambda p, m, v: p - 1e-3 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * p), params, mean, square)
        return updated, mean, square

    wide, keys = model.heads * model.head_size, model.key_heads * model.head_size
    size, hidden = model.embedding, model.hidden
    shapes = {"query": (size, wide), "key": (size, keys), "value": (size, keys), "out": (wide, size), "norm": (size,)}
    shapes |= {"gate": (size, hidden), "up": (size, hidden), "down": (hidden, size)}
    layers = {name: jax.ShapeDtypeStruct((model.layers, *shape), _F32) for name, shape in shapes.items()}
    params = {
        "layers": layers,
        "embedding": jax.ShapeDtypeStruct((model.vocabulary, size), _F32),
        "head": jax.ShapeDtypeStruct((size, model.vocabulary), _F32),
        "norm": jax.ShapeDtypeStruct((size,), _F32),
    }
    tokens = jax.ShapeDtypeStruct((run.batch, run.sequence), jnp.int32)
    return step, (params, params, params, tokens, tokens)


def _sharding(name: str, rank: int, run: Run) -> sdy.Sharding:
    """Return the published sharding of an argument: data and parameters over "fsdp", products over the tensor axis."""
    tensor = "tp" if run.tensor else None
    keys = re.findall(r"\['(\w+)'\]", name)
    if not keys:
        return sdy.Sharding.of("fsdp", None)
    key = keys[-1]
    columns, rows = {"query", "key", "value", "gate", "up", "head"}, {"out", "down", "embedding"}
    matrix = ["fsdp", tensor] if key in columns else [tensor, "fsdp"] if key in rows else ["fsdp"]
    return sdy.Sharding.of(*[None] * (rank - len(matrix)), *matrix)


def cost(run: Run) -> StepCost:
    """Predict the cost of a step of a run in its published layout."""
    function, arguments = program(run)
    traced = jax.jit(function, donate_argnums=(0, 1, 2)).trace(*arguments)
    module = sdy.from_jax(traced.lower(lowering_platforms=("tpu",)))
    main = main_function(module)
    names = zip(argument_names(main), main.args, strict=True)
    layout = {index: _sharding(name, len(shape_of(value)), run) for index, (name, value) in enumerate(names)}
    hardware = hardware_of(run.hardware)
    rates = {**hardware.peak, "attention": _ATTENTION[run.hardware] / hardware.product_fraction}
    return truth_of(module, LayoutOfModule(layout), "mesh", replace(hardware, peak=rates)).cost


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare predicted step times with those of published training runs.")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs whose name contains TEXT")
    runs = [run for run in RUNS if parser.parse_args().only in run.name]
    table = Table(title="seconds of a step, and memory of a device", title_justify="left")
    for heading in ("run", "published", "predicted", "compute", "exposed", "ratio", "memory", "of"):
        table.add_column(heading, justify="left" if heading == "run" else "right")
    within = fitting = 0
    for run in track(runs, "predicting", console=Console(stderr=True), transient=True):
        predicted, capacity = cost(run), hardware_of(run.hardware).memory
        ratio = predicted.seconds / run.seconds
        within += _LOWEST <= ratio <= _HIGHEST
        fitting += predicted.memory <= capacity
        seconds = (run.seconds, predicted.seconds, predicted.compute, predicted.seconds - predicted.compute, ratio)
        available = f"{run.memory} GiB published" if run.memory else format_bytes(capacity)
        name = f"{run.name} (fitted)" if run.is_fitted else run.name
        table.add_row(name, *(f"{each:.2f}" for each in seconds), format_bytes(predicted.memory), available)
    Console(width=140).print(table)
    print(f"{within} of {len(runs)} from {_LOWEST} to {_HIGHEST}; {fitting} of {len(runs)} fit into memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
