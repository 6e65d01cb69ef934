"""Scatters: updates of slices at dynamic indices."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import (
    SameVariadicOperandSize,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import FALSE, ScatterDimensionNumbersAttr
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.reducers import Tensor, reducer_element_types, scalar, verify_reducer
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.checks.slice_dimensions import SCATTER, SliceDimensions, verify_each_in_range
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.element_types import ANY_INTEGERS
from sdy.stablehlo.types.tensor_types import TENSOR, ranked


@define
class ScatterOp(InferredResults):
    """Combine one slice of the inputs per index vector with the updates, by the update computation."""

    name = "stablehlo.scatter"
    inputs = var_operand_def(TENSOR)
    scatter_indices = operand_def(ranked(ANY_INTEGERS))
    updates = var_operand_def(TENSOR)
    scatter_dimension_numbers = prop_def(ScatterDimensionNumbersAttr)
    indices_are_sorted = opt_prop_def(BoolAttr, FALSE)
    unique_indices = opt_prop_def(BoolAttr, FALSE)
    res = var_result_def(TENSOR)
    update_computation = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def infer_types(self) -> list[Attribute]:
        """Return the inputs' shapes with the update computation's element types."""
        inputs, _, _ = self._tensors()
        return [
            TensorType(element_type, input_.shape, input_.encoding)
            for input_, element_type in zip(inputs, reducer_element_types(self.update_computation), strict=True)
        ]

    def update_sizes(self, updates: Sequence[int]) -> list[int]:
        """Return the sizes of the slice that one update window covers; `updates` is the shape of the updates."""
        numbers = self.scatter_dimension_numbers.data
        sizes = [1] * tensor_type(self.inputs[0]).get_num_dims()
        windows = SliceDimensions.of(SCATTER, numbers).slice_sizes(range(len(sizes)))
        for dim, window_dim in zip(windows, numbers.update_window_dims, strict=True):
            sizes[dim] = updates[window_dim]
        return sizes

    def verify_(self) -> None:
        """Verify the operands, the dimension numbers, the computation and the result types."""
        with message_only(self):
            self._verify_updates()
        super().verify_()

    def _tensors(self) -> tuple[list[Tensor], Tensor, list[Tensor]]:
        """Return the types of inputs, indices and updates; the last of an even number of operands is ignored."""
        types = [tensor_type(operand) for operand in self.operands]
        count = (len(types) - 1) // 2
        return types[:count], types[count], types[count + 1 : 2 * count + 1]

    def _verify_updates(self) -> None:
        inputs, indices_type, updates = self._tensors()
        for name, types in (("inputs", inputs), ("updates", updates)):
            if not all(compatible_shapes(types[0].get_shape(), type_.get_shape()) for type_ in types):
                raise VerifyException(f"Not all {name} have compatible shapes.")
        dimensions = SliceDimensions.of(SCATTER, self.scatter_dimension_numbers.data)
        dimensions.verify_vector(indices_type.get_shape())
        indices = dimensions.with_vector(indices_type.get_shape())
        verify_reducer(self.update_computation, inputs, [scalar(update.element_type) for update in updates])
        rank = len(dimensions.window.dims) + len(dimensions.batch_sizes(indices))
        for update in updates:
            if update.get_num_dims() != rank:
                raise VerifyException(
                    f"expects updates tensor must be of rank {rank} ( == rank-of('scatter_indices') - 1 + "
                    "size-of('update_window_dims'), where 'scatter_indices' is expanded by a trailing 1 dimension if "
                    f"'index_vector_dim' == rank-of('scatter_indices')), but got {update.get_num_dims()}."
                )
        for input_ in inputs:
            _verify_scatter(dimensions, input_.get_shape(), indices, rank)
        for input_, update in zip(inputs, updates, strict=True):
            _verify_update_sizes(dimensions, input_.get_shape(), indices, update.get_shape())


def _verify_scatter(dimensions: SliceDimensions, shape: Sequence[int], indices: Sequence[int], rank: int) -> None:
    parts = (dimensions.window, dimensions.dropped, dimensions.batching)
    total = sum(len(part.dims) for part in parts)
    if total != len(shape):
        listed = " + ".join(f"size-of('{part.name}')" for part in parts)
        raise VerifyException(f"Expects rank-of operand to match {listed} i.e. {total} but got {len(shape)}.")
    dimensions.verify_window()
    verify_each_in_range(*dimensions.window, rank, "rank-of('updates')")
    dimensions.verify_batching(shape, indices)
    index_map, vector_size = dimensions.index_map, indices[dimensions.vector]
    if vector_size not in (DYNAMIC_INDEX, len(index_map.dims)):
        raise VerifyException(
            f"Scatter op has {len(index_map.dims)} elements in {index_map.name} and the bound of dimension "
            f"index_vector_dim={dimensions.vector} of scatter_indices is {vector_size}. "
            "These two numbers must be equal."
        )
    dimensions.verify_index_map(len(shape))


def _verify_update_sizes(
    dimensions: SliceDimensions, shape: Sequence[int], indices: Sequence[int], update: Sequence[int]
) -> None:
    for dim, most in zip(dimensions.window.dims, dimensions.slice_sizes(shape), strict=True):
        if DYNAMIC_INDEX not in (update[dim], most) and update[dim] > most:
            raise VerifyException(
                "expects bounds of the window dimensions of updates to not exceed the bounds of the corresponding "
                f"dimensions of operand. For dimension {dim}, updates bound is {update[dim]}, operand bound is {most}."
            )
    batches = [dim for dim in range(len(update)) if dim not in dimensions.window.dims]
    for dim, size in zip(batches, dimensions.batch_sizes(indices), strict=True):
        if not compatible_shapes((update[dim],), (size,)):
            raise VerifyException(
                "expects bounds of the scatter dimensions of updates to be same as the bounds of the corresponding "
                f"dimensions of scatter indices. For scatter dimension {dim}, updates bound is {update[dim]} , "
                f"scatter_indices bound is {size}."
            )
