"""What this project needs of jax and jax does not offer, in the one place that may have to follow a new version."""

# jax's private parts are what this file is for.
# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import isfunction
from typing import Any

import numpy as np
from jax._src import compilation_cache, config, core, dispatch, dtypes, sharding_impls
from jax._src.custom_partitioning import _ShardingCallbackInfo
from jax._src.interpreters import mlir as lowering
from jax._src.interpreters import pxla
from jax._src.lax import linalg
from jax._src.lib import xla_client
from jax._src.named_sharding import UnspecifiedValue
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding
from jaxlib import gpu_solver
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from sdy.passes.jax.device_mesh import AnyMesh, Device


@dataclass(frozen=True)
class ToCompile:
    """A module that jax has lowered, of a function whose name jax gives as "jit(f)".

    It is for `devices`, in the order in which its meshes number them, if it is for any. Its arrays are on `meshes`,
    where these are known, and its lowering keeps objects alive, as lowering rules asked with `keep_alive`.
    """

    name: str
    module: ir.Module
    devices: tuple[Device, ...]
    meshes: tuple[AnyMesh, ...]
    kept_alive: tuple[Any, ...]

    @classmethod
    def of(cls, lowered: Any) -> "ToCompile":
        """That of a `jax.stages.Lowered`."""
        computation = lowered._lowering
        return cls.of_arguments(
            computation._name, computation._hlo, {**computation.compile_args, "device_list": computation._device_list}
        )

    @classmethod
    def of_arguments(cls, name: str, module: ir.Module, args: Mapping[str, Any]) -> "ToCompile":
        shardings = [*args["in_shardings"], *(args["intermediate_shardings"] or ()), *args["out_shardings"]]
        meshes = [sharding.mesh for sharding in shardings if isinstance(sharding, NamedSharding)]
        if args["context_mesh"] is not None and not args["context_mesh"].empty:
            meshes.append(args["context_mesh"])
        of_dims = args["shape_poly_state"]
        if of_dims is not None and of_dims.uses_dim_vars:
            # It calls what was exported for shapes that were not known; for those of its own arguments they are.
            module = lowering.refine_polymorphic_shapes(module)
        return cls(name, module, tuple(args["device_list"] or ()), tuple(meshes), tuple(args["keepalive"] or ()))

    @property
    def function(self) -> str:
        """The name of the function itself."""
        return self.name.removeprefix("jit(").removesuffix(")")

    @property
    def names_meshes(self) -> bool:
        """Whether the module speaks of meshes."""
        return any(op.operation.name == "sdy.mesh" for op in self.module.body.operations)

    @property
    def text(self) -> str:
        """The module as MLIR text, with what jax knows of where its operations come from."""
        return str(self.module.operation.get_asm(enable_debug_info=True))

    @cached_property
    def text_without_places(self) -> str:
        """The module as MLIR text, without where its operations come from."""
        return str(self.module.operation.get_asm())


def keep_alive(ctx: mlir.LoweringRuleContext, kept: Any) -> bool:
    """Let the program that is lowered keep an object alive, if it is not one that jax saves, which cannot."""
    if ctx.module_context.lowering_parameters.for_export:
        return False
    ctx.module_context.add_keepalive(kept)
    return True


def lowered_device_count(ctx: mlir.LoweringRuleContext) -> int | None:
    """For how many devices a program is lowered, where that is known: it is not in a manual computation."""
    return getattr(ctx.module_context.axis_context, "num_devices", None)


def sharding_questions(kept: Sequence[Any]) -> dict[bytes, Callable[[NamedSharding], None]]:
    """Of the objects that a lowering keeps alive, those that ask for shardings, by the name that a module has for them.

    The sharding has an entry for each dimension.
    """

    def ask(function: Callable[[Any], None]) -> Callable[[NamedSharding], None]:
        def answer(sharding: Any) -> None:
            function(sharding._to_xla_hlo_sharding(len(sharding.spec)))

        return answer

    return {xla_client.encode_inspect_sharding_callback(each): ask(each) for each in kept if isfunction(each)}


def custom_partitionings(kept: Sequence[Any]) -> dict[str, _ShardingCallbackInfo]:
    """Of the objects that a lowering keeps alive, those that partition an operation, by their name in a module.

    They have what `def_partition` was given, `partition`, with the trees that this is for, `in_tree` and `out_tree`,
    and the arguments before these, `static_args`.
    """
    return {str(id(each)): each for each in kept if isinstance(each, _ShardingCallbackInfo)}


def needs_devices_to_lower(primitive: Primitive) -> None:
    """Let jax know the devices of a program when it lowers what is bound to `primitive`."""
    dispatch.prim_requires_devices_during_lowering.add(primitive)


def initialize_libraries(targets: Iterable[str]) -> None:
    """Load the libraries of these targets that jax loads late, some of which crash where they are called before that.

    Those for sparse matrices, which take a fifth of a second, only where a target is theirs.
    """
    if any("sparse" in target for target in targets):
        import_module("jax.experimental.sparse")
    linalg.initialize_lapack()
    gpu_solver.initialize_hybrid_kernels()


