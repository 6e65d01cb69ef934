"""The shardings of all arguments or results of a function."""

from collections.abc import Callable, Iterable

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import (
    func_arg_sharding,
    func_result_sharding,
    set_func_arg_shardings,
    set_func_result_shardings,
)
from sdy.ir.shapes import rank
from sdy.sharding import TensorSharding

Shardings = tuple[TensorSharding, ...]


def function_argument_shardings(function: FuncOp) -> Shardings | None:
    """Return the sharding of each argument, open by default; None if no argument is sharded over several devices."""
    types = function.function_type.inputs.data
    return _with_defaults(function, types, [func_arg_sharding(function, index) for index in range(len(types))])


def function_result_shardings(function: FuncOp) -> Shardings | None:
    """Return the sharding of each result, open by default; None if no result is sharded over several devices."""
    types = function.function_type.outputs.data
    return _with_defaults(function, types, [func_result_sharding(function, index) for index in range(len(types))])


def change_input_output_shardings(
    function: FuncOp, change: Callable[[TensorSharding, Attribute], TensorSharding]
) -> None:
    """Apply `change` to the sharding and type of each sharded argument and then each sharded result."""
    signature = function.function_type
    for types, get, set_all in (
        (signature.inputs, func_arg_sharding, set_func_arg_shardings),
        (signature.outputs, func_result_sharding, set_func_result_shardings),
    ):
        pairs = [(get(function, index), type_) for index, type_ in enumerate(types)]
        set_all(function, [sharding and change(sharding, type_) for sharding, type_ in pairs])


def _with_defaults(
    function: FuncOp, types: Iterable[Attribute], shardings: list[TensorSharding | None]
) -> Shardings | None:
    over_devices = (sharding for sharding in shardings if sharding and not mesh_of(sharding, function).is_maximal)
    example = next(over_devices, None)
    if example is None:
        return None
    return tuple(
        sharding or TensorSharding.replicated_open(example.mesh, rank(type_))
        for sharding, type_ in zip(shardings, types, strict=True)
    )
