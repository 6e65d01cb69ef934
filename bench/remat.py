"""Training steps under memory limits: predicted and compiled memory, work and time beside `jax.checkpoint`.

    python bench/remat.py [--layers N] [--programs NAME ...] [--fractions PERCENT ...]

Each program is limited to fractions of the memory that its unconstrained step needs, with donated state, on two
devices of the CPU (`XLA_FLAGS=--xla_force_host_platform_device_count=2`): `sdy.jit(step, memory=...)`. Below are the
same steps with `jax.checkpoint` of whole layers and with the policy `dots_with_no_batch_dims_saveable`, compiled with
the same options of XLA, and ours at their memory. "flops" is XLA's count over that of the unconstrained step, "flops,
predicted" the estimate for products; times are predicted for an H100.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_policies
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.dialects.builtin import ModuleOp, UnitAttr

import sdy
from sdy.dialect.attributes import ORDERS
from sdy.dialect.meshes import named_meshes
from sdy.ir.walking import operations_of
from sdy.passes.account.partitioned_program import partitioned_program
from sdy.passes.jax.compiler_context import CPU_OPTIONS
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import StepTimes
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp

Tree = Any
Layer = Callable[..., jax.Array]
Program = tuple[Callable[..., jax.Array], Tree, jax.ShapeDtypeStruct]
"""A loss, and the shapes of its parameters and its batch."""


def normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def attended(x: jax.Array, w: Tree) -> jax.Array:
    """A transformer block with causal attention."""
    y = normalized(x, w["norm"])
    q, k, v = (jnp.einsum("bsw,whd->bshd", y, w[name]) for name in "qkv")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    x = x + jnp.einsum("bshd,hdw->bsw", jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v), w["o"])
    return x + jax.nn.gelu(normalized(x, w["norm"]) @ w["up"]) @ w["down"]


def transformer(layers: int, wrap: Callable[[Layer], Layer]) -> Program:
    block = wrap(attended)

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for w in params:
            x = block(x, w)
        return jnp.mean(jnp.square(x))

    width, heads = 128, 4
    projection = (width, heads, width // heads)
    shapes = {"q": projection, "k": projection, "v": projection, "o": (heads, width // heads, width)}
    shapes |= {"norm": (width,), "up": (width, 4 * width), "down": (4 * width, width)}
    return (
        loss,
        [{name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}] * layers,
        jax.ShapeDtypeStruct((8, 128, 128), jnp.float32),
    )


def experts(layers: int, wrap: Callable[[Layer], Layer]) -> Program:
    width, hidden, count, length = 64, 256, 4, 128
    capacity = 2 * length // count

    def mixed(x: jax.Array, w: Tree) -> jax.Array:
        y = normalized(x, w["norm"])
        gates = jax.nn.softmax(y @ w["router"])
        selected = jax.nn.one_hot(jnp.argmax(gates, -1), count)
        place = jnp.cumsum(selected, 1) * selected - 1
        mask = jax.nn.one_hot(place.astype(jnp.int32), capacity) * selected[..., None]
        given = jnp.einsum("bsec,bsw->ebcw", mask, y)
        done = jnp.einsum("ebch,ehw->ebcw", jax.nn.gelu(jnp.einsum("ebcw,ewh->ebch", given, w["up"])), w["down"])
        return x + jnp.einsum("bsec,ebcw->bsw", mask * jnp.max(gates, -1)[..., None, None], done)

    layer = wrap(mixed)

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for w in params:
            x = layer(x, w)
        return jnp.mean(jnp.square(x))

    shapes = {"norm": (width,), "router": (width, count), "up": (count, width, hidden), "down": (count, hidden, width)}
    params = [{name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}] * layers
    return loss, params, jax.ShapeDtypeStruct((8, length, width), jnp.float32)


def unet(layers: int, wrap: Callable[[Layer], Layer]) -> Program:
    """A U-Net of three resolutions with a sixth of the layers at each, on the way down and on the way up."""

    def convolved(x: jax.Array, w: Tree) -> jax.Array:
        dimensions = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w["first"], (1, 1), "SAME", dimension_numbers=dimensions)
        return x + lax.conv_general_dilated(jax.nn.silu(y), w["second"], (1, 1), "SAME", dimension_numbers=dimensions)

    layer = wrap(convolved)

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        down, up = params[: layers // 2], params[layers // 2 :]
        skipped: list[jax.Array] = []
        for index, w in enumerate(down):
            x = layer(x, w)
            skipped.append(x)
            if index + 1 in (layers // 6, layers // 3):
                x = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2, -1).mean((2, 4))
        for w in up:
            x = layer(x, w)
            if skipped:
                skip = skipped.pop()
                x = jnp.repeat(jnp.repeat(x, skip.shape[1] // x.shape[1], 1), skip.shape[2] // x.shape[2], 2) + skip
        return jnp.mean(jnp.square(x))

    kernel = jax.ShapeDtypeStruct((3, 3, 16, 16), jnp.float32)
    return loss, [{"first": kernel, "second": kernel}] * layers, jax.ShapeDtypeStruct((8, 32, 32, 16), jnp.float32)


PROGRAMS = {"transformer": transformer, "mixture of experts": experts, "U-Net": unet}
POLICIES: dict[str, Callable[[Layer], Layer]] = {
    "checkpoint of layers": jax.checkpoint,
    "dots with no batch dims": lambda layer: jax.checkpoint(
        layer, policy=checkpoint_policies.dots_with_no_batch_dims_saveable
    ),
}


class Measured:
    """A step with its predicted and compiled costs."""

    def __init__(
        self, program: Callable[..., Any], layers: int, wrap: Callable[[Layer], Layer], memory: int | None
    ) -> None:
        loss, params, x = program(layers, wrap)
        mesh = jax.make_mesh((2,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
        values = np.random.default_rng(0)

        def some(leaf: Any, spec: P) -> jax.Array:
            data = jnp.asarray(values.normal(scale=1 / 8, size=leaf.shape), jnp.float32)
            return jax.device_put(data, NamedSharding(mesh, spec))

        def step(state: Tree, x: jax.Array) -> Any:
            params, moments = state
            value, gradients = jax.value_and_grad(loss)(params, x)
            moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, gradients)
            return (jax.tree.map(lambda w, m: w - 0.1 * m, params, moments), moments), value

        params = jax.tree.map(lambda leaf: some(leaf, P()), params)
        args = (params, jax.tree.map(jnp.zeros_like, params)), some(x, P("data"))
        lowered = sdy.jit(step, donate_argnums=0, compiler_options=CPU_OPTIONS, memory=memory).lower(*args)
        local = partitioned_program(lowered).local
        for barrier in operations_of(local, OptimizationBarrierOp):
            barrier.attributes[ORDERS] = UnitAttr()  # those of jax.checkpoint: XLA keeps them as ours
        compiled = lowered.compile()
        memory_of = compiled.memory_analysis()
        self.predicted = peak_bytes(local)
        self.compiled = memory_of.argument_size_in_bytes + memory_of.temp_size_in_bytes
        self.compiled += memory_of.output_size_in_bytes - memory_of.alias_size_in_bytes
        self.state = memory_of.argument_size_in_bytes
        self.flops = compiled.cost_analysis()["flops"]
        self.products = products_of(local)
        (used,) = [each for each in named_meshes(local).values() if each.axes]
        self.seconds = StepTimes(local, used, hardware_of("h100")).cost().seconds
        self.results = [np.asarray(each) for each in jax.tree.leaves(compiled(*args))]


def products_of(local: ModuleOp) -> float:
    """Return the arithmetic operations of the products of a per-device program."""
    return sum(arithmetic_of(op).operations for op in operations_of(local, DotGeneralOp, ConvolutionOp))


def main() -> None:
    parser = argparse.ArgumentParser(description="Training steps under memory limits, beside jax.checkpoint.")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=[*PROGRAMS])
    parser.add_argument("--fractions", nargs="+", type=int, default=[100, 70, 50, 35])
    options = parser.parse_args()
    print("| program | | limit | predicted | compiled | flops, predicted | flops | step | largest difference |")
    print("| --- | --- | --: | --: | --: | --: | --: | --: | --: |")
    for name in options.programs:
        program = PROGRAMS[name]
        free = Measured(program, options.layers, lambda layer: layer, None)
        show(name, f"no limit; arguments {free.state:,}", None, free, free)
        for fraction in options.fractions:
            limit = free.compiled * fraction // 100
            show(name, f"{fraction} %", limit, Measured(program, options.layers, lambda layer: layer, limit), free)
        for policy, wrap in POLICIES.items():
            theirs = Measured(program, options.layers, wrap, None)
            show(name, policy, None, theirs, free)
            ours = Measured(program, options.layers, lambda layer: layer, theirs.compiled)
            show(name, "ours at its memory", theirs.compiled, ours, free)


def show(name: str, row: str, limit: int | None, step: Measured, free: Measured) -> None:
    """Print a row of the table."""
    difference = max(float(np.abs(a - b).max()) for a, b in zip(step.results, free.results, strict=True))
    cells = [
        name,
        row,
        f"{limit:,}" if limit else "",
        f"{step.predicted:,}",
        f"{step.compiled:,}",
        f"{step.products / free.products:.3f}",
        f"{step.flops / free.flops:.3f}",
        f"{step.seconds * 1e6:.0f} us",
        f"{difference:.1e}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 2)
    main()
