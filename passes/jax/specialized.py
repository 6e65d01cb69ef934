"""What `sdy.jit` makes of a function for arguments of certain types, trees and shardings."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer, eval_context
from jax.sharding import AbstractMesh, NamedSharding
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import device_count
from sdy.passes.jax.compiler import Compiler, compares_layouts, compilers_in, policy_of
from sdy.passes.jax.default_mesh import name_mesh
from sdy.passes.jax.device_mesh import AnyMesh, Device
from sdy.passes.jax.elapsed_time import elapsed_time_logged
from sdy.passes.jax.from_jax import from_jax
from sdy.passes.jax.given_shardings import GivenShardings, Tree
from sdy.passes.jax.jax_internals import (
    host_callbacks,
    is_committed,
    kept_alive,
    kept_arguments,
    key_impl,
    lowered_devices,
    ordered_effects,
)
from sdy.passes.jax.lowered_layouts import lowered_layouts
from sdy.passes.jax.sharded_program import ShardedProgram, WholeProgram, says_layout
from sdy.passes.layouts import cheapest


@dataclass(frozen=True)
class Specialized:
    """A module, the program made of it, the arguments that it takes, and the tree and types of its results.

    `name` is that of the function.
    """

    name: str
    module: ModuleOp
    program: ShardedProgram
    kept: tuple[int, ...]
    results: Tree
    types: tuple[ShapedArray, ...]

    @classmethod
    def of(
        cls,
        traced: jax.stages.Traced,
        shardings: Sequence[Any],
        given: GivenShardings,
        compilers: Sequence[Compiler],
        platforms: tuple[str, ...] | None = None,
    ) -> "Specialized":
        """Lower, propagate and partition, as `compilers` say, what was traced for arrays that have `shardings`.

        The platforms are those of the devices, or those that are given. Raises ValueError where it is for other devices
        than those of the mesh that is given, and DiagnosticError where it cannot be partitioned.
        """
        with eval_context():
            lowered = lower(traced, [given.mesh, *map(_mesh, shardings)], platforms)
        ordered = ordered_effects(lowered)
        has_devices = given.mesh is not None or is_committed(lowered)
        devices = _devices(lowered, given.mesh)
        like = _like(given.mesh, shardings)
        if has_devices and devices and like is not None and like.size != len(devices):
            like = None  # the program is for other devices than those of the context
        kept = kept_arguments(lowered)
        with elapsed_time_logged("parsing", traced.fun_name):
            module = from_jax(lowered)
        with elapsed_time_logged("propagation", traced.fun_name):
            given.write(module, traced.args_info, kept, traced.out_info, len(ordered))
            if has_devices and like is not None:
                name_mesh(module, like)
            compilers = [*compilers, *compilers_in(lowered)]
            layouts = lowered_layouts(
                module, policy_of(compilers), compares_layouts(compilers), devices, kept_alive(lowered)
            )
        with elapsed_time_logged("partitioning", traced.fun_name):
            layout = cheapest(layouts)
            if not has_devices and device_count(layout.local) > len(devices):
                has_devices, devices = True, ()  # those of an abstract mesh of the context
            kind = ShardedProgram if has_devices else WholeProgram
            program = kind.of(layout.local, devices, like, len(ordered))
        local = replace(
            program.local,
            results=tuple(map(_with_weak_type, program.local.results, traced.jaxpr.out_avals)),
            callbacks=host_callbacks(lowered),
            effects=frozenset(traced.jaxpr.effects),
            ordered=ordered,
        )
        program = replace(program, local=local)
        types = tuple(traced.jaxpr.out_avals)
        return cls(traced.fun_name, layout.module, program, kept, traced.out_info, types)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
        """Apply the program to traced arguments, among static ones."""
        arrays = [_plain(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tracer)]
        results, tree = tree_flatten(self.results)
        given = self.program(*(arrays[index] for index in self.kept))
        return tree_unflatten(tree, map(_typed, map(_laid_out, given, self.types), results))


def described(arguments: Tree, shardings: Sequence[Any]) -> Tree:
    """`arguments` with the type of each that is traced, and its sharding, in its place; others stay what they are."""

    def describe(leaf: Any, sharding: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf
        sharding = sharding if isinstance(sharding, NamedSharding) else None
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=jax.typeof(leaf).weak_type)

    leaves, tree = tree_flatten(arguments)
    return tree_unflatten(tree, map(describe, leaves, shardings or [None] * len(leaves)))


def _mesh(sharding: Any) -> AnyMesh | None:
    return sharding.mesh if isinstance(sharding, NamedSharding) else None


def lower(
    traced: jax.stages.Traced, meshes: Iterable[AnyMesh | None], platforms: tuple[str, ...] | None = None
) -> jax.stages.Lowered:
    """What jax lowers, on one of these meshes; where it is abstract, for the kind of devices that there are here."""
    if platforms is None and isinstance(next(filter(None, meshes), None), AbstractMesh):
        platforms = (jax.default_backend(),)
    return traced.lower(lowering_platforms=platforms)


def _like(given: AnyMesh | None, shardings: Sequence[Any]) -> AbstractMesh | None:
    """The mesh that is given, or that of the context, or that of the arrays."""
    if given is not None:
        return given.abstract_mesh
    of_context = jax.sharding.get_abstract_mesh()
    of_arrays = filter(None, map(_mesh, shardings))
    return next((mesh.abstract_mesh for mesh in of_arrays), None) if of_context.empty else of_context


def _devices(lowered: jax.stages.Lowered, mesh: AnyMesh | None) -> Sequence[Device]:
    """The devices of the mesh that is given, else those that jax lowered for; none where an abstract mesh has more."""
    devices = lowered_devices(lowered)
    if mesh is None:
        return devices
    if isinstance(mesh, AbstractMesh):
        return devices if len(devices) == mesh.size else ()
    given = tuple(mesh.devices.flat)
    if len(devices) > 1 and devices != given:
        raise ValueError(f"the program is for the devices {devices}, which are not those of mesh=..., {given}")
    return given


def _with_weak_type(local: ShapedArray, traced: Any) -> ShapedArray:
    return local.update(weak_type=traced.weak_type)


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def _plain(array: jax.Array) -> jax.Array:
    """The numbers of random keys, which are what a module knows of them."""
    return jax.random.key_data(array) if _is_key(array) else array


def _laid_out(array: jax.Array, wanted: ShapedArray) -> jax.Array:
    """A result whose type says how it is laid out, along axes of size one and of reductions too, if that is to be."""
    return jax.sharding.reshard(array, wanted.sharding) if says_layout(wanted.sharding.mesh) else array


def _typed(array: jax.Array, wanted: Any) -> jax.Array | np.ndarray[Any, Any]:
    """The numbers of a result as what jax traced: random keys, or nothing that could be a number."""
    if _is_key(wanted):
        return jax.random.wrap_key_data(array, impl=key_impl(wanted.dtype))
    return np.zeros(wanted.shape, wanted.dtype) if wanted.dtype == jax.dtypes.float0 else array
