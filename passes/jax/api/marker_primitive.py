"""A primitive that marks a traced program as one that sdy compiles.

The primitive is an identity with a compiler as parameter. Differentiation and batching keep it, and its lowering rule
attaches the compiler to the lowered program.
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

from sdy.passes.jax.api.compiler import install_hook
from sdy.passes.jax.compiler_context import Compiler, active_compilers
from sdy.passes.jax.jax_internals import keep_alive

_mark = Primitive("sdy_compiled_by")


def with_marker(compiler: Compiler, mesh: Mesh | None, fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fun` with its traced arguments and results marked for `compiler`.

    They are constrained to `mesh`, which is None if jax knows the mesh from elsewhere.
    """

    def mark(leaf: Any) -> Any:
        return _mark.bind(_placed(leaf, mesh), compiler=compiler) if isinstance(leaf, Tracer) else leaf

    @wraps(fun)
    def marked(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(mark, (args, kwargs))
        return tree_map(mark, fun(*args, **kwargs))

    return marked


def _placed(array: jax.Array, mesh: Mesh | None) -> jax.Array:
    """Constrain `array` so that jax lowers for the devices of `mesh`, unless the context has a mesh."""
    has_mesh = not jax.sharding.get_abstract_mesh().empty or any(compiler.mesh for compiler in active_compilers())
    if mesh is None or has_mesh or AxisType.Explicit in mesh.axis_types:
        return array
    unconstrained = PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * array.ndim)
    return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, unconstrained))


@_mark.def_impl
@_mark.def_abstract_eval
def _identity(array: Any, *, compiler: Compiler) -> Any:
    return array


def _transpose(cotangent: Any, array: Any, *, compiler: Compiler) -> list[Any]:
    return [_mark.bind(cotangent, compiler=compiler)]


def _lower(ctx: mlir.LoweringRuleContext, array: ir.Value, *, compiler: Compiler) -> list[ir.Value]:
    install_hook()
    if not keep_alive(ctx, compiler) and compiler.policy is not None:
        lost = "jax.jit does not export the policy of an sdy.jit function"
        warn(f"{lost}: make sdy.jit the outermost one, which exports the partitioned program", stacklevel=2)
    return [array]


ad.deflinear2(_mark, _transpose)
batching.defvectorized(_mark)
mlir.register_lowering(_mark, _lower)
