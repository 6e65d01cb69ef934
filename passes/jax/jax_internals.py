"""Adapters for private parts of jax: the one file that follows changes of jax's internals."""

# jax's private parts are what this file is for.
# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false
from collections.abc import Callable, Container, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from inspect import isfunction
from typing import Any, NamedTuple, Protocol, cast

import jax
from jax._src import compilation_cache, config, core, dispatch, dtypes, sharding_impls
from jax._src import mesh as mesh_lib
from jax._src.custom_partitioning import _ShardingCallbackInfo
from jax._src.interpreters import mlir as lowering
from jax._src.interpreters import pxla
from jax._src.lax import linalg
from jax._src.lib import xla_client
from jax._src.named_sharding import UnspecifiedValue
from jax.extend.core import Primitive, jaxpr_as_fun, jaxprs_in_params
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding
from jaxlib import gpu_solver
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from sdy.passes.jax.device_mesh import AnyMesh, Device


@dataclass(frozen=True)
class ToCompile:
    """A module lowered by jax, before XLA compiles it.

    Attributes:
        name: jax's name of the function, "jit(f)".
        module: the lowered module.
        devices: the devices, in the order in which the meshes number them; may be empty.
        meshes: the known meshes of its arrays.
        kept_alive: objects that lowering rules attached with `keep_alive`.
        callbacks: Python functions that custom calls refer to by index.
    """

    name: str
    module: ir.Module
    devices: tuple[Device, ...]
    meshes: tuple[AnyMesh, ...]
    kept_alive: tuple[Any, ...]
    callbacks: tuple[Any, ...]

    @classmethod
    def of(cls, lowered: Any) -> "ToCompile":
        """Return the module of a `jax.stages.Lowered`."""
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
            # It calls a program that was exported with symbolic shapes, which the argument shapes determine.
            module = lowering.refine_polymorphic_shapes(module)
        kept_alive, callbacks = tuple(args["keepalive"] or ()), tuple(args["host_callbacks"])
        return cls(name, module, tuple(args["device_list"] or ()), tuple(meshes), kept_alive, callbacks)

    @property
    def function(self) -> str:
        """The name of the function itself."""
        return self.name.removeprefix("jit(").removesuffix(")")

    @property
    def names_meshes(self) -> bool:
        """True if the module has a mesh operation."""
        return any(op.operation.name == "sdy.mesh" for op in self.module.body.operations)

    @cached_property
    def text_without_places(self) -> str:
        """The module as MLIR text without locations."""
        return str(self.module.operation.get_asm())


def keep_alive(ctx: mlir.LoweringRuleContext, kept: Any) -> bool:
    """Attach an object to the program that is being lowered. Returns false for `jax.export`, which cannot keep it."""
    if ctx.module_context.lowering_parameters.for_export:
        return False
    ctx.module_context.add_keepalive(kept)
    return True


def lowered_device_count(ctx: mlir.LoweringRuleContext) -> int | None:
    """Return the number of devices that a program is lowered for; None in a manual computation."""
    return getattr(ctx.module_context.axis_context, "num_devices", None)


def sharding_questions(kept: Sequence[Any]) -> dict[bytes, Callable[[NamedSharding], None]]:
    """Return the callbacks of `jax.debug.inspect_array_sharding` among kept objects, by their key in the module.

    They take a sharding with an entry for each dimension.
    """

    def ask(function: Callable[[Any], None]) -> Callable[[NamedSharding], None]:
        def answer(sharding: Any) -> None:
            function(sharding._to_xla_hlo_sharding(len(sharding.spec)))

        return answer

    return {xla_client.encode_inspect_sharding_callback(each): ask(each) for each in kept if isfunction(each)}


def custom_partitionings(kept: Sequence[Any]) -> dict[str, _ShardingCallbackInfo]:
    """Return the callbacks of `custom_partitioning` among kept objects, by their name in the module.

    Each has the `partition` function of `def_partition`, its trees `in_tree` and `out_tree`, and its `static_args`.
    """
    return {str(id(each)): each for each in kept if isinstance(each, _ShardingCallbackInfo)}


