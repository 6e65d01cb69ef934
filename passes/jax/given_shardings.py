"""The shardings that a person gives for the arguments or the results of a function.

They come as a pytree, or a prefix of one, whose leaves are jax's `NamedSharding` or `PartitionSpec`, this project's
`Sharding`, or None for what the compiler is to decide. A `Format` of jax says the layout in memory besides, which is
jax's affair. jax takes its own, and what it does not know, open dimensions,
priorities and sub-axes, is written into the module.
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
from sdy.type_guards import is_list

Tree: TypeAlias = Any


@dataclass(frozen=True)
class GivenShardings:
    """Shardings of arguments and results on `mesh`, None where nothing is given; an abstract mesh has no devices."""

    mesh: AnyMesh | None
    arguments: Tree
    results: Tree

    @classmethod
    def of(cls, mesh: AnyMesh | Mesh | None, arguments: Tree, results: Tree) -> "GivenShardings":
        """What `sdy.jit` was given as `mesh`, `in_shardings` and `out_shardings`.

        An `sdy.Mesh` that has more devices than there are is an abstract mesh. Raises TypeError for what is no mesh or
        no sharding, ValueError for a sharding on another mesh; where it is one of many, the message says which.
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
        """Whether any of them is one that jax does not know."""
        return any(
            isinstance(leaf, TensorSharding) for tree in (self.arguments, self.results) for leaf in _leaves(tree)
        )

    def for_jax(self) -> dict[str, Tree]:
        """The options `in_shardings` and `out_shardings` of `jax.jit`, with what it knows of them."""

        def known(leaf: Any) -> Any:
            if isinstance(leaf, PartitionSpec) and self.mesh is not None:
                return NamedSharding(self.mesh, leaf)
            if isinstance(leaf, NamedSharding) and isinstance(leaf.mesh, AbstractMesh) and self.mesh is not None:
                return NamedSharding(self.mesh, leaf.spec)
            return None if isinstance(leaf, TensorSharding) else leaf

        trees = {"in_shardings": self.arguments, "out_shardings": self.results}
        return {name: tree_map(known, tree, is_leaf=_is_leaf) for name, tree in trees.items() if tree is not None}

    def check_sizes(self, arguments: Sequence[Any], names: Sequence[str]) -> None:
        """Raise ValueError, naming the array, for a sharding of too high a rank or into parts that are not equal.

        Shardings that are no prefix of the arguments are left to jax, which says so.
        `arguments` are the positional ones of a function that are not static, and `names` how it calls them.
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
        """Positional arguments, named as in `check_sizes`, laid out as jax was not told.

        Raises ValueError, naming the array, for a sharding that it cannot have.
        """
        return self._constrained(
            self.arguments, tuple(arguments), lambda path: f"{names[path[0].idx]}{keystr(path[1:])}"
        )

    def constrain_results(self, results: Tree) -> Tree:
        """As `constrain_arguments`, of results."""
        return self._constrained(self.results, results, lambda path: f"result{keystr(path)}")

    def _constrained(self, given: Tree, arrays: Tree, name: Callable[[Any], str]) -> Any:
        leaves, tree = tree_flatten_with_path(arrays)
        pairs = zip(leaf_for_each(given, arrays), leaves, strict=True)
        return tree_unflatten(tree, [self._constrained_leaf(leaf, array, name(path)) for leaf, (path, array) in pairs])

    def _constrained_leaf(self, leaf: Any, array: Any, name: str) -> Any:
        if not isinstance(leaf, TensorSharding) or self.mesh is None:
            return array
        mesh = Mesh.of(dict(self.mesh.shape))
        sharding = replace(leaf, mesh=mesh)
        if problem := sharding_problem(sharding, TensorType(i1, array.shape), mesh):
            raise ValueError(f"the sharding of {name}: {problem}")
        return constrain(array, sharding)


def _mesh_of_jax(mesh: Mesh) -> AnyMesh:
    """`mesh` over the devices of jax, which it numbers; an abstract mesh where there are too few."""
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
    """The leaf of `prefix` for each leaf of `whole`."""
    parts = tree_map(lambda leaf, part: [leaf] * len(tree_leaves(part)), prefix, whole, is_leaf=_is_leaf)
    return tree_leaves(parts, is_leaf=_is_leaf)


def _sharding(leaf: Any) -> Any:
    """What is said of the sharding by a leaf that may also say how a device lays out its part in memory."""
    return leaf.sharding if isinstance(leaf, Format) else leaf


def _names_its_mesh(leaf: Any) -> bool:
    return isinstance(leaf, NamedSharding) or (isinstance(leaf, TensorSharding) and isinstance(leaf.mesh, Mesh))


def _devices(mesh: AnyMesh) -> tuple[Device | int, ...]:
    """The devices, of an abstract mesh their numbers."""
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
