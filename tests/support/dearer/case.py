"""Small programs for `sdy.jit` and `jax.jit`: operands, a function, and shardings of operands and results."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sdy.type_helpers import Function
from small_scope.choices import Choices, NoCaseError

Array = np.ndarray[Any, np.dtype[Any]]
Layout = tuple[tuple[str, ...], ...]
"""The axes that shard each dimension, major to minor."""

MESHES = {"2": (2,), "4": (4,), "8": (8,), "2x2": (2, 2), "2x4": (2, 4), "2x2x2": (2, 2, 2)}
_NAMES = ("x", "y", "z")


@cache
def mesh_of(sizes: tuple[int, ...]) -> Mesh:
    """Return the mesh of these axis sizes, over the first devices."""
    axis_types = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(sizes, _NAMES[: len(sizes)], axis_types, devices=jax.devices()[: math.prod(sizes)])


@cache
def layouts(rank: int, axes: tuple[str, ...]) -> tuple[Layout, ...]:
    """Return every layout of a tensor of this rank over some of `axes`."""
    chosen = (
        order for count in range(len(axes) + 1) for each in combinations(axes, count) for order in permutations(each)
    )
    return tuple(layout for order in chosen for layout in _dealt(order, rank))


def _dealt(axes: tuple[str, ...], rank: int) -> Iterator[Layout]:
    if rank == 0:
        if not axes:
            yield ()
        return
    for count in range(len(axes) + 1):
        yield from ((axes[:count], *rest) for rest in _dealt(axes[count:], rank - 1))


@dataclass(frozen=True)
class Case:
    """A program, its operands, and the shardings that both compilers receive."""

    text: str
    whole: Callable[..., Any]
    """The unpartitioned program, without constraints."""
    function: Callable[..., Any]
    operands: Sequence[Array]
    in_shardings: Sequence[NamedSharding]
    out_shardings: Sequence[NamedSharding]

    @property
    def num_devices(self) -> int:
        """Number of devices of the mesh."""
        return self.out_shardings[0].mesh.size


@dataclass
class Draft:
    """Builder of a program for a mesh, driven by choices."""

    choices: Choices
    mesh: Mesh
    _operands: list[Array] = field(default_factory=list[Array])
    _layouts: list[Layout] = field(default_factory=list[Layout])

    def size(self, least: int = 1, most: int = 9) -> int:
        """Choose the size of a dimension."""
        return self.choices.of(range(least, most + 1))

    def shape(self, least_rank: int = 1, most_rank: int = 3) -> tuple[int, ...]:
        """Choose a shape."""
        return tuple(self.size() for _ in range(self.choices.of(range(least_rank, most_rank + 1))))

    def operand(self, shape: Sequence[int], dtype: str = "float32", numbers: Array | None = None) -> Array:
        """Add an operand with a chosen layout. `numbers` defaults to a permutation of small integers."""
        if numbers is None:
            count = math.prod(shape)
            numbers = (np.arange(count) * 7919 % 101 - 50).reshape(shape)
        self._operands.append(numbers.astype(dtype))
        self._layouts.append(self.layout(len(shape)))
        return self._operands[-1]

    def layout(self, rank: int) -> Layout:
        """Choose a layout."""
        return self.choices.of(layouts(rank, self.mesh.axis_names))

    def constrain(self, layout: Layout) -> Callable[[jax.Array], jax.Array]:
        """Return a function that constrains a value to `layout`, for intermediate values of a program."""
        return lambda value: lax.with_sharding_constraint(value, self._sharding(layout))

    def case(self, name: str, function: Function[Any]) -> Case:
        """Return the program that applies `function` to the operands, with results in chosen layouts.

        jax accepts only even shardings of arguments and results. An unevenly sharded operand is therefore a replicated
        argument followed by a constraint and a barrier; an unevenly sharded result is reduced to one weighted sum after
        its constraint.
        """
        results = jax.tree.leaves(jax.eval_shape(function, *self._operands))
        if not results or any(math.prod(result.shape) == 0 for result in results):
            raise NoCaseError
        result_layouts = [self.layout(len(result.shape)) for result in results]
        operands_even = [self._is_even(x.shape, at) for x, at in zip(self._operands, self._layouts, strict=True)]
        results_even = [self._is_even(x.shape, at) for x, at in zip(results, result_layouts, strict=True)]

        def whole(*operands: jax.Array) -> list[jax.Array]:
            outputs = jax.tree.leaves(function(*operands))
            return [out if even else _weighted_sum(out) for out, even in zip(outputs, results_even, strict=True)]

        def placed(*operands: jax.Array) -> list[jax.Array]:
            inputs = [
                operand if even else lax.optimization_barrier(self.constrain(layout)(operand))
                for operand, layout, even in zip(operands, self._layouts, operands_even, strict=True)
            ]
            outputs = jax.tree.leaves(function(*inputs))
            return [
                output if even else _weighted_sum(lax.optimization_barrier(self.constrain(layout)(output)))
                for output, layout, even in zip(outputs, result_layouts, results_even, strict=True)
            ]

        mesh = "x".join(map(str, self.mesh.axis_sizes))
        operand_texts = [_text(x, at) for x, at in zip(self._operands, self._layouts, strict=True)]
        result_texts = [_text(x, at) for x, at in zip(results, result_layouts, strict=True)]
        return Case(
            f"{name} on {mesh}: {', '.join(operand_texts)} -> {', '.join(result_texts)}",
            whole,
            placed,
            self._operands,
            [self._sharding(at if even else ()) for at, even in zip(self._layouts, operands_even, strict=True)],
            [self._sharding(at if even else ()) for at, even in zip(result_layouts, results_even, strict=True)],
        )

    def _is_even(self, shape: Sequence[int], layout: Layout) -> bool:
        return all(
            size % math.prod(self.mesh.shape[axis] for axis in axes) == 0
            for size, axes in zip(shape, layout, strict=True)
        )

    def _sharding(self, layout: Layout) -> NamedSharding:
        return NamedSharding(self.mesh, P(*(axes or None for axes in layout)))


def _weighted_sum(value: jax.Array) -> jax.Array:
    """Sum `value` with a different weight for each element, so that moved elements change the sum."""
    weights = jnp.arange(value.size).reshape(value.shape) % 13 + 1.0
    return (value * weights).sum()


def _text(value: Any, layout: Layout) -> str:
    dims = ", ".join(
        f"{size}/{'.'.join(axes)}" if axes else f"{size}" for size, axes in zip(value.shape, layout, strict=True)
    )
    return f"{value.dtype}[{dims}]"
