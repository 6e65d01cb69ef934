"""Well-sharded programs of Equinox, Flax and Optax, in which no rule finds anything."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportArgumentType=false
# pyright: reportMissingTypeStubs=false, reportAttributeAccessIssue=false, reportPrivateImportUsage=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

Program = tuple[Callable[..., Any], tuple[Any, ...]]

GRID = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
LINE = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
WIDTH, HIDDEN, ROWS = 512, 2048, 8192


@dataclass(frozen=True)
class Layout:
    """A mesh, and the partition spec of each parameter."""

    mesh: jax.sharding.Mesh
    spec: Callable[[Any], P]

    def of(self, leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(self.mesh, self.spec(leaf)))

    def rows(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((ROWS, WIDTH), "float32", sharding=NamedSharding(self.mesh, P("data")))


def replicated(leaf: Any) -> P:
    return P()


def fully_sharded(leaf: Any) -> P:
    return P("data") if leaf.ndim > 1 else P()


def tensor_parallel(leaf: Any) -> P:
    """Shard the hidden dimension over the model axis."""
    return P(*("model" if size == HIDDEN else None for size in leaf.shape))


def trained(apply: Callable[..., jax.Array], params: Any, layout: Layout) -> Program:
    """Return a step of Adam whose state is sharded like its parameters."""
    optimizer = optax.adam(1e-3)

    def step(params: Any, state: Any, x: jax.Array) -> Any:
        gradients = jax.grad(lambda params: jnp.mean(apply(params, x) ** 2))(params)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state

    state = jax.eval_shape(optimizer.init, params)
    return step, (jax.tree.map(layout.of, params), jax.tree.map(layout.of, state), layout.rows())


def equinox(layout: Layout) -> Program:
    model = eqx.filter_eval_shape(eqx.nn.MLP, WIDTH, WIDTH, HIDDEN, 1, key=jax.random.key(0))
    params, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    return trained(lambda params, x: jax.vmap(eqx.combine(params, static))(x), params, layout)


class Perceptron(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
        self.down = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.down(nnx.gelu(self.up(self.norm(x))))


def flax_nnx(layout: Layout) -> Program:
    graph, params = nnx.split(nnx.eval_shape(lambda: Perceptron(nnx.Rngs(0))))
    return trained(lambda params, x: nnx.merge(graph, params)(x), params, layout)


def flax_linen(layout: Layout) -> Program:
    model = linen.Sequential([linen.Dense(HIDDEN), linen.relu, linen.LayerNorm(), linen.Dense(WIDTH)])
    params = jax.eval_shape(model.init, jax.random.key(0), layout.rows())
    return trained(model.apply, params, layout)


LIBRARIES = {"Equinox": equinox, "Flax NNX": flax_nnx, "Flax Linen": flax_linen}
LAYOUTS = {
    "data parallel": Layout(LINE, replicated),
    "fully sharded": Layout(LINE, fully_sharded),
    "tensor parallel": Layout(GRID, tensor_parallel),
}
