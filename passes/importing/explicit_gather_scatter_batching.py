"""`sdy-explicit-gather-scatter-batching`: make implicit batching dimensions of gathers and scatters explicit."""

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.ir.shapes import shape
from sdy.ir.walking import operations
from sdy.passes.common.iota_along_rows import is_iota_along_rows
from sdy.stablehlo.attributes.operation_attributes import (
    GatherDimensionNumbersAttr,
    ScatterDimensionNumbersAttr,
    i64_array,
)
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp


class ExplicitGatherScatterBatchingPass(ModulePass):
    """Turn dimension 0 of an operand that is indexed by an iota into a batching dimension.

    Before, the lowering of `x[jnp.arange(4), columns]`::

        %rows = stablehlo.iota dim = 0 : tensor<4x1xi32>
        %indices = stablehlo.concatenate %rows, %columns, dim = 1
        %0 = "stablehlo.gather"(%x, %indices) <{dimension_numbers = #stablehlo.gather<
            collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, ...}>

    After::

        %0 = "stablehlo.gather"(%x, %columns) <{dimension_numbers = #stablehlo.gather<
            collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
            start_index_map = [1], index_vector_dim = 1>, ...}>

    Shardings then propagate between operand and result along that dimension. The pass examines only dimension 0 of the
    operand and of the indices. It recognizes an iota through reshapes, broadcasts, clamps that have no effect, and the
    select by which JAX normalizes negative indices.
    """

    name = "sdy-explicit-gather-scatter-batching"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation in operations(op):
            if isinstance(operation, GatherOp):
                _batch_gather(operation)
            elif isinstance(operation, ScatterOp):
                _batch_scatter(operation)


def _batch_gather(gather: GatherOp) -> None:
    numbers = gather.dimension_numbers.data
    if numbers.operand_batching_dims or 0 not in numbers.collapsed_slice_dims or 0 not in numbers.start_index_map:
        return
    indices = _Indices(gather.start_indices, numbers.index_vector_dim, numbers.start_index_map.index(0))
    if not indices.count_rows_of(gather.operand):
        return
    gather.operands[1] = indices.without_component(gather)
    gather.dimension_numbers = GatherDimensionNumbersAttr(
        replace(
            numbers,
            collapsed_slice_dims=_without_rows(numbers.collapsed_slice_dims),
            operand_batching_dims=(0,),
            start_indices_batching_dims=(0,),
            start_index_map=_without_rows(numbers.start_index_map),
        )
    )


def _batch_scatter(scatter: ScatterOp) -> None:
    numbers = scatter.scatter_dimension_numbers.data
    rows_of = numbers.scatter_dims_to_operand_dims
    if numbers.input_batching_dims or 0 not in numbers.inserted_window_dims or 0 not in rows_of:
        return
    indices = _Indices(scatter.scatter_indices, numbers.index_vector_dim, rows_of.index(0))
    if not indices.count_rows_of(scatter.inputs[0]):
        return
    scatter.operands[len(scatter.inputs)] = indices.without_component(scatter)
    scatter.scatter_dimension_numbers = ScatterDimensionNumbersAttr(
        replace(
            numbers,
            inserted_window_dims=_without_rows(numbers.inserted_window_dims),
            input_batching_dims=(0,),
            scatter_indices_batching_dims=(0,),
            scatter_dims_to_operand_dims=_without_rows(rows_of),
        )
    )


def _without_rows(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dim for dim in dims if dim != 0)


@dataclass(frozen=True)
class _Indices:
    """Index vectors along dimension `vector_dim` of `value`, and their component that indexes operand dimension 0."""

    value: SSAValue
    vector_dim: int
    component: int

    def count_rows_of(self, operand: SSAValue) -> bool:
        """Return whether index vector i along dimension 0 selects row i of `operand`, and has further components."""
        sizes, (num_rows, *_) = shape(self.value.type), shape(operand.type)
        return (
            0 < self.vector_dim < len(sizes)
            and sizes[self.vector_dim] > 1
            and sizes[0] == num_rows != DYNAMIC_INDEX
            and is_iota_along_rows(self._parts()[self._part_of_component()])
        )

    def without_component(self, user: Operation) -> SSAValue:
        """Return the indices without the component, computed by operations inserted before `user`."""
        parts, part = self._parts(), self._part_of_component()
        if self._width(parts[part]) == 1:
            kept = [*parts[:part], *parts[part + 1 :]]
        else:
            ranges = ((0, self.component), (self.component + 1, self._width(self.value)))
            kept = [self._slice(start, limit, user) for start, limit in ranges if start < limit]
        return kept[0] if len(kept) == 1 else self._concatenate(kept, user)

    def _parts(self) -> tuple[SSAValue, ...]:
        """Return the values that are concatenated along the index vectors to form `value`."""
        owner = self.value.owner
        if isinstance(owner, ConcatenateOp) and owner.dimension.value.data == self.vector_dim:
            return tuple(owner.inputs)
        return (self.value,)

    def _part_of_component(self) -> int:
        """Return the index of the part that contains the component."""
        return [i for i, part in enumerate(self._parts()) for _ in range(self._width(part))][self.component]

    def _width(self, value: SSAValue) -> int:
        return shape(value.type)[self.vector_dim]

    def _slice(self, start: int, limit: int, user: Operation) -> SSAValue:
        """Return the components from `start` to `limit`, exclusive."""
        starts, limits = [0] * len(shape(self.value.type)), list(shape(self.value.type))
        starts[self.vector_dim], limits[self.vector_dim] = start, limit
        ranges = {
            "start_indices": i64_array(*starts),
            "limit_indices": i64_array(*limits),
            "strides": i64_array(*[1] * len(starts)),
        }
        type_ = self._type_of_width(limit - start)
        return _insert(SliceOp.create(operands=[self.value], properties=ranges, result_types=[type_]), user)

    def _concatenate(self, parts: list[SSAValue], user: Operation) -> SSAValue:
        dimension = IntegerAttr(self.vector_dim, i64)
        type_ = self._type_of_width(sum(map(self._width, parts)))
        return _insert(
            ConcatenateOp.create(operands=parts, properties={"dimension": dimension}, result_types=[type_]), user
        )

    def _type_of_width(self, width: int) -> TensorType[Attribute]:
        sizes = list(shape(self.value.type))
        sizes[self.vector_dim] = width
        return TensorType(tensor_type(self.value).element_type, sizes)


def _insert(operation: Operation, user: Operation) -> SSAValue:
    operation.location = user.location
    Rewriter.insert_op(operation, InsertPoint.before(user))
    return operation.results[0]
