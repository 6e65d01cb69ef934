"""Partitioned programs as manual computations on global arrays, which XLA does not partition further."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice, repeat

from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.dialect.ops import ManualComputationOp, MeshOp, ReturnOp, ShardingConstraintOp
from sdy.dialect.shardings import func_result_sharding, set_func_result_sharding
from sdy.ir.editing import move_body
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.program.interface import Port
from sdy.passes.jax.program.plain_module import drop_shardings
from sdy.passes.jax.program.sharded_program import make_local, prepare_for_xla
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter


def make_manual(
    module: ModuleOp, declared: ModuleOp, devices: Sequence[Device], like: AbstractMesh | None, tokens: int
) -> list[NamedSharding]:
    """Partition `module` into a manual computation with the signature of `declared`, in place.

    Before, where the main function of `declared` is `@main(%arg0: tensor<8xf32>) -> tensor<8xf32>`::

        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
          %0 = stablehlo.tanh %arg0 {sdy.sharding = ...} : tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    After::

        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = sdy.manual_computation(%arg0) in_shardings=[<mesh<["x"=4]>, [{"x"}]>]
              out_shardings=[<mesh<["x"=4]>, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
            %1 = stablehlo.tanh %arg1 : tensor<2xf32>
            sdy.return %1 : tensor<2xf32>
          } : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    The meshes and attributes of `declared` replace those of `module`. On a mesh of one device, for which XLA runs no
    partitioner, the body of the main function does not change.

    Args:
        module: The propagated module to partition.
        declared: The module as jax lowered it, with the shardings that callers see.
        devices: See `make_local`.
        like: See `make_local`.
        tokens: See `make_local`.

    Returns:
        The shardings of the results.

    Raises:
        DiagnosticError: `module` cannot be partitioned.
    """
    local_mesh, interface, grid = make_local(module, devices, like, tokens)
    drop_shardings(module)
    prepare_for_xla(module)
    mesh = Mesh.of(grid.mesh, local_mesh.device_ids)
    inputs, outputs = interface.ports(grid)
    main, declared_main = interface.main, main_function(declared)
    if mesh.size > 1:
        _wrap(main, declared_main, inputs, outputs, mesh, tokens)
    main.arg_attrs, main.res_attrs = declared_main.arg_attrs, declared_main.res_attrs
    for index, port in enumerate(outputs if mesh.size > 1 else (), tokens):
        if func_result_sharding(main, index) is None:
            set_func_result_sharding(main, index, _on_mesh(port, mesh))
    module.attributes = dict(declared.attributes)
    for op in declared.ops:
        if isinstance(op, MeshOp):
            Rewriter.insert_op(op.clone(), InsertPoint.at_start(module.body.block))
    return [_without_trailing_none(port.sharding) for port in outputs]


def _wrap(
    main: FuncOp, declared_main: FuncOp, inputs: Sequence[Port], outputs: Sequence[Port], mesh: Mesh, tokens: int
) -> None:
    """Move the body of `main` into a manual computation, with the types of `declared_main` around it."""
    types = declared_main.function_type
    block = Block(arg_types=types.inputs)
    for new, old in zip(block.args, declared_main.args, strict=True):
        new.location = old.location
    of_tokens = [TensorSharding(mesh)] * tokens
    nonempty_args = [
        (arg, _on_mesh(port, mesh))
        for arg, port in zip(block.args[tokens:], inputs, strict=True)
        if 0 not in port.shape
    ]
    shardings = [_on_mesh(port, mesh) for port in outputs]
    _replace_empty_arguments(main.body.block, inputs, tokens)
    manual = ManualComputationOp(
        [*block.args[:tokens], *(_constrained_if_unreduced(block, arg, sharding) for arg, sharding in nonempty_args)],
        move_body(main.body, ReturnOp),
        types.outputs.data,
        [*of_tokens, *(sharding for _, sharding in nonempty_args)],
        [*of_tokens, *shardings],
        mesh.axis_names,
    )
    block.add_ops([manual, FuncReturnOp(*manual.outputs)])
    main.body.add_block(block)
    main.function_type = types


def _without_trailing_none(sharding: NamedSharding) -> NamedSharding:
    """Return `sharding` without trailing None entries in its spec, as jax normalizes it."""
    partitions = sharding.spec.partitions
    count = max((index for index, axes in enumerate(partitions, 1) if axes is not None), default=0)
    return NamedSharding(sharding.mesh, PartitionSpec(*partitions[:count], unreduced=sharding.spec.unreduced))


def _on_mesh(port: Port, mesh: Mesh) -> TensorSharding:
    dims = islice(chain(port.spec.partitions, repeat(None)), len(port.shape))
    unreduced = tuple(AxisRef(axis) for axis in mesh.axis_names if axis in port.spec.unreduced)
    return replace(TensorSharding.of(*dims, mesh=mesh), unreduced=unreduced)


def _constrained_if_unreduced(block: Block, value: SSAValue, sharding: TensorSharding) -> SSAValue:
    """Constrain an unreduced operand: XLA rejects unreduced operands of a manual computation without a constraint."""
    if not sharding.unreduced:
        return value
    constraint = ShardingConstraintOp(value, sharding)
    block.add_op(constraint)
    return constraint.result


def _replace_empty_arguments(block: Block, inputs: Sequence[Port], tokens: int) -> None:
    """Replace arguments without elements by constants: XLA loses track of empty arguments."""
    for index, port in reversed([*enumerate(inputs, tokens)]):
        if 0 in port.shape:
            arg = block.args[index]
            first = block.first_op
            assert first is not None
            arg.replace_all_uses_with(Emitter(InsertPoint.before(first), first).filled(tensor_type(arg), 0))
            block.erase_arg(arg)
