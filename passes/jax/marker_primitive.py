"""A mark that a function leaves where it is traced, so that it is known how the program that it ends up in is compiled.

The mark is an operation of jax that does nothing: derivatives and batches of what it stands in have it too, and where
it is lowered, the program keeps alive what the mark says.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from warnings import warn

import jax
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.tree_util import tree_map
from jaxlib.mlir import ir

from sdy.passes.jax.compiler import install_hook
from sdy.passes.jax.compiler_context import Compiler, active_compilers
from sdy.passes.jax.jax_internals import keep_alive

_mark = Primitive("sdy_compiled_by")


def with_marker(compiler: Compiler, mesh: Mesh | None, fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, whose arguments and results, where they are traced, say that `compiler` is for what they are part of.

    They are on `mesh`, which is that of the compiler if nothing else tells jax of it.
    """

    def mark(leaf: Any) -> Any:
        return _mark.bind(_placed(leaf, mesh), compiler=compiler) if isinstance(leaf, Tracer) else leaf

    @wraps(fun)
    def marked(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(mark, (args, kwargs))
        return tree_map(mark, fun(*args, **kwargs))

    return marked


def _placed(array: jax.Array, mesh: Mesh | None) -> jax.Array:
    """`array`, with which jax lowers for the devices of `mesh` where nothing around it says for which ones."""
    is_said = not jax.sharding.get_abstract_mesh().empty or any(compiler.mesh for compiler in active_compilers())
    if mesh is None or is_said or AxisType.Explicit in mesh.axis_types:
        return array
    anyhow = PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * array.ndim)
    return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, anyhow))


@_mark.def_impl
@_mark.def_abstract_eval
def _as_it_is(array: Any, *, compiler: Compiler) -> Any:
    return array


def _transpose(cotangent: Any, array: Any, *, compiler: Compiler) -> list[Any]:
    return [_mark.bind(cotangent, compiler=compiler)]


def _lower(ctx: mlir.LoweringRuleContext, array: ir.Value, *, compiler: Compiler) -> list[ir.Value]:
    install_hook()
    if not keep_alive(ctx, compiler) and compiler.policy is not None:
        lost = "the policy of a function of sdy.jit is no part of a program that jax.jit exports"
        warn(f"{lost}: let sdy.jit be outermost, which exports what it has partitioned", stacklevel=2)
    return [array]


ad.deflinear2(_mark, _transpose)
batching.defvectorized(_mark)
mlir.register_lowering(_mark, _lower)
