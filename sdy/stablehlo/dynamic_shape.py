"""Operations on dynamic shapes, which are operands."""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, i32
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import NON_NEGATIVE_I64
from sdy.ir.operation_key import VerifiedByConstants
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.quantization_checks import verify_reshaped_quantization
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.shape_operands import constant_integers, verify_reinterpretable_elements, verify_shape_operand
from sdy.stablehlo.shape import verify_same_count
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.sizes import Dim, dims_of, tensor_like
from sdy.stablehlo.types.tensor_types import I32_TENSOR, STATIC_DIMENSION_TENSOR, TENSOR, TENSOR_BY_AXIS


@define
class DynamicReshapeOp(IRDLOperation):
    """Reshape to a dynamic shape."""

    name = "stablehlo.dynamic_reshape"
    operand = operand_def(TENSOR_BY_AXIS)
    output_shape = operand_def(STATIC_DIMENSION_TENSOR)
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure(), VerifiedByConstants())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify the number of elements, and the result's shape if the shape operand is constant."""
        with message_only(self):
            operand, result = tensor_type(self.operand), tensor_type(self.result)
            verify_reinterpretable_elements(operand, result)
            verify_same_count(operand, result)
            verify_shape_operand(self.output_shape, result)
            self._verify_shape(operand, result)
            verify_reshaped_quantization(operand, result)

    def _verify_shape(self, operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
        if tensor_type(self.output_shape).get_shape()[0] != result.get_num_dims():
            raise VerifyException("result should have a rank equal to the number of elements in output_shape")
        shape = constant_integers(self.output_shape)
        if shape is None or not operand.has_static_shape():
            return
        count, shape_count = math.prod(operand.get_shape()), math.prod(shape)
        if count != shape_count:
            raise VerifyException(
                f"output_shape is incompatible with input type of operation: input has {count} elements, but "
                f"output_shape has {shape_count}"
            )


@define
class GetDimensionSizeOp(InferredResults):
    """Return the size of one dimension, as `tensor<i32>`."""

    name = "stablehlo.get_dimension_size"
    operand = operand_def(TENSOR_BY_AXIS)
    dimension = prop_def(NON_NEGATIVE_I64)
    result = result_def(I32_TENSOR)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `dim` `=` $dimension attr-dict `:` functional-type(operands, results)"

    def infer_types(self) -> Sequence[Attribute]:
        """Return `tensor<i32>`."""
        _verify_dimension(self.dimension.value.data, tensor_type(self.operand).get_num_dims())
        return [TensorType(i32, ())]


@define
class SetDimensionSizeOp(InferredResults):
    """Shorten one dimension to a dynamic size."""

    name = "stablehlo.set_dimension_size"
    operand = operand_def(TENSOR)
    size = operand_def(I32_TENSOR)
    dimension = prop_def(NON_NEGATIVE_I64)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), VerifiedByConstants())
    assembly_format = "$operand `,` $size `,` `dim` `=` $dimension attr-dict `:` functional-type(operands, results)"

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type with the dimension bounded by its former size, or static if unchanged."""
        type_, dim = tensor_type(self.operand), self.dimension.value.data
        if tensor_type(self.size).get_num_dims():
            raise VerifyException("size operand should be of rank-0")
        _verify_dimension(dim, type_.get_num_dims())
        dims = dims_of(type_)
        most = dims[dim].size if dims[dim].is_static else dims[dim].bound
        size = constant_integers(self.size)
        dims[dim] = Dim(DYNAMIC_INDEX, most) if most is None or size != (most,) else Dim(most)
        return [tensor_like(type_, dims)]


def _verify_dimension(dim: int, rank: int) -> None:
    if dim >= rank:
        raise VerifyException(f"requires dimension attribute in range [0, {rank}); found ({dim})")


@define
class DynamicIotaOp(IRDLOperation):
    """Iota of a dynamic shape."""

    name = "stablehlo.dynamic_iota"
    output_shape = operand_def(STATIC_DIMENSION_TENSOR)
    iota_dimension = prop_def(NON_NEGATIVE_I64)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), VerifiedByConstants())
    assembly_format = "$output_shape `,` `dim` `=` $iota_dimension attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify the dimension, and the result's shape if the shape operand is constant."""
        result = tensor_type(self.result)
        with message_only(self):
            if self.iota_dimension.value.data >= result.get_num_dims():
                raise VerifyException("iota dimension cannot go beyond the output rank.")
            verify_shape_operand(self.output_shape, result)
