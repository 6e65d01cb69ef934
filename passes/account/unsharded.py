"""The hint for programs without shardings."""

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.ops import ManualComputationOp
from sdy.dialect.shardings import func_arg_sharding, func_result_sharding, get_sharding
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import main_function
from sdy.sharding import TensorSharding

_HINT = (
    "no sharding is given, so that each device computes everything: pass arguments with shardings, such as "
    'jax.device_put(x, NamedSharding(mesh, P("data"))), or a file with sdy.sharding attributes'
)


def unsharded_hint(module: ModuleOp) -> str:
    """Return a hint if a propagated module shards no tensor; empty if it shards one."""
    main = main_function(module)
    arguments = (func_arg_sharding(main, index) for index in range(len(main.args)))
    results = (func_result_sharding(main, index) for index in range(len(main.function_type.outputs)))
    is_sharded = (
        any(map(_has_axes, (*arguments, *results)))
        or any(isinstance(op, ManualComputationOp) for op in operations(module))
        or any(_has_axes(get_sharding(result)) for op in operations(module) for result in op.results)
    )
    return "" if is_sharded else _HINT


def _has_axes(sharding: TensorSharding | None) -> bool:
    return sharding is not None and any(True for _ in sharding.axes())
