"""Training steps in stages, on one device with jax and partitioned by Shardy's MPMD compiler for several meshes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.jax.api.accumulate import with_pipelined_microbatches
from sdy.passes.jax.mpmd import shardy_compiler
from sdy.passes.jax.mpmd.named_computations import as_stage, name_computations
from sdy.passes.mpmd.scheduled_calls import stage_name

ROWS, WIDTH = 8, 16


@dataclass(frozen=True)
class Training:
    """A training step by Adam of `layers` layers for each stage, with gradients accumulated over microbatches.

    With `tied` layers, the last stage multiplies by the weights of the first one. With `corrected` moments, all stages
    read the number of the step.
    """

    layers: Sequence[int] = (1, 1, 1, 1)
    devices: int = 2
    microbatches: int = 4
    tied: bool = False
    corrected: bool = False
    schedule: str = "1F1B"

    @property
    def stages(self) -> int:
        """The number of stages, each on a mesh of its own."""
        return len(self.layers)

    def step(self) -> Callable[..., Any]:
        """Return the step as a function of the state, the inputs and the labels, each of all microbatches."""

        def stage(weights: Sequence[jax.Array], x: jax.Array) -> jax.Array:
            for each in weights:
                x = jnp.tanh(x @ each)
            return x

        def last_stage(weights: Sequence[jax.Array], head: jax.Array, x: jax.Array, labels: jax.Array) -> jax.Array:
            return jnp.square(stage(weights, x) @ head - labels).mean()

        stages = [as_stage(index, stage) for index in range(self.stages - 1)]
        last = as_stage(self.stages - 1, last_stage)

        def loss(weights: Sequence[Sequence[jax.Array]], x: jax.Array, labels: jax.Array) -> jax.Array:
            for each, own in zip(stages, weights[:-1], strict=True):
                x = each(own, x)
            return last(weights[-1], weights[0 if self.tied else -1][0], x, labels)

        def train(state: Any, inputs: jax.Array, labels: jax.Array) -> tuple[jax.Array, Any]:
            weights, first, second, count = state
            value, gradients = sdy.accumulate(
                jax.value_and_grad(loss), weights, inputs, labels, microbatches=self.microbatches
            )
            first = jax.tree.map(lambda moment, gradient: 0.9 * moment + 0.1 * gradient, first, gradients)
            second = jax.tree.map(lambda moment, gradient: 0.99 * moment + 0.01 * gradient**2, second, gradients)
            rate = 0.01 / (1 - 0.9 ** (count + 1)) if self.corrected else 0.01
            weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-6), weights, first, second)
            return value, (weights, first, second, count + 1)

        return train

    def state(self) -> Any:
        """Return random weights, moments of zero, and the number of the step."""
        random = np.random.default_rng(0)
        weights = [
            [(random.normal(size=(WIDTH, WIDTH)) / 4).astype(np.float32) for _ in range(count)] for count in self.layers
        ]
        zeros = jax.tree.map(np.zeros_like, weights)
        return weights, zeros, zeros, np.float32(0)

    def batch(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return random inputs and labels of all microbatches."""
        random = np.random.default_rng(1)
        inputs, labels = random.normal(size=(2, self.microbatches * ROWS, WIDTH)).astype(np.float32)
        return inputs, labels

    def partitioned(self, phases: Sequence[str] = shardy_compiler.PHASES, *, donates: bool = True) -> str:
        """Return the step after phases of Shardy's compiler, with rows of the batch and of the weights sharded."""
        return self._partitioned(tuple(phases), donates)

    @cache  # noqa: B019
    def _partitioned(self, phases: Sequence[str], donates: bool) -> str:
        mesh = jax.make_mesh(
            (self.devices,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[: self.devices]
        )
        rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
        types = jax.tree.map(
            lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=rows if array.ndim else whole),
            (self.state(), *self.batch()),
        )
        module = sdy.from_jax(jax.jit(with_pipelined_microbatches(self.step()), keep_unused=True), *types)
        name_computations(module)
        return shardy_compiler.partition(
            module,
            {f"mesh{index}": {"data": self.devices} for index in range(self.stages)},
            {stage_name(index): (f"mesh{index}", index) for index in range(self.stages)},
            phases=phases,
            donated=range(len(jax.tree.leaves(self.state())) if donates else 0),
            splits_backwards=self.schedule.startswith("ZeroBubble"),
            schedule=self.schedule,
        )
