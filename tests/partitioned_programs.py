"""JAX programs over a mesh of "data"=4 and "model"=2: lowered, and compared with what one device computes."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from sdy.passes.execution.compile import compile, compile_unpartitioned
from sdy.passes.execution.difference import largest_difference
from sdy.passes.execution.from_jax import from_jax
from sdy.passes.execution.inputs import random_inputs

D, M = "data", "model"
Axes = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Argument:
    """The shape of an argument, the axes that split its dimensions, and its element type."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]
    dtype: str = "float32"


def mesh() -> jax.sharding.Mesh:
    """The mesh, which needs 8 devices."""
    return jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)


def constrain(x: jax.Array, *axes: Axes) -> jax.Array:
    """`x` split over these axes, also where they do not divide its dimensions."""
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh(), PartitionSpec(*axes)))


def split(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` on arguments whose first dimension is split over "data", and the second, if any, over "model"."""
    return lambda *arguments: function(*(constrain(x, *(D, M)[: x.ndim]) for x in arguments))


def lower(function: Callable[..., Any], *arguments: Argument) -> Any:
    """The module of `function`."""
    return from_jax(
        jax.jit(function),
        *(
            jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh(), PartitionSpec(*a.axes)))
            for a in arguments
        ),
    )


def assert_same_as_whole(original: Any, local: Any, tolerance: float = 0.0) -> None:
    """Check that the module `local` of one device computes what `original`, of which it was made, does."""
    program, whole = compile(local), compile_unpartitioned(original)
    inputs = random_inputs(program.inputs, seed=0)
    names = [port.name for port in program.outputs]
    difference = largest_difference(program(*inputs), whole(*inputs), names)
    assert difference is not None
    assert difference.largest <= tolerance, difference
