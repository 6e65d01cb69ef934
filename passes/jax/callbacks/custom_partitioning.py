"""`jax.experimental.custom_partitioning`: operations partitioned by a function of their author."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.core import eval_context
from jax.tree_util import tree_map
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block

from sdy.array_types import array_type
from sdy.diagnostics import op_error
from sdy.ir.editing import inline_body
from sdy.ir.walking import operations_of
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.sharding_walk import transform_meshes
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.jax.bindings.python_callbacks import renumber_callbacks
from sdy.passes.jax.device_mesh import Device, mesh_name, name_mesh, placed_values
from sdy.passes.jax.jax_internals import ToCompile, custom_partitionings, without_mesh
from sdy.stablehlo import TokenType
from sdy.stablehlo.custom_call import CustomCallOp

CUSTOM_PARTITIONING = "CustomSPMDPartitioning"


def partition_customly(
    module: ModuleOp, devices: Sequence[Device], kept_alive: Sequence[Any], callbacks: list[Any]
) -> None:
    """Replace each custom-partitioned call by a manual computation of its author's partitioned function, in place.

    Before, with an author who lets each device call `f` on its shard of the rows::

        %1 = stablehlo.custom_call @CustomSPMDPartitioning(%0) {backend_config = "139875284",
            sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<8x4xf32>

    After::

        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
            manual_axes={"x"} (%2: tensor<4x4xf32>) {
          %3 = f(%2)
          sdy.return %3 : tensor<4x4xf32>
        } : (tensor<8x4xf32>) -> tensor<8x4xf32>

    The `backend_config` identifies one of the objects that the lowering of the module keeps alive.

    Args:
        module: The module, with propagated shardings.
        devices: The devices of the program.
        kept_alive: The objects that the lowering of `module` keeps alive.
        callbacks: The Python callbacks of `module`; those of the partitioned functions are appended.

    Raises:
        DiagnosticError: the author's function does not match the operation.
    """
    for op, author in customly_partitioned(module, kept_alive):
        inline_body(op, _body(op, module, devices, author, callbacks))


def customly_partitioned(module: ModuleOp, kept_alive: Sequence[Any]) -> list[tuple[CustomCallOp, Any]]:
    """Return the custom-partitioned calls of `module`, each with its author's callbacks."""
    authors = custom_partitionings(kept_alive)
    return [
        (op, authors[op.backend_config.data])
        for op in operations_of(module, CustomCallOp)
        if op.call_target_name.data == CUSTOM_PARTITIONING and isinstance(op.backend_config, StringAttr)
    ]


def _body(op: CustomCallOp, module: ModuleOp, devices: Sequence[Device], author: Any, callbacks: list[Any]) -> Block:
    """Build the body that replaces `op`: a block of global arrays, from the callback of `author`."""
    values = (*op.operands, *op.results)
    arrays = [
        jax.ShapeDtypeStruct(*array_type(value.type, op), sharding=sharding)
        for value, sharding in zip(values, placed_values(module, values, devices), strict=True)
    ]
    count = len(op.operands)
    arguments, results = author.in_tree.unflatten(arrays[:count]), author.out_tree.unflatten(arrays[count:])
    mesh, function, *chosen = author.partition(*author.static_args, arrays[0].sharding.mesh, arguments, results)
    name = mesh_name(module, mesh, devices)
    if name is None:
        raise op_error(op, f"is partitioned for a mesh with the axes {dict(mesh.shape)}, which is not the program's")
    out_specs, in_specs = (tree_map(lambda sharding: sharding.spec, each) for each in chosen)
    mapped = jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    with eval_context(), without_mesh():
        lowered = jax.jit(mapped, keep_unused=True).lower(*tree_map(_without_sharding, arguments))
    body = from_jax(lowered)
    renumber_callbacks(body, len(callbacks))
    callbacks += ToCompile.of(lowered).callbacks
    name_mesh(body, mesh)
    inline_calls(body)
    transform_meshes(body, lambda _: name)
    main = main_function(body)
    if any(isinstance(type_, TokenType) for type_ in main.function_type.outputs):
        problem = "is partitioned into a function with ordered effects, which have no order across devices"
        raise op_error(op, problem, "pass ordered=False to its callbacks")
    if main.function_type.outputs.data != op.result_types:
        given, wanted = (", ".join(map(str, types)) for types in (main.function_type.outputs.data, op.result_types))
        raise op_error(op, f"is partitioned into a function that returns {given}, not {wanted}")
    return main.body.block


def _without_sharding(array: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)
