"""Reading and writing slices at indices that are data: gather, scatter and their kin."""

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, TensorType
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes import FALSE, I64_ARRAY, GatherDimensionNumbersAttr, ScatterDimensionNumbersAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.dimension_checks import verify_slices
from sdy.stablehlo.shape_checks import compatible_types, tensor_type, verify_shape


@define
class GatherOp(IRDLOperation):
    """Slices of the operand, one for each index vector in start_indices."""

    name = "stablehlo.gather"
    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    dimension_numbers = prop_def(GatherDimensionNumbersAttr)
    slice_sizes = prop_def(I64_ARRAY)
    indices_are_sorted = opt_prop_def(BoolAttr, FALSE)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Refuse slice sizes beyond the operand's, and a result of other sizes."""
        numbers = self.dimension_numbers.data
        shape, sizes = tensor_type(self.operand).get_shape(), self.slice_sizes.get_values()
        indices = list(tensor_type(self.start_indices).get_shape())
        rank = verify_slices(numbers, shape, indices)
        if len(sizes) != len(shape):
            raise VerifyException(f"slice_sizes size ({len(sizes)}) not equal to (implied) operand rank ({len(shape)})")
        for dim, (slice_size, size) in enumerate(zip(sizes, shape, strict=True)):
            if size >= 0 and not 0 <= slice_size <= size:
                raise VerifyException(
                    f"slice size ({slice_size}) is out of bounds for operand dimension ({size}) at index {dim}"
                )
        dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        offsets = iter([size for dim, size in enumerate(sizes) if dim not in dropped])
        batches = iter([size for dim, size in enumerate(indices) if dim != numbers.index_vector_dim])
        verify_shape(self.result, [next(offsets if dim in numbers.offset_dims else batches) for dim in range(rank)])


@define
class DynamicGatherOp(IRDLOperation):
    """A gather whose slice sizes are known only at run time."""

    name = "stablehlo.dynamic_gather"
    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    slice_sizes = operand_def(TensorType)
    dimension_numbers = prop_def(GatherDimensionNumbersAttr)
    indices_are_sorted = opt_prop_def(BoolAttr, FALSE)
    result = result_def(TensorType)
    traits = traits_def(Pure())


@define
class ScatterOp(IRDLOperation):
    """The inputs with slices, one for each index vector, combined with the updates by the update computation."""

    name = "stablehlo.scatter"
    inputs = var_operand_def(TensorType)
    scatter_indices = operand_def(TensorType)
    updates = var_operand_def(TensorType)
    scatter_dimension_numbers = prop_def(ScatterDimensionNumbersAttr)
    indices_are_sorted = opt_prop_def(BoolAttr, FALSE)
    unique_indices = opt_prop_def(BoolAttr, FALSE)
    res = var_result_def(TensorType)
    update_computation = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def verify_(self) -> None:
        """Refuse results that do not have the types of the inputs, and updates that do not fit them."""
        if len(self.inputs) != len(self.res) or not all(
            compatible_types(input_.type, result.type) for input_, result in zip(self.inputs, self.res, strict=True)
        ):
            raise VerifyException("inferred type(s) are incompatible with return type(s) of operation")
        indices = tensor_type(self.scatter_indices).get_shape()
        for input_, update in zip(self.inputs, self.updates, strict=True):
            rank = verify_slices(self.scatter_dimension_numbers.data, tensor_type(input_).get_shape(), indices)
            if (update_rank := len(tensor_type(update).get_shape())) != rank:
                raise VerifyException(f"expects updates tensor must be of rank {rank}, but got {update_rank}.")


@define
class TorchIndexSelectOp(IRDLOperation):
    """The operand's slices at the given indices along a dimension, batched."""

    name = "stablehlo.torch_index_select"
    operand = operand_def(TensorType)
    index = operand_def(TensorType)
    dim = prop_def(IntegerAttr[I64])
    batch_dims = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())