def lower_with_placements(traced: Any, **options: Any) -> Any:
    """Lower a `jax.stages.Traced` with its transfers between host and device memory.

    For a CPU, which has one memory, jax lowers `jax.device_put` to nothing; an analysis of the program needs it. A
    program on abstract meshes alone, for which jax needs the name of a platform, is lowered for that of the local
    devices.
    """
    rule = cast(Any, dispatch._tpu_gpu_device_put_lowering)  # pyright: ignore[reportUnknownMemberType]
    rules = ((dispatch.device_put_p, rule),)
    lower = partial(traced.lower, _private_parameters=lowering.LoweringParameters(override_lowering_rules=rules))
    try:
        return lower(**options)
    except ValueError as problem:
        if "only AbstractMesh exists" not in str(problem):
            raise
    return lower(lowering_platforms=(jax.default_backend(),), **options)


def function_of(jaxpr: Any) -> Callable[..., Any]:
    """Return the function of a closed jaxpr."""
    return jaxpr_as_fun(jaxpr)


def label_equation(equation: Any, label: str) -> Any:
    """Return an equation whose lowered operations have `label` in their locations."""
    source = equation.source_info
    return equation.replace(source_info=source.replace(name_stack=source.name_stack.extend(label)))


def kept_arguments(lowered: Any) -> Sequence[int]:
    """Return the numbers of the arguments of a `jax.stages.Lowered` that its module has, in order."""
    return sorted(lowered._lowering.compile_args["kept_var_idx"])


def needs_devices_to_lower(primitive: Primitive) -> None:
    """Make jax pass the devices of a program to the lowering rule of `primitive`."""
    dispatch.prim_requires_devices_during_lowering.add(primitive)


def initialize_libraries(targets: Iterable[str]) -> None:
    """Load the libraries of these targets that jax loads lazily; some crash if called before.

    The library of sparse matrices, which takes 0.2 s to load, is loaded only for its own targets.
    """
    if any("sparse" in target for target in targets):
        import_module("jax.experimental.sparse")
    linalg.initialize_lapack()
    gpu_solver.initialize_hybrid_kernels()


