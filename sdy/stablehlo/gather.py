"""Gathers: slices at dynamic indices."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, BoolAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.operation_key import VerifiedByConstants
from sdy.stablehlo.attributes.operation_attributes import FALSE, I64_ARRAY, GatherDimensionNumbersAttr
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.shape_operands import constant_integers
from sdy.stablehlo.checks.slice_dimensions import GATHER, SliceDimensions, verify_each_in_range
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.element_types import INTEGERS
from sdy.stablehlo.types.sizes import bounded_type, bounds_of, size_text
from sdy.stablehlo.types.tensor_types import STATIC_INTEGERS_1D, TENSOR, ranked


def gathered_type(
    dimensions: SliceDimensions,
    operand: SSAValue,
    start_indices: SSAValue,
    sizes: Sequence[int] | None,
    sizes_shape: Sequence[int],
) -> TensorType[Attribute]:
    """Return the result type of a gather.

    Args:
        dimensions: The dimension numbers.
        operand: The tensor that is read.
        start_indices: The index vectors.
        sizes: The sizes of a slice, None if dynamic.
        sizes_shape: The shape of the tensor of slice sizes.

    Raises:
        VerifyException: If the operands and dimension numbers are inconsistent.
    """
    type_, indices_type = tensor_type(operand), tensor_type(start_indices)
    shape, indices = type_.get_shape(), indices_type.get_shape()
    _verify_gather(dimensions, shape, indices, sizes_shape)
    _verify_slice_sizes(dimensions, shape, sizes)
    window = dimensions.window.dims
    rank = len(window) + len(dimensions.batch_sizes(indices))
    verify_each_in_range(*dimensions.window, rank, "implied-result-rank")
    offsets = iter(dimensions.slice_sizes([DYNAMIC_INDEX] * len(shape) if sizes is None else sizes))
    batches = iter(dimensions.batch_sizes(indices))
    bounds = iter(dimensions.batch_sizes(bounds_of(indices_type) or [None] * len(indices)))
    return bounded_type(
        type_.element_type,
        [next(offsets if dim in window else batches) for dim in range(rank)],
        [None if dim in window else next(bounds) for dim in range(rank)],
    )


def _verify_gather(
    dimensions: SliceDimensions, shape: Sequence[int], indices: Sequence[int], sizes_shape: Sequence[int]
) -> None:
    parts = (dimensions.window, dimensions.dropped, dimensions.batching)
    if sum(len(part.dims) for part in parts) != len(shape):
        # MLIR's message misspells collapsed_slice_dims.
        names = ("offset_dims", "collapse_slice_dims", "operand_batching_dims")
        listed = " plus ".join(f"{name} size ({len(part.dims)})" for name, part in zip(names, parts, strict=True))
        raise VerifyException(f"{listed} is not equal to operand rank ({len(shape)})")
    dimensions.verify_vector(indices)
    index_map, vector_size = dimensions.index_map, dimensions.with_vector(indices)[dimensions.vector]
    if vector_size not in (DYNAMIC_INDEX, len(index_map.dims)):
        raise VerifyException(
            f"{index_map.name} size ({len(index_map.dims)}) is not equal to size of index dimension "
            f"({dimensions.vector}) of start_indices ({vector_size})"
        )
    dimensions.verify_window()
    dimensions.verify_batching(shape, indices)
    dimensions.verify_index_map(len(shape))
    if len(sizes_shape) != 1:
        raise VerifyException(f"slice_sizes.rank != 1 (got {len(sizes_shape)})")
    if sizes_shape[0] != len(shape):
        raise VerifyException(f"slice_sizes size ({sizes_shape[0]}) not equal to operand rank ({len(shape)})")


def _verify_slice_sizes(dimensions: SliceDimensions, shape: Sequence[int], sizes: Sequence[int] | None) -> None:
    if sizes is None:
        return
    for name, dims in (dimensions.dropped, dimensions.batching):
        for dim in dims:
            if sizes[dim] > 1:
                raise VerifyException(
                    f"Expects that for each dim in {name}, slice_sizes[dim] should be <= 1, but got {sizes[dim]}"
                )
    for dim, (slice_size, size) in enumerate(zip(sizes, shape, strict=True)):
        if slice_size < 0 or (size != DYNAMIC_INDEX and slice_size > size):
            raise VerifyException(
                f"slice size ({slice_size}) is out of bounds for operand dimension ({size_text(size)}) at index {dim}"
            )


@define
class GatherOp(InferredResults):
    """Read one slice of the operand per index vector in start_indices."""

    name = "stablehlo.gather"
    operand = operand_def(TENSOR)
    start_indices = operand_def(ranked(INTEGERS))
    dimension_numbers = prop_def(GatherDimensionNumbersAttr)
    slice_sizes = prop_def(I64_ARRAY)
    indices_are_sorted = opt_prop_def(BoolAttr, FALSE)
    result = result_def(TENSOR)
    traits = traits_def(Pure())

    def infer_types(self) -> list[Attribute]:
        """Return the type of the slices."""
        sizes = self.slice_sizes.get_values()
        dimensions = SliceDimensions.of(GATHER, self.dimension_numbers.data)
        return [gathered_type(dimensions, self.operand, self.start_indices, sizes, (len(sizes),))]

    def verify_(self) -> None:
        """Verify the element types, the dimension numbers and the result type."""
        if tensor_type(self.operand).element_type != tensor_type(self.result).element_type:
            raise VerifyException("failed to verify that all of {operand, result} have same element type")
        super().verify_()


@define
class DynamicGatherOp(InferredResults):
    """Gather with dynamic slice sizes."""

    name = "stablehlo.dynamic_gather"
    operand = operand_def(TENSOR)
    start_indices = operand_def(ranked(INTEGERS))
    slice_sizes = operand_def(STATIC_INTEGERS_1D)
    dimension_numbers = prop_def(GatherDimensionNumbersAttr)
    indices_are_sorted = opt_prop_def(BoolAttr, FALSE)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), VerifiedByConstants())

    def infer_types(self) -> list[Attribute]:
        """Return the type of the slices, static if the slice sizes are constant."""
        sizes, shape = constant_integers(self.slice_sizes), tensor_type(self.slice_sizes).get_shape()
        dimensions = SliceDimensions.of(GATHER, self.dimension_numbers.data)
        return [gathered_type(dimensions, self.operand, self.start_indices, sizes, shape)]


@define
class TorchIndexSelectOp(IRDLOperation):
    """Batched selection of slices at indices along one dimension."""

    name = "stablehlo.torch_index_select"
    operand = operand_def(TENSOR)
    index = operand_def(TENSOR)
    dim = prop_def(IntegerAttr[I64])
    batch_dims = prop_def(IntegerAttr[I64])
    result = result_def(TENSOR)
    traits = traits_def(Pure())
