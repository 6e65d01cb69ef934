"""Predicted communication of training steps, with each pass of passes/communication and without it.

    python bench/communication.py [--hardware h100 ...] [PART OF A NAME ...]

Each step is partitioned for 16 devices with all passes, and with all but one. Communication is the time of all
collectives, exposed what no computation hides, both in milliseconds as predicted for the hardware. A pass that changes
nothing is not listed; `-` is the step with all passes.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import sdy
from auto_model_programs import MODELS
from placed import WHOLE, Rule, by_name, fully_sharded
from sdy.dialect.meshes import main_mesh
from sdy.ir.companions import clone
from sdy.passes.pipelines import PartitionPipeline
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import StepCost, StepTimes
from sdy.text import context

_DEVICES = 16
_MESH = {"hosts": 2, "devices": 8}
_AXES = ("hosts", "devices")
_FSDP = fully_sharded(*_AXES, mesh=_MESH)


@dataclass(frozen=True)
class Step:
    """A training step with the sharding rule of its state. Batches are split over all axes."""

    function: Callable[..., Any]
    arguments: Any
    states: int
    """The number of leading arguments that are trees of parameters or optimizer state."""
    rule: Rule
    mesh: Mapping[str, int] = field(default_factory=lambda: _MESH)

    def module(self) -> ModuleOp:
        count = math.prod(self.mesh.values())
        types = (AxisType.Auto,) * len(self.mesh)
        mesh = jax.make_mesh(tuple(self.mesh.values()), tuple(self.mesh), types, devices=jax.devices()[:count])

        def batch(_: str, shape: tuple[int, ...]) -> P:
            return P(tuple(self.mesh)) if shape and shape[0] % count == 0 else P()

        def placed(path: Any, leaf: Any, rule: Rule) -> jax.ShapeDtypeStruct:
            spec = rule(jax.tree_util.keystr(path, simple=True, separator="/"), leaf.shape)
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

        arguments = [
            jax.tree_util.tree_map_with_path(
                lambda path, leaf, rule=self.rule if index < self.states else batch: placed(path, leaf, rule), argument
            )
            for index, argument in enumerate(self.arguments)
        ]
        with jax.set_mesh(mesh):
            return sdy.from_jax(jax.jit(self.function), *arguments)


def _array(*shape: int, dtype: str = "bfloat16") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _accumulated() -> Step:
    """Gradients of gated MLPs, accumulated over four microbatches by a scan; parameters are split over all devices."""
    params = [(_array(4096, 28672), _array(14336, 4096)) for _ in range(8)]

    def loss(params: Any, x: jax.Array) -> jax.Array:
        for up, down in params:
            gate, hidden = jnp.split(x @ up, 2, axis=1)
            x = jax.lax.with_sharding_constraint(x + (jax.nn.silu(gate) * hidden) @ down, P(_AXES))
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def step(params: Any, batch: jax.Array) -> Any:
        microbatches = jax.lax.with_sharding_constraint(batch.reshape(4, -1, 4096), P(None, _AXES))
        zeros = jax.tree.map(jnp.zeros_like, params)

        def add(total: Any, x: jax.Array) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, x)), None

        return jax.lax.scan(add, zeros, microbatches)[0]

    return Step(step, (params, _array(4096 * _DEVICES, 4096)), 1, _FSDP)


def _scanned() -> Step:
    """Gated MLPs by a scan over their parameters, which are split over all devices, recomputed for the gradient."""
    params = (_array(32, 4096, 28672), _array(32, 14336, 4096))

    @jax.checkpoint
    def layer(x: jax.Array, params: tuple[jax.Array, jax.Array]) -> jax.Array:
        up, down = params
        gate, hidden = jnp.split(x @ up, 2, axis=1)
        return jax.lax.with_sharding_constraint(x + (jax.nn.silu(gate) * hidden) @ down, P(_AXES))

    def loss(params: Any, x: jax.Array) -> jax.Array:
        x, _ = jax.lax.scan(lambda x, each: (layer(x, each), None), x, params)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    return Step(jax.grad(loss), (params, _array(4096 * _DEVICES, 4096)), 1, _FSDP)


def _prefill() -> Step:
    """The next token's scores after a prompt whose places are split: only the last place is used."""

    def step(table: jax.Array, prompt: jax.Array) -> jax.Array:
        x = jax.lax.with_sharding_constraint(prompt, P("hosts", "devices"))
        x = jax.lax.with_sharding_constraint(jax.nn.silu(x), P("hosts"))
        return x[:, -1] @ table

    return Step(step, (_array(4096, 131072), _array(64, 4096, 4096)), 1, by_name({"": P(None, "devices")}))


def _cast() -> Step:
    """Gated MLPs whose parameters are gathered in `float32`, and then cast to `bfloat16`."""

    def forward(params: Any, x: jax.Array) -> jax.Array:
        for w in params:
            whole = jax.lax.with_sharding_constraint(w * 0.5, WHOLE)
            x = jax.nn.silu(x @ whole.astype(jnp.bfloat16))
        return x

    params = [_array(8192, 8192, dtype="float32") for _ in range(8)]
    return Step(forward, (params, _array(1024 * _DEVICES, 8192)), 1, _FSDP)