def inlined(function: ir.OpView, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Inline a function of one block at the current insertion point and return its results."""
    return _jax_mlir_ext.inlined_func_call(function.operation, list(arguments))


class ForXla(NamedTuple):
    """A program for XLA."""

    module: ir.Module
    """The module."""
    shardings: Sequence[NamedSharding]
    """The shardings of its results."""
    callbacks: tuple[Any, ...]
    """The Python functions that its custom calls refer to."""
    memory: int
    """The predicted memory of a device in bytes, if the program was rematerialized for a limit; otherwise 0."""


class Executable(Protocol):
    """A program compiled by XLA: the part of `jax.stages.Executable` that sdy reads."""

    def memory_analysis(self) -> Any:
        """Return XLA's memory statistics of a device, or None."""
        ...


def executable_of(compiled: Any) -> Executable:
    """Return the executable of a `jax.stages.Compiled`."""
    return compiled._executable


CompileByXla = Callable[[ForXla, Mapping[str, str]], Executable]
"""Compiles a module with XLA, with default values of XLA's options."""


def replace_compilation(compile_instead: Callable[[ToCompile, CompileByXla], Executable | None]) -> None:
    """Install a hook that compiles the modules lowered by jax.

    The hook may compile other modules by its second argument; their shardings apply to results without a sharding in
    jax. It returns None to compile the module unchanged.
    """
    compile_ = pxla.UnloadedMeshExecutable.from_hlo

    def from_hlo(name: str, hlo: ir.Module, *args: Any, **kwargs: Any) -> Any:
        lowered = ToCompile.of_arguments(name, hlo, kwargs)

        def compile_by_xla(changed: ForXla, options: Mapping[str, str]) -> Executable:
            given = zip(kwargs["out_shardings"], changed.shardings, kwargs["global_out_avals"], strict=True)
            changes = {
                "shape_poly_state": None,  # its shapes are known
                "host_callbacks": list(changed.callbacks),
                "out_shardings": tuple(_known(*each, lowered.meshes) for each in given),
                "compiler_options_kvs": (*options.items(), *kwargs["compiler_options_kvs"]),
            }
            with config.use_shardy_partitioner(True):  # a manual computation is an operation of Shardy
                return compile_(name, changed.module, *args, **{**kwargs, **changes})

        executable = compile_instead(lowered, compile_by_xla)
        return compile_(name, hlo, *args, **kwargs) if executable is None else executable

    pxla.UnloadedMeshExecutable.from_hlo = staticmethod(from_hlo)  # pyright: ignore[reportAttributeAccessIssue]


def _known(of_jax: Any, ours: NamedSharding, aval: Any, meshes: Sequence[AnyMesh]) -> Any:
    """Return the sharding of a result: jax's, if it has one or derives it from XLA on its first mesh, else `ours`."""
    is_key = aval is not core.abstract_token and dtypes.issubdtype(aval.dtype, dtypes.extended)
    if not isinstance(of_jax, UnspecifiedValue) or is_key or not meshes or meshes[0].shape == ours.mesh.shape:
        return of_jax
    device = next(iter(ours.device_set))
    return NamedSharding(ours.mesh, ours.spec, memory_kind=device.default_memory().kind)


@dataclass(frozen=True)
class PersistentCache:
    """jax's persistent cache: bytes by name, for programs that took at least `least_seconds` to compile.

    Both functions raise the errors of reading and writing files.
    """

    get: Callable[[str], bytes | None]
    put: Callable[[str, bytes], None]
    least_seconds: float


def persistent_cache(devices: Sequence[Device]) -> PersistentCache | None:
    """Return jax's persistent compilation cache, or None if it is not set or disabled."""
    if not devices or not compilation_cache.is_persistent_cache_enabled():
        return None
    device: Any = devices[0]
    untyped: Any = compilation_cache
    kept = untyped._get_cache(device.client)
    least: float = config.persistent_cache_min_compile_time_secs.value
    return None if kept is None else PersistentCache(kept.get, kept.put, least)


def on_devices(mesh: Mesh) -> AbstractContextManager[None]:
    """Make `mesh` the devices that jax lowers for by default, in a `with` block."""
    return sharding_impls._internal_use_concrete_mesh(mesh)


def trace_context() -> Hashable:
    """Return the configuration and the mesh of `jax.set_mesh`, by which jax caches traces."""
    return config.trace_context()


@contextmanager
def without_mesh() -> Generator[None]:
    """Trace and lower without the mesh of `jax.set_mesh`, in a `with` block."""
    no_devices = sharding_impls._internal_use_concrete_mesh(mesh_lib.empty_concrete_mesh)
    with no_devices, mesh_lib.use_abstract_mesh(mesh_lib.empty_abstract_mesh):
        yield


def with_module(lowered: Any, module: ir.Module) -> Any:
    """Return `lowered`, a `jax.stages.Lowered`, with its module replaced."""
    lowered._lowering._hlo = module
    return lowered


def equations_of(jaxpr: Any, opaque: Container[str] = ()) -> Iterator[Any]:
    """Yield the equations of `jaxpr`, a `Jaxpr` or `ClosedJaxpr`, and of the jaxprs in their parameters.

    Args:
        jaxpr: The jaxpr to walk.
        opaque: Names of primitives whose own jaxprs are skipped.
    """
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        if equation.primitive.name not in opaque:
            for inner in jaxprs_in_params(equation.params):
                yield from equations_of(inner, opaque)


def names_of_arguments(jaxpr: Any) -> dict[str, int]:
    """Return the position of each argument of `jaxpr` by its name in the jitted function that takes most of them."""
    calls = [each for each in jaxpr.eqns if each.primitive.name in ("jit", "pjit")]
    call = max(calls, key=lambda each: len(each.invars))
    positions = {value: index for index, value in enumerate(jaxpr.jaxpr.invars)}
    names = call.params["jaxpr"].jaxpr.debug_info.arg_names
    pairs = zip(names, call.invars, strict=True)
    return {
        name: positions[value] for name, value in pairs if not isinstance(value, core.Literal) and value in positions
    }
