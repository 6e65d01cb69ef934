"""Broadcasts of a tensor along new or size-1 dimensions."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.operation_key import VerifiedByConstants
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY, i64_array
from sdy.stablehlo.checks.agreement import verify_compatible_elements, verify_same_elements
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred
from sdy.stablehlo.checks.quantization_checks import verify_broadcast_quantization, verify_same_per_tensor_quantization
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.shape_operands import constant_integers, verify_reinterpretable_elements, verify_shape_operand
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import Dims
from sdy.stablehlo.types.sizes import size_text
from sdy.stablehlo.types.tensor_types import STATIC_DIMENSION_TENSOR, STATIC_OR_BOUNDED, TENSOR, TENSOR_BY_AXIS


@define
class BroadcastInDimOp(IRDLOperation):
    """Broadcast the operand: its dimension i becomes the result's broadcast_dimensions[i]."""

    name = "stablehlo.broadcast_in_dim"
    operand = operand_def(TENSOR_BY_AXIS)
    broadcast_dimensions = prop_def(I64_ARRAY)
    result = result_def(STATIC_OR_BOUNDED)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `dims` `=` custom<Dims>($broadcast_dimensions) attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (Dims,)

    def __init__(self, operand: SSAValue, broadcast_dimensions: Sequence[int], result_type: TensorType[Attribute]):
        super().__init__(
            operands=[operand],
            properties={"broadcast_dimensions": i64_array(*broadcast_dimensions)},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        """Verify that the dimensions are distinct, in range, and of the result's size or size 1."""
        verify_compatible_elements(self)
        with message_only(self):
            self._verify_dims()

    def _verify_dims(self) -> None:
        operand, result = tensor_type(self.operand), tensor_type(self.result)
        dims = self.broadcast_dimensions.get_values()
        verify_same_per_tensor_quantization(operand, result)
        verify_dims_count(dims, operand.get_num_dims())
        for i, (dim, size) in enumerate(zip(dims, operand.get_shape(), strict=True)):
            verify_dim(dim, result.get_num_dims())
            result_size = result.get_shape()[dim]
            if size not in (1, DYNAMIC_INDEX, result_size):
                raise VerifyException(
                    f"size of operand dimension {i} ({size}) is not equal to 1 or size of result dimension {dim} "
                    f"({size_text(result_size)})"
                )
        verify_broadcast_quantization(operand, result, dims)


@define
class BroadcastOp(InferredResults):
    """Broadcast the operand along new leading dimensions."""

    name = "stablehlo.broadcast"
    operand = operand_def(TENSOR)
    broadcast_sizes = prop_def(I64_ARRAY)
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `sizes` `=` $broadcast_sizes attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify that the result has the inferred type."""
        verify_same_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type with the new leading dimensions."""
        type_, sizes = tensor_type(self.operand), self.broadcast_sizes.get_values()
        for size in sizes:
            if size < 0:
                raise VerifyException(f"Broadcast with negative dimension size {size}")
        return [TensorType(type_.element_type, [*sizes, *type_.get_shape()])]


@define
class DynamicBroadcastInDimOp(IRDLOperation):
    """Broadcast the operand to a dynamic shape."""

    name = "stablehlo.dynamic_broadcast_in_dim"
    operand = operand_def(TENSOR_BY_AXIS)
    output_dimensions = operand_def(STATIC_DIMENSION_TENSOR)
    broadcast_dimensions = prop_def(I64_ARRAY)
    known_expanding_dimensions = opt_prop_def(I64_ARRAY)
    known_nonexpanding_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure(), VerifiedByConstants())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$operand `,` $output_dimensions `,` `dims` `=` custom<Dims>($broadcast_dimensions) attr-dict"
        " `:` functional-type(operands, results)"
    )
    custom_directives = (Dims,)

    def verify_(self) -> None:
        """Verify that the dimensions are distinct, in range and of compatible sizes, and that the hints are valid."""
        with message_only(self):
            operand, result = tensor_type(self.operand), tensor_type(self.result)
            verify_reinterpretable_elements(operand, result)
            dims = self.broadcast_dimensions.get_values()
            self._verify_dims(operand, result, dims)
            verify_shape_operand(self.output_dimensions, result)
            self._verify_hints(operand.get_num_dims())
            self._verify_constant_sizes(operand, dims)
            verify_broadcast_quantization(operand, result, dims)

    @staticmethod
    def _verify_dims(operand: TensorType[Attribute], result: TensorType[Attribute], dims: Sequence[int]) -> None:
        rank, result_rank = operand.get_num_dims(), result.get_num_dims()
        if len(dims) == rank and result_rank < rank:
            raise VerifyException(f"result rank ({result_rank}) is less than operand rank ({rank})")
        verify_dims_count(dims, rank)
        for i, (dim, size) in enumerate(zip(dims, operand.get_shape(), strict=True)):
            verify_dim(dim, result_rank)
            result_size = result.get_shape()[dim]
            if size != 1 and DYNAMIC_INDEX not in (size, result_size) and size != result_size:
                raise VerifyException(
                    f"size of operand dimension {i} ({size}) is not compatible with size of result dimension {dim} "
                    f"({result_size})"
                )

    def _verify_hints(self, rank: int) -> None:
        hint_attributes = (self.known_expanding_dimensions, self.known_nonexpanding_dimensions)
        hints = [dim for dims in hint_attributes if dims is not None for dim in dims.get_values()]
        if len(set(hints)) != len(hints):
            raise VerifyException("duplicate expansion hint for at least one operand dimension")
        for dim in hints:
            if not 0 <= dim < rank:
                raise VerifyException(f"hint for expanding dimension {dim} does not refer to a valid operand dimension")

    def _verify_constant_sizes(self, operand: TensorType[Attribute], dims: Sequence[int]) -> None:
        sizes = constant_integers(self.output_dimensions)
        if sizes is None or not operand.has_static_shape():
            return
        for i, (dim, size) in enumerate(zip(dims, operand.get_shape(), strict=True)):
            if size not in (1, sizes[dim]):
                raise VerifyException(
                    f"size of operand dimension {i} ({size}) is not equal to 1 or value of shape at index {dim} "
                    f"({sizes[dim]})"
                )


def verify_dims_count(dims: Sequence[int], rank: int) -> None:
    """Raise VerifyException unless there are `rank` distinct broadcast dimensions."""
    if len(dims) != rank:
        raise VerifyException(f"broadcast_dimensions size ({len(dims)}) does not match operand rank ({rank})")
    if len(set(dims)) != len(dims):
        raise VerifyException("broadcast_dimensions should not have duplicates")


def verify_dim(dim: int, rank: int) -> None:
    """Raise VerifyException unless a broadcast dimension is in [0, rank)."""
    if not 0 <= dim < rank:
        raise VerifyException(f"broadcast_dimensions contains invalid value {dim} for result with rank {rank}")
