"""A primitive that constrains a jax array to an sdy sharding, as `jax.lax.with_sharding_constraint` does to a jax one.

An sdy sharding can have open dimensions, priorities and sub-axes, which jax cannot express.
"""

from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy as dialect
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument
from xdsl.rewriter import Rewriter

from sdy.dialect.attributes import TensorShardingAttr
from sdy.dialect.ops import ShardingConstraintOp
from sdy.dialect.shardings import (
    func_arg_sharding,
    func_result_sharding,
    set_func_arg_sharding,
    set_func_result_sharding,
)
from sdy.ir.walking import operations_of
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.jax_internals import lowered_device_count
from sdy.sharding import DimSharding, TensorSharding

_GIVEN = "sdy_jit.given"

_constraint = Primitive("sdy_sharding_constraint")


def constrain(array: jax.Array, sharding: TensorSharding) -> jax.Array:
    """Constrain `array` to `sharding` on its mesh; a no-op in programs for one device."""
    return _constraint.bind(array, sharding=sharding)


def give_to_main(module: ModuleOp) -> None:
    """Move the given shardings from constraints to the arguments and results of the main function, in place.

    A constraint inside the function stays, and so does one on an argument or result that has a sharding from jax.
    """
    main = main_function(module)
    for op in operations_of(main, ShardingConstraintOp):
        if op.attributes.pop(_GIVEN, None) is None:
            continue
        argument, returns = op.operands[0], [use for use in op.result.uses if isinstance(use.operation, ReturnOp)]
        if isinstance(argument, BlockArgument) and argument.block is main.body.block:
            if func_arg_sharding(main, argument.index) is None:
                set_func_arg_sharding(main, argument.index, op.sharding.data)
                Rewriter.replace_op(op, [], [argument])
        elif all(func_result_sharding(main, use.index) is None for use in returns):
            for use in returns:
                set_func_result_sharding(main, use.index, op.sharding.data)
                use.operation.operands[use.index] = argument
            if not [*op.result.uses]:
                Rewriter.erase_op(op)


@_constraint.def_impl
@_constraint.def_abstract_eval
def _identity(array: Any, *, sharding: TensorSharding) -> Any:
    return array


def _transpose(cotangent: Any, array: Any, *, sharding: TensorSharding) -> list[Any]:
    return [constrain(cotangent, sharding)]


def _lower(ctx: mlir.LoweringRuleContext, array: ir.Value, *, sharding: TensorSharding) -> list[ir.Value]:
    if lowered_device_count(ctx) == 1:
        return [array]
    op = dialect.ShardingConstraintOp(array, ir.Attribute.parse(str(TensorShardingAttr(sharding))))
    op.attributes[_GIVEN] = ir.UnitAttr.get()
    return [op.result]


def _batch(arrays: Any, dims: Any, *, sharding: TensorSharding) -> tuple[jax.Array, int]:
    (array,), (dim,) = arrays, dims
    new = DimSharding(is_closed=False)
    wider = TensorSharding(sharding.mesh, (*sharding.dims[:dim], new, *sharding.dims[dim:]), sharding.replicated)
    return constrain(array, wider), dim


ad.deflinear2(_constraint, _transpose)
batching.primitive_batchers[_constraint] = _batch
mlir.register_lowering(_constraint, _lower)
