"""What this project needs of jax and jax does not offer, in the one place that may have to follow a new version."""

# jax's private parts are what this file is for.
# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import isfunction
from typing import Any, NamedTuple, cast

from jax._src import compilation_cache, config, core, dispatch, dtypes, sharding_impls
from jax._src import mesh as mesh_lib
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
    where these are known, and its lowering keeps objects alive, as lowering rules asked with `keep_alive`. Its custom
    calls of Python functions number those of `callbacks`.
    """

    name: str
    module: ir.Module
    devices: tuple[Device, ...]
    meshes: tuple[AnyMesh, ...]
    kept_alive: tuple[Any, ...]
    callbacks: tuple[Any, ...]

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
        kept_alive, callbacks = tuple(args["keepalive"] or ()), tuple(args["host_callbacks"])
        return cls(name, module, tuple(args["device_list"] or ()), tuple(meshes), kept_alive, callbacks)

    @property
    def function(self) -> str:
        """The name of the function itself."""
        return self.name.removeprefix("jit(").removesuffix(")")

    @property
    def names_meshes(self) -> bool:
        """Whether the module speaks of meshes."""
        return any(op.operation.name == "sdy.mesh" for op in self.module.body.operations)

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


def lower_with_placements(traced: Any, **options: Any) -> Any:
    """Lower a `jax.stages.Traced`, and keep the moves between the memories of the host and of the device.

    For a CPU, which has one memory, jax lowers `jax.device_put` to nothing; an analysis of the program needs it.
    """
    rule = cast(Any, dispatch._tpu_gpu_device_put_lowering)  # pyright: ignore[reportUnknownMemberType]
    rules = ((dispatch.device_put_p, rule),)
    return traced.lower(_private_parameters=lowering.LoweringParameters(override_lowering_rules=rules), **options)


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


class ForXla(NamedTuple):
    """A module for XLA to compile, the shardings of its results, and the Python functions that its calls number."""

    module: ir.Module
    shardings: Sequence[NamedSharding]
    callbacks: tuple[Any, ...]


def before_xla_compiles(change: Callable[[ToCompile], ForXla | None]) -> None:
    """Let XLA compile what `change` makes of each module that jax has lowered, from now on.

    Its shardings are those of results that jax was given no sharding for. None is for what jax does.
    """
    compile_ = pxla.UnloadedMeshExecutable.from_hlo

    def from_hlo(name: str, hlo: ir.Module, *args: Any, **kwargs: Any) -> Any:
        lowered = ToCompile.of_arguments(name, hlo, kwargs)
        changed = change(lowered)
        if changed is None:
            return compile_(name, hlo, *args, **kwargs)
        kwargs["shape_poly_state"] = None  # its shapes are known
        kwargs["host_callbacks"] = list(changed.callbacks)
        given = zip(kwargs["out_shardings"], changed.shardings, kwargs["global_out_avals"], strict=True)
        kwargs["out_shardings"] = tuple(_known(*each, lowered.meshes) for each in given)
        with config.use_shardy_partitioner(True):  # whose operation a manual computation is
            return compile_(name, changed.module, *args, **kwargs)

    pxla.UnloadedMeshExecutable.from_hlo = staticmethod(from_hlo)  # pyright: ignore[reportAttributeAccessIssue]


def _known(of_jax: Any, ours: NamedSharding, aval: Any, meshes: Sequence[AnyMesh]) -> Any:
    """Where a result lies: as jax is told, or as it finds of what XLA says, if that is on the first mesh it knows."""
    is_key = aval is not core.abstract_token and dtypes.issubdtype(aval.dtype, dtypes.extended)
    if not isinstance(of_jax, UnspecifiedValue) or is_key or not meshes or meshes[0].shape == ours.mesh.shape:
        return of_jax
    device = next(iter(ours.device_set))
    return NamedSharding(ours.mesh, ours.spec, memory_kind=device.default_memory().kind)


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


def trace_context() -> Hashable:
    """Return the configuration and the mesh of `jax.set_mesh` that what jax traces depends on."""
    return config.trace_context()


@contextmanager
def without_mesh() -> Generator[None]:
    """Trace and lower as if `jax.set_mesh` had set no mesh, within a `with` block."""
    no_devices = sharding_impls._internal_use_concrete_mesh(mesh_lib.empty_concrete_mesh)
    with no_devices, mesh_lib.use_abstract_mesh(mesh_lib.empty_abstract_mesh):
        yield


def with_module(lowered: Any, module: ir.Module) -> Any:
    """The `jax.stages.Lowered` with `module` in place of its own."""
    lowered._lowering._hlo = module
    return lowered
