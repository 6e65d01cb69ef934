"""Data model of the programs with a planted mistake."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from sdy.type_helpers import Function

GRID = {"data": 4, "model": 2}
MISTAKE = "# mistake"


def tensor(*shape: int, split: P | None = None, dtype: str = "float32") -> "Tensor":
    """Return an argument with a sharding, or without one."""
    return Tensor(shape, split, dtype)


@dataclass(frozen=True)
class Tensor:
    """Shape, sharding and element type of an argument."""

    shape: tuple[int, ...]
    split: P | None = None
    dtype: str = "float32"

    def on(self, mesh: jax.sharding.Mesh) -> jax.ShapeDtypeStruct:
        sharding = None if self.split is None else NamedSharding(mesh, self.split)
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=sharding)


@dataclass(frozen=True)
class Written:
    """A function and its arguments, trees of `Tensor`s."""

    function: Function[Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...] = ()
    results: Any = None
    """The shardings of the results, a tree of partition specs; None leaves them to the compiler."""
    mesh: Mapping[str, int] = field(default_factory=lambda: GRID)
    axis_type: AxisType = AxisType.Auto

    def lowered(self) -> jax.stages.Lowered:
        """Lower the function with JAX."""
        return self.lowered_by(jax.jit)

    def lowered_by(self, jit: Callable[..., Any]) -> Any:
        """Lower the function with `jax.jit` or `sdy.jit`."""
        mesh = jax.make_mesh(tuple(self.mesh.values()), tuple(self.mesh), axis_types=(self.axis_type,) * len(self.mesh))
        is_tensor: Callable[[Any], bool] = lambda leaf: isinstance(leaf, Tensor)  # noqa: E731
        arguments = jax.tree.map(lambda each: each.on(mesh), self.arguments, is_leaf=is_tensor)
        options: dict[str, Any] = {"donate_argnums": self.donated}
        if self.results is not None:
            options["out_shardings"] = jax.tree.map(lambda spec: NamedSharding(mesh, spec), self.results)
        with jax.set_mesh(mesh):
            return jit(self.function, **options).lower(*arguments)


@dataclass(frozen=True)
class Planted:
    """A program with a mistake that `rule` finds, and the corrected program.

    `thread` is the forum or issue thread that reports the mistake, empty if none is known.
    """

    rule: str
    thread: str
    mistaken: Written
    cured: Written
    at: Function[Any] | None = None
    """The function that contains the mistake, if it is not the lowered one."""

    def line(self) -> tuple[str, int]:
        """Return the file and the line of the mistake."""
        function = self.at or self.mistaken.function
        lines, first = inspect.getsourcelines(function)
        (number,) = (number for number, line in enumerate(lines) if MISTAKE in line)
        return str(inspect.getsourcefile(function)), first + number
