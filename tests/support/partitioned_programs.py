"""JAX programs over a mesh of eight devices, their modules, and the comparison of their results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate
from sdy.passes.jax.api.compile import compile, compile_unpartitioned
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.jax.program.difference import largest_difference
from sdy.passes.jax.program.inputs import random_inputs
from sdy.type_helpers import Function

D, M = "data", "model"
X, Y, Z = "x", "y", "z"
GRID = {D: 4, M: 2}
LINE = {X: 8}
CUBE = {X: 2, Y: 2, Z: 2}

Axes = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Argument:
    """Shape, sharding of the leading dimensions, and element type of an argument."""

    shape: tuple[int, ...]
    axes: tuple[Axes, ...] = ()
    dtype: str = "float32"

    def on(self, mesh: jax.sharding.Mesh) -> jax.ShapeDtypeStruct:
        """Return the argument as `jax.jit` lowers it on `mesh`."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=NamedSharding(mesh, PartitionSpec(*self.axes)))


@dataclass(frozen=True)
class Program:
    """A function, its arguments, and the mesh that shards them.

    `tolerance` is the largest error of a floating-point result, relative to its largest element.
    """

    function: Function[Any]
    arguments: tuple[Argument, ...]
    mesh: Mapping[str, int] = field(default_factory=lambda: GRID)
    tolerance: float = 1e-5

    def jax_mesh(self) -> jax.sharding.Mesh:
        """Return the mesh as a `jax.sharding.Mesh` of eight devices."""
        return jax.make_mesh(tuple(self.mesh.values()), tuple(self.mesh), axis_types=(AxisType.Auto,) * len(self.mesh))

    def lowered(self) -> jax.stages.Lowered:
        """Lower the program with JAX, unpartitioned."""
        mesh = self.jax_mesh()
        with jax.set_mesh(mesh):
            return jax.jit(self.function, keep_unused=True).lower(*(argument.on(mesh) for argument in self.arguments))

    def module(self) -> Any:
        """Return the unpartitioned module."""
        return from_jax(self.lowered())


def program(
    function: Function[Any], *arguments: Argument, mesh: Mapping[str, int] = GRID, tolerance: float = 1e-5
) -> Program:
    """Return the program that applies `function` to `arguments`."""
    return Program(function, arguments, mesh, tolerance)


def ints(shape: tuple[int, ...], *axes: Axes) -> Argument:
    """Declare an argument of 32-bit integers, with values 0 to 7."""
    return Argument(shape, axes, "int32")


def constrain(x: jax.Array, *axes: Axes) -> jax.Array:
    """Constrain `x` to these axes of the program's mesh, which need not divide its dimensions."""
    return jax.lax.with_sharding_constraint(x, PartitionSpec(*axes))


def split(function: Function[Any]) -> Callable[..., Any]:
    """Return a program of `function` whose arguments are sharded over "data" and "model" in dimensions 0 and 1."""
    return lambda *arguments: function(*(constrain(x, *(D, M)[: x.ndim]) for x in arguments))


def lower(function: Function[Any], *arguments: Argument) -> Any:
    """Return the module of `function` over the grid."""
    return Program(function, arguments).module()


def partitioned(original: Any) -> Any:
    """Return the program of one device for `original`, which stays unchanged."""
    module = original.clone()
    with capture():
        propagate(module)
        partition(module)
    return module


def assert_same(results: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    """Check that arrays have equal types and close elements; integers and booleans must be equal."""
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        difference = largest_difference([result], [wanted], [f"result {index}"])
        exact = np.dtype(wanted.dtype).kind in "biu"
        assert difference is None or difference.largest <= (0 if exact else tolerance * difference.scale), difference


def assert_same_as_whole(original: Any, local: Any, tolerance: float = 0.0) -> None:
    """Check that the partitioned module `local` computes the same as `original`."""
    local_program, whole = compile(local), compile_unpartitioned(original)
    inputs = random_inputs(local_program.inputs, seed=0)
    assert_same(local_program(*inputs), whole(*inputs), tolerance)
