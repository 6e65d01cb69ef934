"""Training steps in stages, on one device with jax and partitioned by Shardy's MPMD compiler for several meshes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_mpmd

ROWS, WIDTH = 8, 16


@dataclass(frozen=True)
class Training:
    """A training step by Adam of `layers` layers for each stage, with gradients accumulated over microbatches.

    With `tied` layers, the last stage multiplies by the weights of the first one.
    """

    layers: Sequence[int] = (1, 1, 1, 1)
    devices: int = 2
    microbatches: int = 4
    tied: bool = False
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

        names = [f"stage{index}" for index in range(self.stages)]
        stages = [shardy_mpmd.named(name, stage) for name in names[:-1]]
        last = shardy_mpmd.named(names[-1], last_stage)

        def loss(weights: Sequence[Sequence[jax.Array]], x: jax.Array, labels: jax.Array) -> jax.Array:
            for each, own in zip(stages, weights[:-1], strict=True):
                x = each(own, x)
            return last(weights[-1], weights[0 if self.tied else -1][0], x, labels)

        gradients_of = shardy_mpmd.per_microbatch(jax.value_and_grad(loss))

        def train(state: Any, inputs: jax.Array, labels: jax.Array) -> tuple[jax.Array, Any]:
            weights, first, second = state
            value, gradients = jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights)
            for index in range(self.microbatches):
                one, each = gradients_of(weights, inputs[index], labels[index])
                value, gradients = value + one, jax.tree.map(jnp.add, gradients, each)
            first = jax.tree.map(lambda moment, gradient: 0.9 * moment + 0.1 * gradient, first, gradients)
            second = jax.tree.map(lambda moment, gradient: 0.99 * moment + 0.01 * gradient**2, second, gradients)
            weights = jax.tree.map(lambda w, m, v: w - 0.01 * m / (jnp.sqrt(v) + 1e-6), weights, first, second)
            return value / self.microbatches, (weights, first, second)

        return train

    def state(self) -> Any:
        """Return random weights, and moments of zero."""
        random = np.random.default_rng(0)
        weights = [
            [(random.normal(size=(WIDTH, WIDTH)) / 4).astype(np.float32) for _ in range(count)] for count in self.layers
        ]
        zeros = jax.tree.map(np.zeros_like, weights)
        return weights, zeros, zeros

    def batch(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return random inputs and labels of all microbatches."""
        random = np.random.default_rng(1)
        inputs, labels = random.normal(size=(2, self.microbatches, ROWS, WIDTH)).astype(np.float32)
        return inputs, labels

    def partitioned(self, phases: Sequence[str] = ("IMPORT", "OPTIMIZE", "PARTITION"), *, donates: bool = True) -> str:
        """Return the step after phases of Shardy's compiler, with rows of the batch and of the weights sharded."""
        mesh = jax.make_mesh(
            (self.devices,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[: self.devices]
        )
        rows, columns = NamedSharding(mesh, P(None, "data")), NamedSharding(mesh, P("data"))

        def described(array: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

        state = jax.tree.map(lambda array: described(array, columns), self.state())
        batch = [described(array, rows) for array in self.batch()]
        return shardy_mpmd.partitioned(
            shardy_mpmd.as_mpmd(self.step(), state, *batch),
            {f"mesh{index}": {"data": self.devices} for index in range(self.stages)},
            {f"stage{index}": (f"mesh{index}", index) for index in range(self.stages)},
            phases=phases,
            donated=range(len(jax.tree.leaves(state)) if donates else 0),
            schedule=self.schedule,
        )
