"""Outlining of one operation into a function of its own module."""

from collections.abc import Sequence
from math import lcm

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.rewriter import Rewriter

from sdy.dialect.meshes import common_mesh
from sdy.dialect.ops import MeshOp, ReshardOp
from sdy.dialect.shardings import get_sharding, set_func_arg_shardings, set_func_result_shardings
from sdy.ir.walking import captured_values
from sdy.passes.spmd.shards.layout import Layout, mesh_of_devices, round_up
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type


def outlining_error(op: Operation) -> str | None:
    """Return why `op` cannot be outlined into a function of tensors on one mesh; None if it can."""
    values = (*op.operands, *op.results)
    if not all(isinstance(value.type, TensorType) for value in values):
        return "it has operands or results that are not tensors"
    if common_mesh(map(get_sharding, values), op) is None:
        return "its tensors are on different meshes"
    if captured_values(op):
        return "its regions capture values"
    return None


def outline(
    module: ModuleOp, op: Operation, inputs: Sequence[TensorSharding], outputs: Sequence[TensorSharding]
) -> tuple[ModuleOp, FuncOp]:
    """Build a module with the meshes of `module` and a function that contains a copy of `op`.

    The tensors of a reshard are padded, so that the axes of both of its shardings divide them.

    Args:
        module: The module of `op`.
        op: The operation.
        inputs: The shardings of the operands.
        outputs: The shardings of the results.

    Returns:
        The module and its function.
    """
    copy = op.clone()
    if isinstance(copy, ReshardOp):
        type_ = _common_type(copy, inputs[0], outputs[0], module)
        Rewriter.replace_value_with_new_type(copy.result, type_)
        types = [type_]
    else:
        types = list(op.operand_types)
    block = Block(arg_types=types)
    copy.operands = block.args
    block.add_ops([copy, ReturnOp(*copy.results)])
    function = FuncOp("outlined", (types, copy.result_types), Region(block), "private")
    function.location = op.location
    set_func_arg_shardings(function, inputs)
    set_func_result_shardings(function, outputs)
    meshes = [mesh.clone() for mesh in module.ops if isinstance(mesh, MeshOp)]
    return ModuleOp([*meshes, function]), function


def _common_type(reshard: ReshardOp, before: TensorSharding, after: TensorSharding, module: ModuleOp) -> Attribute:
    """Return the type of a reshard, padded so that the axes before and after it divide its dimensions."""
    type_ = tensor_type(reshard.input)
    layouts = [Layout(type_, sharding, mesh_of_devices(sharding, module)) for sharding in (before, after)]
    shape = [
        round_up(size, lcm(*(layout.parts(dim) for layout in layouts))) for dim, size in enumerate(type_.get_shape())
    ]
    return TensorType(type_.element_type, shape, type_.encoding)
