"""`sdy-update-non-divisible-input-output-shardings`: make the shardings of inputs and outputs even."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import gcd

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, ShapedType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.interfaces import ShardableDataFlow, ShardingRuleInterface, data_flow_of
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import result_shardings, set_result_shardings
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.fast_access import trait_of
from sdy.ir.shapes import is_static_tensor
from sdy.ir.walking import operations_of, operations_with
from sdy.mesh import Mesh
from sdy.passes.common.function_shardings import change_input_output_shardings
from sdy.sharding import DimSharding, TensorSharding


class UpdateNonDivisibleInputOutputShardingsPass(AnalysisPreservingPass):
    """Truncate the shardings of inputs and outputs so that their axes divide the dimension sizes.

    Before::

        sdy.mesh @mesh = <["x"=4, "y"=2]>
        func.func @main(%arg0: tensor<4x2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}, {}]>},
                        %arg1: tensor<2x4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {"y"}]>})

    After::

        func.func @main(%arg0: tensor<4x2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>},
                        %arg1: tensor<2x4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {}, {}]>})

    The inputs and outputs are those of functions, calls and manual computations. Values inside of a program may be
    padded, but inputs and outputs are not. Single-device shardings are not changed.
    """

    name = "sdy-update-non-divisible-input-output-shardings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in operations_of(op, FuncOp):
            change_input_output_shardings(function, partial(divisible_part, anchor=function))
        for call in operations_of(op, CallOp):
            _update_results(call)
        for operation in operations_with(op, ShardingRuleInterface):
            interface = trait_of(operation, ShardingRuleInterface)
            if interface is not None and interface.keeps_result_shardings_divisible(operation):
                _update_results(operation)
        for operation in operations_with(op, ShardableDataFlow):
            flow = data_flow_of(operation)
            if flow is not None and flow.keeps_owner_shardings_divisible(operation):
                _update_edges(operation, flow)


def _update_results(operation: Operation) -> None:
    if operation.results:
        shardings = result_shardings(operation)
        set_result_shardings(operation, _divide_all(shardings, operation.results, operation))


def _update_edges(operation: Operation, flow: ShardableDataFlow) -> None:
    arguments = flow.block_argument_edge_owners(operation)
    shardings = flow.block_argument_edge_owner_shardings(operation)
    flow.set_block_argument_edge_owner_shardings(operation, _divide_all(shardings, arguments, operation))
    results = flow.result_edge_owners(operation)
    shardings = flow.result_edge_owner_shardings(operation)
    flow.set_result_edge_owner_shardings(operation, _divide_all(shardings, results, operation))


def _divide_all(
    shardings: Sequence[TensorSharding | None], values: Sequence[SSAValue], anchor: Operation
) -> list[TensorSharding]:
    pairs = zip(shardings, values, strict=True)
    return [divisible_part(sharding, value.type, anchor) for sharding, value in pairs if sharding is not None]


def divisible_part(sharding: TensorSharding, type_: Attribute, anchor: Operation) -> TensorSharding:
    """Return the longest prefixes of `sharding` that divide a tensor of type `type_`.

    Args:
        sharding: The sharding.
        type_: The type of the value; other types than static tensors leave the sharding unchanged.
        anchor: The operation from which the mesh is looked up.
    """
    if sharding.is_fully_replicated or not isinstance(type_, ShapedType) or not is_static_tensor(type_):
        return sharding
    return divisible_part_on(mesh_of(sharding, anchor), sharding, type_.get_shape())


@lru_cache(maxsize=2**12)
def divisible_part_on(mesh: Mesh, sharding: TensorSharding, shape: tuple[int, ...]) -> TensorSharding:
    """Return the longest prefixes of `sharding` on `mesh` that divide a tensor of shape `shape`."""
    if mesh.is_maximal:
        return sharding
    dims = zip(sharding.dims, shape, strict=True)
    return replace(sharding, dims=tuple(_divide_dim(dim, size, mesh) for dim, size in dims))


def _divide_dim(dim: DimSharding, size: int, mesh: Mesh) -> DimSharding:
    if size % dim.sharded_size(mesh) == 0:
        return dim
    axes: list[AxisRef] = []
    for axis in dim.axes:
        parts = gcd(axis.size_in(mesh), size)
        if parts == axis.size_in(mesh):
            axes.append(axis)
            size //= parts
            continue
        if parts > 1:
            axes.append(AxisRef(axis.name, axis.start, parts))
        break
    return DimSharding(tuple(axes), dim.is_closed)
