"""Functions with arguments sharded over a mesh of eight devices, and sharding rules for trees of arrays.

A rule maps the path of an array in its tree, such as `layers/0/kernel`, and its shape to a PartitionSpec.
"""

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from partitioned_programs import CUBE, GRID, LINE, Program, X
from sdy.passes.jax.program.inputs import random_inputs
from sdy.type_helpers import Function

Rule: TypeAlias = Callable[[str, tuple[int, ...]], P]

WHOLE = P()

_SMALL = 1024
"""Arrays with fewer elements are replicated."""


@dataclass(frozen=True)
class Placed:
    """A function, its arguments (trees of arrays on the devices of `mesh`), and the mesh of the context to run in."""

    function: Function[Any]
    arguments: tuple[Any, ...]
    mesh: Mesh


Build: TypeAlias = Callable[[], Placed]
"""A function that builds a program lazily."""


def mesh_of(axes: Mapping[str, int]) -> Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def placed(function: Function[Any], *arguments: tuple[Any, Rule | P], mesh: Mapping[str, int] = LINE) -> Placed:
    """Place arguments for `function`, each given as a tree and the rule that shards its arrays."""
    devices = mesh_of(mesh)
    return Placed(function, tuple(place(devices, tree, rule) for tree, rule in arguments), devices)


def place(mesh: Mesh, tree: Any, rule: Rule | P) -> Any:
    """Put the arrays of `tree` on the devices of `mesh`, sharded by `rule` or all by one PartitionSpec."""

    def put(path: Any, leaf: Any) -> jax.Array:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        spec = rule if isinstance(rule, P) else rule(name, np.shape(leaf))
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    return jax.tree_util.tree_map_with_path(put, tree)


def of_corpus(program: Program) -> Placed:
    """Return a program of the tests' corpus with random arguments."""
    mesh = program.jax_mesh()
    described = [argument.on(mesh) for argument in program.arguments]
    arrays = random_inputs(described, seed=0)  # pyright: ignore[reportArgumentType]
    arguments = (jax.device_put(array, like.sharding) for array, like in zip(arrays, described, strict=True))
    return Placed(program.function, tuple(arguments), mesh)


def filled(described: Any) -> Any:
    """Fill a tree of shapes and types, as `jax.eval_shape` of an initializer returns it; faster than to run this.

    Scales and variances, by name, are one; integers and the states of optimizers are zero. All other numbers are
    normally distributed with small variance.
    """

    def fill(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.split(jax.random.key(0), leaf.shape) if leaf.shape else jax.random.key(0)
        if not jnp.issubdtype(leaf.dtype, np.floating):
            return np.zeros(leaf.shape, leaf.dtype)
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if "opt_state" in name:
            return np.zeros(leaf.shape, leaf.dtype)
        if re.search(r"scale|var", name.rpartition("/kernel")[2]):
            return np.ones(leaf.shape, leaf.dtype)
        fan_in = math.prod(leaf.shape[:-1]) if len(leaf.shape) > 1 else 1024
        return normal(*leaf.shape, seed=zlib.crc32(name.encode()), scale=fan_in**-0.5).astype(leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, described)


def fully_sharded(*axes: str, mesh: Mapping[str, int] = LINE) -> Rule:
    """Return a rule that shards each array, unless small, along its largest dimension that `axes` divide."""
    axes = axes or (X,)
    parts = math.prod(mesh[axis] for axis in axes)

    def rule(path: str, shape: tuple[int, ...]) -> P:
        dimensions = [i for i, size in enumerate(shape) if size % parts == 0]
        if math.prod(shape) < _SMALL or not dimensions:
            return P()
        largest = max(dimensions, key=lambda i: shape[i])
        return P(*[None] * largest, axes)

    return rule


def by_name(specs: Mapping[str, Rule | P], otherwise: Rule | P = WHOLE) -> Rule:
    """Return a rule that applies the first spec whose regular expression matches the path and whose rank fits."""

    def spec(said: Rule | P, path: str, shape: tuple[int, ...]) -> P:
        return said if isinstance(said, P) else said(path, shape)

    def rule(path: str, shape: tuple[int, ...]) -> P:
        for pattern, said in specs.items():
            if re.search(pattern, path) and math.prod(shape) > 1:
                found = spec(said, path, shape)
                if len(found) <= len(shape):
                    return found
        return spec(otherwise, path, shape)

    return rule


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def integers(*shape: int, below: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)


__all__ = [
    "CUBE",
    "GRID",
    "LINE",
    "WHOLE",
    "Build",
    "Placed",
    "Rule",
    "by_name",
    "filled",
    "fully_sharded",
    "integers",
    "normal",
    "of_corpus",
    "place",
    "placed",
]
