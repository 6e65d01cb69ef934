"""The `in_shardings` and `out_shardings` of a function.

They are pytrees, or prefixes, whose leaves are jax's `NamedSharding`, `PartitionSpec` or `Format`, an `sdy.Sharding`,
or None for arrays that the compiler shards. jax handles its own types; open dimensions, priorities and sub-axes of an
`sdy.Sharding` become constraints in the module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.experimental.layout import Format
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jax.tree_util import keystr, tree_flatten_with_path, tree_leaves, tree_map, tree_unflatten
from xdsl.dialects.builtin import TensorType, i1

from sdy.dialect.sharding_checks import sharding_problem
from sdy.mesh import Mesh
from sdy.passes.jax.device_mesh import AnyMesh, Device
from sdy.passes.jax.jax_internals import UnspecifiedValue
from sdy.passes.jax.sharding_constraint import constrain
from sdy.sharding import TensorSharding
from sdy.type_helpers import is_list

Tree: TypeAlias = Any


@dataclass(frozen=True)
class GivenShardings:
    """Shardings of arguments and results on `mesh`; each is None if not given."""

    mesh: AnyMesh | None
    arguments: Tree
    results: Tree

    @classmethod
    def of(cls, mesh: AnyMesh | Mesh | None, arguments: Tree, results: Tree) -> "GivenShardings":
        """Check the `mesh`, `in_shardings` and `out_shardings` of `sdy.jit`.

        An `sdy.Mesh` with more devices than jax has becomes an abstract mesh.

        Raises:
            TypeError: a value is not a mesh or a sharding; the message names the leaf.
            ValueError: a sharding is on another mesh.
        """
        arguments = tuple(arguments) if is_list(arguments) else arguments
        trees = {"in_shardings": arguments, "out_shardings": results}
        leaves = [(name + keystr(path), leaf) for name, tree in trees.items() for path, leaf in _with_paths(tree)]
        named = [(name, _sharding(leaf)) for name, leaf in leaves]
        given = next((leaf.mesh for _, leaf in named if _names_its_mesh(leaf)), None) if mesh is None else mesh
        common = _mesh_of_jax(given) if isinstance(given, Mesh) else given
        if not isinstance(common, jax.sharding.Mesh | AbstractMesh | None):
            allowed = "a jax.sharding.Mesh, an AbstractMesh or an sdy.Mesh"
            raise TypeError(f"mesh must be {allowed}, not {type(mesh).__name__}")
        for name, leaf in named:
            _check(leaf, name, common, is_given=mesh is not None)
        return cls(common, arguments, results)

    @property
    def ours(self) -> bool:
        """True if any of the shardings is an `sdy.Sharding`, which jax does not accept."""
        return any(
            isinstance(leaf, TensorSharding) for tree in (self.arguments, self.results) for leaf in _leaves(tree)
        )

    def for_jax(self) -> dict[str, Tree]:
        """Return the options `in_shardings` and `out_shardings` of `jax.jit`, without those that jax does not know."""

        def known(leaf: Any) -> Any:
            if isinstance(leaf, PartitionSpec) and self.mesh is not None:
                return NamedSharding(self.mesh, leaf)
            if isinstance(leaf, NamedSharding) and isinstance(leaf.mesh, AbstractMesh) and self.mesh is not None:
                return NamedSharding(self.mesh, leaf.spec)
            return None if isinstance(leaf, TensorSharding) else leaf

        trees = {"in_shardings": self.arguments, "out_shardings": self.results}
        return {name: tree_map(known, tree, is_leaf=_is_leaf) for name, tree in trees.items() if tree is not None}

    def check_sizes(self, arguments: Sequence[Any], names: Sequence[str]) -> None:
        """Raise ValueError, naming the array, for a sharding of too high a rank or that does not divide its dimension.

        jax reports shardings that are not a prefix of the arguments.

        Args:
            arguments: the positional arguments that are not static.
            names: the names of their parameters.
        """
        if self.arguments is None:
            return
        try:
            given = leaf_for_each(self.for_jax()["in_shardings"], tuple(arguments))
        except ValueError:
            return
        for (path, array), leaf in zip(tree_flatten_with_path(tuple(arguments))[0], given, strict=True):
            if isinstance(sharding := _sharding(leaf), NamedSharding):
                try:
                    sharding.check_compatible_aval(np.shape(array))
                    sharding.shard_shape(np.shape(array))
                except ValueError as problem:
                    raise ValueError(f"{names[path[0].idx]}{keystr(path[1:])}: {problem}") from problem

    def constrain_arguments(self, arguments: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """Constrain positional arguments, named as in `check_sizes`, to the shardings that jax does not know.

        Raises:
            ValueError: an array, which the message names, cannot have its sharding.
        """
        return self._constrained(
            self.arguments, tuple(arguments), lambda path: f"{names[path[0].idx]}{keystr(path[1:])}"
        )

    def constrain_results(self, results: Tree) -> Tree:
        """Constrain results to the shardings that jax does not know. Raises ValueError."""
        return self._constrained(self.results, results, lambda path: f"result{keystr(path)}")

    def _constrained(self, given: Tree, arrays: Tree, name: Callable[[Any], str]) -> Any:
        leaves, tree = tree_flatten_with_path(arrays)
        pairs = zip(leaf_for_each(given, arrays), leaves, strict=True)
        return tree_unflatten(tree, [self._constrained_leaf(leaf, array, name(path)) for leaf, (path, array) in pairs])

    def _constrained_leaf(self, leaf: Any, array: Any, name: str) -> Any:
        if not isinstance(leaf, TensorSharding) or self.mesh is None:
            return array
        mesh = Mesh.of(self.mesh)
        sharding = replace(leaf, mesh=mesh)
        if problem := sharding_problem(sharding, TensorType(i1, array.shape), mesh):
            raise ValueError(f"the sharding of {name}: {problem}")
        return constrain(array, sharding)


def _mesh_of_jax(mesh: Mesh) -> AnyMesh:
    """Return `mesh` as a mesh of jax over `jax.devices()`, or as an abstract mesh if there are too few."""
    devices = jax.devices()
    sizes = tuple(size for _, size in mesh.axes)
    types = (AxisType.Auto,) * len(sizes)
    if max(mesh.device_order(), default=0) >= len(devices):
        return AbstractMesh(sizes, mesh.axis_names, axis_types=types)
    grid = np.array([devices[index] for index in mesh.device_order()], dtype=object)
    return jax.sharding.Mesh(grid.reshape(sizes), mesh.axis_names, axis_types=types)


def _is_leaf(node: Any) -> bool:
    return node is None or isinstance(node, PartitionSpec)


def _with_paths(tree: Tree) -> list[tuple[Any, Any]]:
    return tree_flatten_with_path(tree, is_leaf=_is_leaf)[0]


def _leaves(tree: Tree) -> list[Any]:
    return tree_leaves(tree, is_leaf=_is_leaf)


def leaf_for_each(prefix: Tree, whole: Tree) -> list[Any]:
    """Return the leaf of `prefix` for each leaf of `whole`."""
    parts = tree_map(lambda leaf, part: [leaf] * len(tree_leaves(part)), prefix, whole, is_leaf=_is_leaf)
    return tree_leaves(parts, is_leaf=_is_leaf)


def _sharding(leaf: Any) -> Any:
    """Return the sharding of a leaf, without the memory layout of a `Format`."""
    return leaf.sharding if isinstance(leaf, Format) else leaf


def _names_its_mesh(leaf: Any) -> bool:
    return isinstance(leaf, NamedSharding) or (isinstance(leaf, TensorSharding) and isinstance(leaf.mesh, Mesh))


def _devices(mesh: AnyMesh) -> tuple[Device | int, ...]:
    """Return the devices, or the numbers of those of an abstract mesh."""
    return tuple(mesh.devices.flat if isinstance(mesh, jax.sharding.Mesh) else range(mesh.size))


def _same_devices(first: AnyMesh, second: AnyMesh) -> bool:
    if isinstance(first, AbstractMesh) != isinstance(second, AbstractMesh):
        return dict(first.shape) == dict(second.shape)
    return _devices(first) == _devices(second)


def _check(leaf: Any, name: str, mesh: AnyMesh | None, is_given: bool) -> None:
    match leaf:
        case NamedSharding():
            if is_given and mesh is not None and not _same_devices(leaf.mesh, mesh):
                raise ValueError(f"{name} is on the mesh {leaf.mesh}, whose devices are not those of {mesh}")
        case None | PartitionSpec() | jax.sharding.Sharding() | UnspecifiedValue():
            return
        case TensorSharding():
            if mesh is None:
                raise ValueError(f"{name} does not say its mesh: give it as mesh=...")
            axes = tuple(mesh.shape.items())
            if isinstance(leaf.mesh, Mesh) and leaf.mesh.axes != axes:
                raise ValueError(f"{name} is on a mesh with the axes {dict(leaf.mesh.axes)}, not {dict(axes)}")
        case _:
            allowed = "a NamedSharding, a PartitionSpec, a SingleDeviceSharding, an sdy.Sharding, a Format or None"
            raise TypeError(f"{name} must be {allowed}, not {type(leaf).__name__}")
