"""Predicted step time and memory of programs on one device, beside the measured time and the compiled memory.

    python bench/one_gpu.py [--hardware FILE ...] [--small] [--only TEXT ...]

Each program runs under `jax.jit` on the first of jax's devices, an accelerator or a CPU, with its state donated; the
time is the minimum of several turns. Times are predicted for each hardware, by default the preset of the device. Ratios
are predicted / measured and predicted / compiled. `--small` is for CPUs.
"""

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import tree_flatten, tree_unflatten
from xdsl.rewriter import InsertPoint

import sdy
from auto_model_programs import ONE_DEVICE_MODELS, SMALL_MODELS, Program
from sdy.dialect.ops import MeshOp
from sdy.formatting import format_bytes
from sdy.ir.editing import insert
from sdy.passes.auto.truth import LayoutOfModule, truth_of
from sdy.passes.jax.device_hardware import PRESETS
from sdy.passes.jax.memory_limit import peak_bytes_of
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepCost

_MESH = "mesh"
_TURNS, _SECONDS_A_TURN, _MOST_CALLS = 4, 0.1, 100
_INTEGERS = 1000
"""The number of different random integers in arguments: tokens, labels, nodes of a graph."""


@dataclass(frozen=True)
class Step:
    """A function, the shapes and types of its arguments, and the arguments whose next values are its first results."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    state: Sequence[int] = ()


def _array(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _attention(implementation: str, length: int) -> Step:
    """The gradients of causal attention."""

    def loss(*operands: jax.Array) -> jax.Array:
        attend: Callable[..., jax.Array] = jax.nn.dot_product_attention
        return jnp.sum(attend(*operands, is_causal=True, implementation=implementation).astype(jnp.float32))

    return Step(jax.grad(loss, (0, 1, 2)), [_array(4, length, 16, 128, dtype="bfloat16")] * 3)


def _chain(x: jax.Array) -> jax.Array:
    for _ in range(4):
        x = jnp.tanh(x) * 1.5 + x * x
    return x


def _adam(params: jax.Array, first: jax.Array, second: jax.Array, gradient: jax.Array) -> tuple[jax.Array, ...]:
    first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient * gradient
    return params - 1e-3 * first * lax.rsqrt(second + 1e-8), first, second


def _positive_cholesky(x: jax.Array) -> jax.Array:
    return jnp.linalg.cholesky(x @ x.T + len(x) * jnp.eye(len(x)))


def _forward(layers: int, width: int, rows: int) -> Step:
    """Gated MLPs."""

    def forward(params: Any, x: jax.Array) -> jax.Array:
        for gate, up, down in params:
            x = x + (jax.nn.silu(x @ gate) * (x @ up)) @ down
        return x

    wide, narrow = _array(width, 4 * width, dtype="bfloat16"), _array(4 * width, width, dtype="bfloat16")
    return Step(forward, ([(wide, wide, narrow)] * layers, _array(rows, width, dtype="bfloat16")))


def _kernels(size: int, platform: str) -> Mapping[str, Step]:
    """Return programs of one kind of operation on about `size` squared elements."""
    kernels = {
        "matrix product, bf16": Step(jnp.matmul, [_array(size, size, dtype="bfloat16")] * 2),
        "matrix product, f32": Step(jnp.matmul, [_array(size, size)] * 2),
        "gated MLPs, bf16": _forward(4, size // 2, size),
        "elementwise chain": Step(_chain, [_array(4 * size, size)]),
        "update of Adam": Step(_adam, [_array(2 * size, size)] * 4, (0, 1, 2)),
        "sort of rows": Step(partial(jnp.sort, axis=-1), [_array(size, size)]),
        "FFT of rows": Step(jnp.fft.fft, [_array(size, size, dtype="complex64")]),
        "Cholesky": Step(_positive_cholesky, [_array(size // 2, size // 2)]),
        "gradients of attention": _attention("xla", size // 2),
    }
    return kernels | ({"gradients of attention, cuDNN": _attention("cudnn", size // 2)} if platform == "gpu" else {})


def steps(*, small: bool, platform: str) -> dict[str, Step]:
    """Return the programs by name."""

    def step(name: str, model: Program) -> Step:
        return Step(*model, (1, 2) if "decoding" in name else (0, 1, 2))

    models = SMALL_MODELS if small else ONE_DEVICE_MODELS
    kernels = _kernels(256 if small else 8192, platform)
    return {**kernels, **{name: step(name, build()) for name, build in models.items()}}


def _random(arguments: Any) -> Any:
    """Return small random arrays of the shapes and types of `arguments`."""

    def fill(leaf: jax.ShapeDtypeStruct, key: jax.Array) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, np.integer):
            return jax.random.randint(key, leaf.shape, 0, _INTEGERS, leaf.dtype)
        return 0.02 * jax.random.normal(key, leaf.shape, leaf.dtype)

    leaves, tree = tree_flatten(arguments)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    return tree_unflatten(tree, map(fill, leaves, keys))


def measure(step: Step, compiled: Callable[..., Any]) -> float:
    """Return the minimal seconds of a step, over turns of several steps each."""
    arguments = _random([*step.arguments])

    def seconds(calls: int) -> float:
        results: Any = ()
        begin = perf_counter()
        for _ in range(calls):
            results = compiled(*arguments)
            for index, result in zip(step.state, results if step.state else (), strict=False):
                arguments[index] = result
        jax.block_until_ready(results)
        return (perf_counter() - begin) / calls

    seconds(1)
    calls = max(1, min(_MOST_CALLS, round(_SECONDS_A_TURN / seconds(1))))
    return min(seconds(calls) for _ in range(_TURNS))


def predict(step: Step, hardware: Sequence[Hardware]) -> list[StepCost]:
    """Return the predicted cost of a step on each hardware."""
    module = sdy.from_jax(jax.jit(step.function, donate_argnums=step.state, keep_unused=True), *step.arguments)
    insert(MeshOp(_MESH, sdy.Mesh.of({"devices": 1})), InsertPoint.at_start(module.body.block))
    return [truth_of(module, LayoutOfModule({}), _MESH, each).cost for each in hardware]


def main() -> None:
    device = jax.devices()[0]
    parser = argparse.ArgumentParser(description="Compare predicted times and memory with those of one device.")
    preset = PRESETS.get(device.device_kind, "h100")
    parser.add_argument("--hardware", nargs="+", default=[preset], help="presets or files (default: the device's)")
    parser.add_argument("--small", action="store_true", help="small programs, for CPUs")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="programs whose names contain a TEXT")
    options = parser.parse_args()
    hardware = [hardware_of(name) for name in options.hardware]
    headings = "".join(f" {Path(name).stem}, ms | ratio |" for name in options.hardware)
    print(f"| {device.device_kind} | measured, ms |{headings} compiled | predicted | ratio |")
    print("| --- | --: |" + " --: | --: |" * len(hardware) + " --: | --: | --: |", flush=True)
    ratios: list[float] = []
    for name, step in steps(small=options.small, platform=device.platform).items():
        if any(text in name for text in options.only):
            ratios.append(_show(name, step, hardware))
    mean = math.exp(math.fsum(map(math.log, ratios)) / max(len(ratios), 1))
    print(f"\nfrom {min(ratios):.2f} to {max(ratios):.2f} of the measured time, geometric mean {mean:.2f}")


def _show(name: str, step: Step, hardware: Sequence[Hardware]) -> float:
    """Print a row of the table, and return the ratio of the time predicted for the first hardware."""
    costs = predict(step, hardware)
    compiled = jax.jit(step.function, donate_argnums=step.state, keep_unused=True).lower(*step.arguments).compile()
    needed = peak_bytes_of(compiled) or 0
    seconds = measure(step, compiled)
    times = "".join(f" {1e3 * cost.seconds:.3f} | {cost.seconds / seconds:.2f} |" for cost in costs)
    memory = costs[0].memory
    sizes = f"{format_bytes(needed)} | {format_bytes(memory)} | {memory / max(needed, 1):.2f}"
    print(f"| {name} | {1e3 * seconds:.3f} |{times} {sizes} |", flush=True)
    return costs[0].seconds / seconds


if __name__ == "__main__":
    main()
