"""What this project needs of jax and jax does not offer, in the one place that may have to follow a new version."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import isfunction
from typing import Any

from jax._src import core, dispatch
from jax._src.custom_partitioning import _ShardingCallbackInfo
from jax._src.interpreters import pxla
from jax._src.lax import linalg
from jax._src.lib import xla_client  # pyright: ignore[reportPrivateImportUsage]
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import NamedSharding
from jaxlib import gpu_solver
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from sdy.passes.jax.device_mesh import Device


def lowered_devices(lowered: Any) -> tuple[Device, ...]:
    """The devices, in the order in which its meshes number them, of a `jax.stages.Lowered`; none if it is for none."""
    return tuple(lowered._lowering._device_list or ())


def is_committed(lowered: Any) -> bool:
    """Whether a `jax.stages.Lowered` is for certain devices, rather than for wherever uncommitted arrays are used."""
    return lowered._lowering.compile_args["committed"]


def host_callbacks(lowered: Any) -> tuple[Callable[..., Any], ...]:
    """The Python functions, in the order in which its custom calls number them, of a `jax.stages.Lowered`."""
    return tuple(lowered._lowering.compile_args["host_callbacks"])


def ordered_effects(lowered: Any) -> tuple[Any, ...]:
    """The effects whose order a `jax.stages.Lowered` keeps, with tokens that it takes and gives."""
    return tuple(lowered._lowering.compile_args["ordered_effects"])


def keep_alive(ctx: mlir.LoweringRuleContext, kept: Any) -> bool:
    """Let the program that is lowered keep an object alive, if it is not one that jax saves, which cannot."""
    if ctx.module_context.lowering_parameters.for_export:
        return False
    ctx.module_context.add_keepalive(kept)
    return True


def kept_alive(lowered: Any) -> tuple[Any, ...]:
    """The objects that the program of a `jax.stages.Lowered` keeps alive, as its lowering rules asked."""
    return tuple(lowered._lowering.compile_args["keepalive"] or ())


def sharding_questions(kept: Sequence[Any]) -> dict[bytes, Callable[[NamedSharding], None]]:
    """Of the objects that a lowering keeps alive, those that ask for shardings, by the name that a module has for them.

    The sharding has an entry for each dimension.
    """

    def ask(function: Callable[[Any], None]) -> Callable[[NamedSharding], None]:
        return lambda sharding: function(sharding._to_xla_hlo_sharding(len(sharding.spec)))

    return {xla_client.encode_inspect_sharding_callback(each): ask(each) for each in kept if isfunction(each)}


def custom_partitionings(kept: Sequence[Any]) -> dict[str, _ShardingCallbackInfo]:
    """Of the objects that a lowering keeps alive, those that partition an operation, by their name in a module.

    They have what `def_partition` was given, `partition`, with the trees that this is for, `in_tree` and `out_tree`,
    and the arguments before these, `static_args`.
    """
    return {str(id(each)): each for each in kept if isinstance(each, _ShardingCallbackInfo)}


def kept_arguments(lowered: Any) -> tuple[int, ...]:
    """The places of the arguments that the module of a `jax.stages.Lowered` takes, which leaves out unused ones."""
    return tuple(sorted(lowered._lowering.compile_args["kept_var_idx"]))


def check_closed_over(traced: Any) -> None:
    """Refuse what the function of a `jax.stages.Traced`, traced where nothing else was, closes over and is no array.

    Raises UnexpectedTracerError for what another function that was traced has let escape, TypeError for the rest.
    """
    for closed_over in getattr(traced, "_consts", ()):
        if isinstance(closed_over, core.Tracer):
            raise core.escaped_tracer_error(closed_over)
        kind = type(closed_over).__name__
        raise TypeError(f"{traced.fun_name} closes over a value of the type {kind}, which sdy.jit cannot compile yet")


def key_impl(dtype: Any) -> str:
    """The name of the generator whose keys are the elements of this type."""
    return dtype._impl.name


def needs_devices_to_lower(primitive: Primitive) -> None:
    """Let jax know the devices of a program when it lowers what is bound to `primitive`."""
    dispatch.prim_requires_devices_during_lowering.add(primitive)


def initialize_libraries() -> None:
    """Load the libraries of custom calls that jax loads late, some of which crash where they are called before that."""
    import_module("jax.experimental.sparse")
    linalg.initialize_lapack()
    gpu_solver.initialize_hybrid_kernels()


def inlined(function: ir.OpView, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """The results of a function of one block for these arguments, its operations copied to where MLIR inserts."""
    return _jax_mlir_ext.inlined_func_call(function.operation, list(arguments))


def before_xla_compiles(change: Callable[[str, ir.Module, tuple[Device, ...], Sequence[Any]], ir.Module]) -> None:
    """Let XLA compile what `change` makes of each module that jax has lowered, from now on.

    It is called with the name of the function, as "jit(f)", with the module, the devices that it is for, and the
    objects that its lowering keeps alive, as lowering rules asked with `keep_alive`.
    """
    compile_ = pxla.UnloadedMeshExecutable.from_hlo

    def from_hlo(name: str, hlo: ir.Module, *args: Any, **kwargs: Any) -> Any:
        changed = change(name, hlo, tuple(kwargs["device_list"] or ()), kwargs["keepalive"] or ())
        return compile_(name, changed, *args, **kwargs)

    pxla.UnloadedMeshExecutable.from_hlo = staticmethod(from_hlo)  # pyright: ignore[reportAttributeAccessIssue]