def _sequence_parallel() -> Step:
    """Four layers of Megatron's MLP with sequence parallelism: rows are gathered before, and scattered after it."""

    def forward(params: Any, x: jax.Array) -> jax.Array:
        for up, down in params:
            hidden = jax.nn.gelu(jax.lax.with_sharding_constraint(x, P("hosts")) @ up)
            x = jax.lax.with_sharding_constraint(x + hidden @ down, P(_AXES))
        return x

    params = [(_array(8192, 32768), _array(32768, 8192)) for _ in range(4)]
    rule = by_name({"/0": P(None, "devices"), "/1": P("devices")})
    return Step(forward, (params, _array(1024 * _DEVICES, 8192)), 1, rule)


def _stencil() -> Step:
    """Ten steps of heat on a grid: five-point stencils of order four, whose halos overlap."""

    def step(grid: jax.Array) -> jax.Array:
        for _ in range(10):
            moved = [jnp.roll(grid, shift, axis) for shift in (-2, -1, 1, 2) for axis in (0, 1)]
            grid = grid + 0.01 * (sum(moved) - 8 * grid)
        return grid

    return Step(step, (_array(16384, 16384, dtype="float32"),), 1, by_name({"": P("hosts", "devices")}))


def _solver() -> Step:
    """Newton's method for a batch of equations, each until it converges."""

    def solve(weights: jax.Array, targets: jax.Array) -> jax.Array:
        def root(target: jax.Array) -> jax.Array:
            def error(x: jax.Array) -> jax.Array:
                return weights @ x - target

            return jax.lax.while_loop(
                lambda x: jnp.max(jnp.abs(error(x))) > 1e-3, lambda x: x - jnp.tanh(error(x)), target
            )

        return jax.vmap(root)(targets)

    return Step(solve, (_array(256, 256, dtype="float32"), _array(4096, 256, dtype="float32")), 1, by_name({}))


def _model(name: str, rule: Rule) -> Step:
    """A training step with Adam of bench/auto_model_programs.py."""
    function, arguments = MODELS[name](_DEVICES)
    return Step(function, arguments, 3, rule)


STEPS: Mapping[str, Callable[[], Step]] = {
    "gradients of microbatches": _accumulated,
    "layers by scan": _scanned,
    "prefill of a split prompt": _prefill,
    "cast of gathered parameters": _cast,
    "sequence parallelism": _sequence_parallel,
    "heat on a grid": _stencil,
    "equations solved one by one": _solver,
    "mixture of experts": lambda: _model("mixture of experts", by_name({"up|down": P("devices")}, _FSDP)),
    "recommendation, table by rows": lambda: _model("recommendation", by_name({"table": P(_AXES)})),
}


def _left_out(hardware: str) -> Iterator[type[ModulePass]]:
    """Yield the passes of passes/communication."""
    for step in PartitionPipeline(hardware=hardware).passes(ModuleOp([])):
        if type(step).__module__.startswith("sdy.passes.communication."):
            yield type(step)


def programs(module: ModuleOp, hardware: str, *, all_only: bool = False) -> Iterator[tuple[str, ModuleOp]]:
    """Yield the program of one device with all passes, then, unless `all_only`, those that differ without a pass."""
    local = _partitioned(module, hardware, None)
    yield "-", local
    for left_out in () if all_only else _left_out(hardware):
        other = _partitioned(module, hardware, left_out)
        if str(other) != str(local):
            yield f"`{left_out.name}`", other


def _partitioned(module: ModuleOp, hardware: str, without: type[ModulePass] | None) -> ModuleOp:
    local = clone(module)
    for step in PartitionPipeline(hardware=hardware).numbered_passes(local):
        if type(step) is not without:
            step.apply(context(), local)
    return local


def _row(name: str, hardware: str, without: str, cost: StepCost) -> str:
    total = sum(cost.communication.values())
    figures = f"{cost.received / 2**20:,.1f}", f"{1e3 * total:.3f}", f"{1e3 * (total - cost.overlap):.3f}"
    return "| " + " | ".join((name, hardware, without, *figures)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Predict the communication of training steps without each pass.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART OF A NAME", help="only steps whose name contains one of these"
    )
    parser.add_argument("--hardware", nargs="+", default=["h100", "tpu-v5e"], help="presets or files")
    options = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", _DEVICES)
    print("| step | hardware | without | received MiB | communication ms | exposed ms |")
    print("| --- | --- | --- | --: | --: | --: |")
    for name, build in STEPS.items():
        if options.parts and not any(part in name for part in options.parts):
            continue
        module = build().module()
        sdy.propagate(module)
        for hardware in options.hardware:
            for without, local in programs(module, hardware):
                cost = StepTimes(local, main_mesh(local), hardware_of(hardware)).cost()
                print(_row(name, hardware, without, cost), flush=True)


if __name__ == "__main__":
    main()
