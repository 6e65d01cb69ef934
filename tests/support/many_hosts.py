"""Programs for any number of hosts; as a script, one host of several.

    python many_hosts.py COORDINATOR COUNT INDEX OUTPUT.npz

joins COUNT processes with 8 CPU devices in all, runs the programs, and saves this host's shards of the results, each as
the array `NAME.DEVICE` where DEVICE is the index of the device in `jax.devices()`.
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from host_processes import join


def train_step(weights: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    def loss(weights: jax.Array) -> jax.Array:
        return jnp.square(jnp.tanh(batch @ weights)).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


def run_programs() -> dict[str, jax.Array]:
    """Return the results, by name, on a mesh over the devices of all hosts."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    data, model = NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))

    def placed(array: np.ndarray[Any, Any], sharding: NamedSharding) -> jax.Array:
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    random = np.random.default_rng(0)
    batch = random.normal(size=(8, 6)).astype(np.float32)
    weights = random.normal(size=(6, 4)).astype(np.float32)

    step = sdy.jit(train_step, donate_argnums=0)
    new_weights, loss = step(placed(weights, model), placed(batch, data))

    def around(part: jax.Array) -> jax.Array:
        passed = jax.lax.ppermute(part, "data", [(i, (i + 1) % 4) for i in range(4)])
        return passed + jax.lax.axis_index("data")

    ring = sdy.jit(jax.shard_map(around, mesh=mesh, in_specs=P("data"), out_specs=P("data")))

    module = sdy.from_jax(jax.jit(lambda x: x.T @ x), jax.ShapeDtypeStruct((8, 6), "float32", sharding=data))
    sdy.propagate(module)
    (product,) = sdy.compile(module)(batch)
    # Each host would find another plan in so little time.
    planned = sdy.jit(train_step, mesh=mesh, in_shardings=sdy.Auto("cpu-8", time_limit=0.05))
    of_plan, _ = planned(placed(weights, model), placed(batch, data))
    return {
        "planned": of_plan,
        "weights": new_weights,
        "loss": loss,
        "ring": ring(placed(batch, data)),
        "product": product,
    }


def parts(results: dict[str, jax.Array]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the shards of each result on the devices of this host."""
    place = {device: index for index, device in enumerate(jax.devices())}
    return {
        f"{name}.{place[shard.device]}": np.asarray(shard.data)
        for name, result in results.items()
        for shard in result.addressable_shards
    }


def main(coordinator: str, count: str, index: str, output: str) -> None:
    join(coordinator, count, index)
    np.savez(output, **parts(run_programs()))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    main(*sys.argv[1:])
