"""A module of whole arrays whose main function says what each device does: nothing in it is left to be partitioned."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice, repeat

from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.dialect.ops import ManualComputationOp, MeshOp, ReturnOp, ShardingConstraintOp
from sdy.dialect.shardings import func_result_sharding, set_func_result_sharding
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.regions import move_body
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.interface import Port
from sdy.passes.jax.sharded_program import make_local, prepare_for_xla
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter


def make_manual(
    module: ModuleOp, declared: ModuleOp, devices: Sequence[Device], like: AbstractMesh | None, tokens: int
) -> list[NamedSharding]:
    """Partition `module`, and let its main function be for a caller what that of `declared` is, in place.

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

    The meshes of `declared`, of which its shardings speak, are then those of `module`. Returns where the results lie.
    For `devices`, `like` and `tokens` see `make_local`. Raises DiagnosticError where `module` cannot be partitioned.
    """
    own, interface, grid = make_local(module, devices, like, tokens)
    prepare_for_xla(module)
    mesh = Mesh.of(dict(grid.mesh.shape), own.device_ids)
    inputs, outputs = interface.ports(grid)
    main, outside = interface.main, main_function(declared)
    types = outside.function_type
    block = Block(arg_types=types.inputs)
    for new, old in zip(block.args, outside.args, strict=True):
        new.location = old.location
    passed_on = [TensorSharding(mesh)] * tokens
    given = [
        (arg, _on_mesh(port, mesh))
        for arg, port in zip(block.args[tokens:], inputs, strict=True)
        if 0 not in port.shape
    ]
    shardings = [_on_mesh(port, mesh) for port in outputs]
    _fill_what_is_empty(main.body.block, inputs, tokens)
    manual = ManualComputationOp(
        [*block.args[:tokens], *(_constrained_if_unreduced(block, arg, sharding) for arg, sharding in given)],
        move_body(main.body, ReturnOp),
        types.outputs.data,
        [*passed_on, *(sharding for _, sharding in given)],
        [*passed_on, *shardings],
        mesh.axis_names,
    )
    block.add_ops([manual, FuncReturnOp(*manual.outputs)])
    main.body.add_block(block)
    main.function_type, main.arg_attrs, main.res_attrs = types, outside.arg_attrs, outside.res_attrs
    for index, sharding in enumerate(shardings, tokens):
        if func_result_sharding(main, index) is None:
            set_func_result_sharding(main, index, sharding)
    module.attributes = dict(declared.attributes)
    for op in declared.ops:
        if isinstance(op, MeshOp):
            Rewriter.insert_op(op.clone(), InsertPoint.at_start(module.body.block))
    return [_as_jax_says(port.sharding) for port in outputs]


def _as_jax_says(sharding: NamedSharding) -> NamedSharding:
    """The same sharding, which says nothing of the last dimensions that are whole."""
    partitions = sharding.spec.partitions
    count = max((index for index, axes in enumerate(partitions, 1) if axes is not None), default=0)
    return NamedSharding(sharding.mesh, PartitionSpec(*partitions[:count], unreduced=sharding.spec.unreduced))


def _on_mesh(port: Port, mesh: Mesh) -> TensorSharding:
    dims = islice(chain(port.spec.partitions, repeat(None)), len(port.shape))
    unreduced = tuple(AxisRef(axis) for axis in mesh.axis_names if axis in port.spec.unreduced)
    return replace(TensorSharding.of(*dims, mesh=mesh), unreduced=unreduced)


def _constrained_if_unreduced(block: Block, value: SSAValue, sharding: TensorSharding) -> SSAValue:
    """A sum that is still to be made ends at a constraint: XLA refuses a manual computation that just takes one."""
    if not sharding.unreduced:
        return value
    constraint = ShardingConstraintOp(value, sharding)
    block.add_op(constraint)
    return constraint.result


def _fill_what_is_empty(block: Block, inputs: Sequence[Port], tokens: int) -> None:
    """Let constants stand for those arguments that have no elements: XLA loses track of these."""
    for index, port in reversed([*enumerate(inputs, tokens)]):
        if 0 in port.shape:
            arg = block.args[index]
            first = block.first_op
            assert first is not None
            arg.replace_all_uses_with(Emitter(InsertPoint.before(first), first).filled(tensor_type(arg), 0))
            block.erase_arg(arg)
