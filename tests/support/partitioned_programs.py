"""JAX programs over a mesh of eight devices: what they are, their modules, and whether two of them compute the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from sdy.callables import Function
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate
from sdy.passes.jax.compile import compile, compile_unpartitioned
from sdy.passes.jax.difference import largest_difference
from sdy.passes.jax.from_jax import from_jax
from sdy.passes.jax.inputs import random_inputs

D, M = "data", "model"
X, Y, Z = "x", "y", "z"
GRID = {D: 4, M: 2}
LINE = {X: 8}
CUBE = {X: 2, Y: 2, Z: 2}

Axes = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Argument:
    """The shape of an argument, the axes that split its first dimensions, and its element type."""

    shape: tuple[int, ...]
    axes: tuple[Axes, ...] = ()
    dtype: str = "float32"

    def on(self, mesh: jax.sharding.Mesh) -> jax.ShapeDtypeStruct:
        """What JAX lowers a function for."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=NamedSharding(mesh, PartitionSpec(*self.axes)))


@dataclass(frozen=True)
class Program:
    """A function, its arguments, and the mesh over which they are split.

    `tolerance` is how far a result may be off in floating point, relative to its largest element.
    """

    function: Function[Any]
    arguments: tuple[Argument, ...]
    mesh: Mapping[str, int] = field(default_factory=lambda: GRID)
    tolerance: float = 1e-5

    def jax_mesh(self) -> jax.sharding.Mesh:
        """The mesh as JAX has it, which takes eight devices."""
        return jax.make_mesh(tuple(self.mesh.values()), tuple(self.mesh), axis_types=(AxisType.Auto,) * len(self.mesh))

    def lowered(self) -> jax.stages.Lowered:
        """The program as JAX lowers it, not partitioned yet."""
        mesh = self.jax_mesh()
        with jax.set_mesh(mesh):
            return jax.jit(self.function, keep_unused=True).lower(*(argument.on(mesh) for argument in self.arguments))

    def module(self) -> Any:
        """The module of the whole program."""
        return from_jax(self.lowered())


def program(
    function: Function[Any], *arguments: Argument, mesh: Mapping[str, int] = GRID, tolerance: float = 1e-5
) -> Program:
    """The program of `function` on `arguments`."""
    return Program(function, arguments, mesh, tolerance)


def ints(shape: tuple[int, ...], *axes: Axes) -> Argument:
    """An argument of 32-bit integers, which are 0 to 7 when a program is run."""
    return Argument(shape, axes, "int32")


def constrain(x: jax.Array, *axes: Axes) -> jax.Array:
    """`x` split over these axes of the program's mesh, also where they do not divide its dimensions."""
    return jax.lax.with_sharding_constraint(x, PartitionSpec(*axes))


def split(function: Function[Any]) -> Callable[..., Any]:
    """`function` on arguments whose first dimension is split over "data", and the second, if any, over "model"."""
    return lambda *arguments: function(*(constrain(x, *(D, M)[: x.ndim]) for x in arguments))


def lower(function: Function[Any], *arguments: Argument) -> Any:
    """The module of `function` over the grid."""
    return Program(function, arguments).module()


def partitioned(original: Any) -> Any:
    """The program of one device for `original`, which is kept."""
    module = original.clone()
    with capture():
        propagate(module)
        partition(module)
    return module


def assert_same(results: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    """Check that arrays are of the same types and close to each other; integers and booleans must be equal."""
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        difference = largest_difference([result], [wanted], [f"result {index}"])
        exact = np.dtype(wanted.dtype).kind in "biu"
        assert difference is None or difference.largest <= (0 if exact else tolerance * difference.scale), difference


def assert_same_as_whole(original: Any, local: Any, tolerance: float = 0.0) -> None:
    """Check that the module `local` of one device computes what `original`, of which it was made, does."""
    local_program, whole = compile(local), compile_unpartitioned(original)
    inputs = random_inputs(local_program.inputs, seed=0)
    assert_same(local_program(*inputs), whole(*inputs), tolerance)