def inlined(function: ir.OpView, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """The results of a function of one block for these arguments, its operations copied to where MLIR inserts."""
    return _jax_mlir_ext.inlined_func_call(function.operation, list(arguments))


@dataclass(frozen=True)
class Replacement:
    """What XLA compiles in place of a module that jax has lowered, and where its arguments and results lie.

    What each device runs takes the parts of arguments and gives those of results, and names the number of devices as
    that of replicas.
    """

    module: ir.Module
    inputs: Sequence[NamedSharding]
    outputs: Sequence[NamedSharding]


def before_xla_compiles(change: Callable[[ToCompile], Replacement | None]) -> None:
    """Let XLA compile what `change` makes of each module that jax has lowered, from now on.

    What `change` says of arguments and results counts where jax was told nothing. It returns None for what jax does.
    """
    compile_ = pxla.UnloadedMeshExecutable.from_hlo

    def from_hlo(name: str, hlo: ir.Module, *args: Any, **kwargs: Any) -> Any:
        lowered = ToCompile.of_arguments(name, hlo, kwargs)
        changed = change(lowered)
        if changed is None:
            return compile_(name, hlo, *args, **kwargs)
        changed.module.operation.attributes["sym_name"] = hlo.operation.attributes["sym_name"]
        kwargs["shape_poly_state"] = None  # its shapes are known
        for which, shardings in (("in", changed.inputs), ("out", changed.outputs)):
            given = zip(kwargs[f"{which}_shardings"], shardings, kwargs[f"global_{which}_avals"], strict=True)
            kwargs[f"{which}_shardings"] = tuple(_known(*each, lowered.meshes) for each in given)
        return compile_(name, changed.module, *args, **kwargs)

    pxla.UnloadedMeshExecutable.from_hlo = staticmethod(from_hlo)  # pyright: ignore[reportAttributeAccessIssue]
    _let_devices_be_replicas()


def _let_devices_be_replicas() -> None:
    """Let XLA compile for replicas where a module says that there are several; else jax makes partitions of devices."""
    untyped: Any = pxla
    options_of = untyped.create_compile_options

    def create_compile_options(computation: ir.Module, *args: Any) -> Any:
        options = options_of(computation, *args)
        count = computation.operation.attributes.get("mhlo.num_replicas")
        if isinstance(count, ir.IntegerAttr) and count.value > 1:
            *_, devices, _ = args
            options.num_replicas, options.num_partitions = count.value, 1
            ids = np.array([[device.id] for device in devices])
            options.device_assignment = xla_client.DeviceAssignment.create(ids)
        return options

    untyped.create_compile_options = create_compile_options


def _known(of_jax: Any, ours: NamedSharding, aval: Any, meshes: Sequence[AnyMesh]) -> Any:
    """Where an argument or a result lies: as jax is told, else as we say, on the first mesh that jax knows if it can.

    Of a key, jax sees what its numbers' last dimension leaves.
    """
    untyped: Any = lowering
    if not isinstance(of_jax, UnspecifiedValue) and not untyped.contains_unconstrained(of_jax):
        return of_jax
    kind = "pinned_host" if aval.memory_space is core.MemorySpace.Host else _default_memory(ours)
    known = next((mesh for mesh in meshes[:1] if isinstance(mesh, Mesh) and mesh.shape == ours.mesh.shape), ours.mesh)
    sharding = NamedSharding(known, ours.spec, memory_kind=kind)
    if dtypes.issubdtype(aval.dtype, dtypes.extended):
        untyped = sharding_impls
        return untyped.logical_sharding(aval.shape, aval.dtype, sharding)
    return sharding


def _default_memory(sharding: NamedSharding) -> str:
    return next(iter(sharding.device_set)).default_memory().kind


@dataclass(frozen=True)
class PersistentCache:
    """What jax keeps in files for later processes: bytes, by names. What took less than so many seconds is not kept.

    Both functions raise what reading and writing files raises.
    """

    get: Callable[[str], bytes | None]
    put: Callable[[str, bytes], None]
    least_seconds: float


def persistent_cache(devices: Sequence[Device]) -> PersistentCache | None:
    """jax's persistent compilation cache; None where a person has set none, or has turned it off."""
    if not devices or not compilation_cache.is_persistent_cache_enabled():
        return None
    device: Any = devices[0]
    untyped: Any = compilation_cache
    kept = untyped._get_cache(device.client)
    least: float = config.persistent_cache_min_compile_time_secs.value
    return None if kept is None else PersistentCache(kept.get, kept.put, least)


def on_devices(mesh: Mesh) -> AbstractContextManager[None]:
    """Let jax lower what it is not told of for the devices of `mesh`, within a `with` block."""
    return sharding_impls._internal_use_concrete_mesh(mesh)


def with_module(lowered: Any, module: ir.Module) -> Any:
    """The `jax.stages.Lowered` with `module` in place of its own."""
    lowered._lowering._hlo = module
    return lowered
