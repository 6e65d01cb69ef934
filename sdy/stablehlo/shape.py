"""Reshape, bitcast, transpose, reverse and concatenate."""

import math
from collections.abc import Sequence
from functools import reduce

from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import NON_NEGATIVE_I64
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY, i64_array
from sdy.stablehlo.checks.agreement import bit_width, verify_compatible_elements, verify_same_elements
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred
from sdy.stablehlo.checks.quantization_checks import verify_reshaped_quantization, verify_transposed_quantization
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import Dims, OperandsBeforeAttribute, SameOperandsAndResultType
from sdy.stablehlo.types.sizes import Dim, dims_of, most_specific_dim, sizes_text, tensor_like
from sdy.stablehlo.types.tensor_types import STATIC_OR_BOUNDED, TENSOR, TENSOR_BY_AXIS


class OneOperandOp(IRDLOperation):
    """Base of operations that are determined by operand and result type."""

    operand = operand_def(TENSOR_BY_AXIS)
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, result_type: TensorType[Attribute]):
        super().__init__(operands=[operand], result_types=[result_type])


@define
class ReshapeOp(OneOperandOp):
    """Reshape, preserving the row-major order of elements."""

    name = "stablehlo.reshape"
    result = result_def(STATIC_OR_BOUNDED)

    def verify_(self) -> None:
        """Verify the number of elements and the quantized dimension."""
        verify_compatible_elements(self)
        operand, result = tensor_type(self.operand), tensor_type(self.result)
        with message_only(self):
            verify_same_count(operand, result)
            if operand.has_static_shape() and result.has_static_shape():
                verify_reshaped_quantization(operand, result)


def verify_same_count(operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
    """Raise VerifyException if operand and result are static and differ in the number of elements."""
    if not operand.has_static_shape() or not result.has_static_shape():
        return
    count, expected = (math.prod(type_.get_shape()) for type_ in (result, operand))
    if count != expected:
        raise VerifyException(
            f"number of output elements ({count}) doesn't match expected number of elements ({expected})"
        )


@define
class BitcastConvertOp(OneOperandOp):
    """Reinterpret the bits as another element type."""

    name = "stablehlo.bitcast_convert"

    def verify_(self) -> None:
        """Verify that the shapes match the widths of the element types."""
        with message_only(self):
            self._verify_widths(tensor_type(self.operand), tensor_type(self.result))

    @staticmethod
    def _verify_widths(operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
        if isinstance(operand.element_type, ComplexType) != isinstance(result.element_type, ComplexType):
            raise VerifyException(f"cannot convert between real and complex types, but got: '{operand}' and '{result}'")
        widths = [bit_width(type_.element_type) for type_ in (result, operand)]
        shapes = [type_.get_shape() for type_ in (result, operand)]
        (narrow, narrow_shape), (wide, wide_shape) = sorted(zip(widths, shapes, strict=True), key=lambda pair: pair[0])
        if narrow != wide:
            if len(narrow_shape) != len(wide_shape) + 1:
                raise VerifyException(
                    f"rank of smaller element type ({len(narrow_shape)}) should be 1 more than rank of larger element "
                    f"type ({len(wide_shape)}), but {len(narrow_shape)} != {len(wide_shape)} + 1."
                )
            *narrow_shape, inner = narrow_shape
            if inner != DYNAMIC_INDEX and inner * narrow != wide:
                raise VerifyException(
                    f"requires compatible bit widths. Got: '{operand}' and '{result}', "
                    f"but {narrow} * {inner} != {wide}."
                )
        pairs = zip(narrow_shape, wide_shape, strict=False)
        if any(DYNAMIC_INDEX not in sizes and sizes[0] != sizes[1] for sizes in pairs):
            raise VerifyException(
                "operand and result shapes must match except for the innermost dimension of the shape with the "
                f"smaller element type. Got: '{operand}' and '{result}'."
            )


@define
class TransposeOp(InferredResults):
    """Transpose: the result's dimension i is the operand's permutation[i]."""

    name = "stablehlo.transpose"
    operand = operand_def(TENSOR_BY_AXIS)
    permutation = prop_def(I64_ARRAY)
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `dims` `=` custom<Dims>($permutation) attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (Dims,)

    def __init__(self, operand: SSAValue, permutation: Sequence[int], result_type: TensorType[Attribute]):
        super().__init__(
            operands=[operand], properties={"permutation": i64_array(*permutation)}, result_types=[result_type]
        )

    def verify_(self) -> None:
        """Verify the permutation, the quantized dimension and the result type."""
        verify_compatible_elements(self)
        operand, result = tensor_type(self.operand), tensor_type(self.result)
        with message_only(self):
            verify_transposed_quantization(operand, result, self.permutation.get_values())
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type with permuted dimensions."""
        type_, permutation = tensor_type(self.operand), self.permutation.get_values()
        rank = type_.get_num_dims()
        if len(permutation) != rank:
            raise VerifyException(f"TransposeOp operand rank {rank} does not match permutation size {len(permutation)}")
        if sorted(permutation) != list(range(rank)):
            raise VerifyException(
                f"attribute permutation must be a permutation of [{', '.join(map(str, range(rank)))}] but got "
                f"{', '.join(map(str, permutation))}"
            )
        dims = dims_of(type_)
        return [tensor_like(type_, [dims[dim] for dim in permutation])]


@define
class ReverseOp(InferredResults):
    """Reverse the elements along dimensions."""

    name = "stablehlo.reverse"
    operand = operand_def(TENSOR)
    dimensions = prop_def(I64_ARRAY)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `dims` `=` $dimensions attr-dict"
        " `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Verify that the dimensions are distinct and in range."""
        verify_same_elements(self)
        with message_only(self):
            self._verify_dims()
        verify_inferred(self)

    def _verify_dims(self) -> None:
        dims, rank = self.dimensions.get_values(), tensor_type(self.operand).get_num_dims()
        if len(set(dims)) != len(dims):
            raise VerifyException(f"dimensions should be unique. Got: {', '.join(map(str, dims))}")
        for dim in dims:
            if dim < 0:
                raise VerifyException(f"all dimensions should be non-negative. Got dimension: {dim}.")
            if dim >= rank:
                raise VerifyException(f"all dimensions should be between [0, {rank}). Got dimension: {dim}.")

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type."""
        return [self.operand.type]


@define
class ConcatenateOp(InferredResults):
    """Concatenate the inputs along a dimension."""

    name = "stablehlo.concatenate"
    inputs = var_operand_def(TENSOR)
    dimension = prop_def(NON_NEGATIVE_I64)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<OperandsBeforeAttribute>($inputs) `dim` `=` $dimension attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (OperandsBeforeAttribute,)

    def verify_(self) -> None:
        """Verify that the inputs differ only in the dimension, and the result type."""
        verify_same_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the inputs' most specific type with the sizes along the dimension added."""
        dim, types = self.dimension.value.data, [tensor_type(value) for value in self.inputs]
        self._verify_shapes(dim, [type_.get_shape() for type_ in types])
        first, *rest = map(dims_of, types)
        merged = reduce(lambda dims, others: _concatenated(dim, dims, others), rest, first)
        return [tensor_like(types[0], merged)]

    @staticmethod
    def _verify_shapes(dim: int, shapes: Sequence[Sequence[int]]) -> None:
        first = shapes[0]
        if not first:
            raise VerifyException("rank-0 values cannot be concatenated")
        if dim >= len(first):
            raise VerifyException(f"dimension {dim} is out-of-bounds for input rank {len(first)}")
        for i, shape in enumerate(shapes):
            if len(shape) != len(first):
                raise VerifyException(f"operands (0) and ({i}) do not match rank")
            for j, sizes in enumerate(zip(shape, first, strict=True)):
                if j != dim and DYNAMIC_INDEX not in sizes and sizes[0] != sizes[1]:
                    raise VerifyException(
                        f"shapes of operand (0) and ({i}) are not compatible at non-concat index {j}: "
                        f"({sizes_text(first)}) != ({sizes_text(shape)})"
                    )


def _concatenated(dim: int, dims: Sequence[Dim], others: Sequence[Dim]) -> list[Dim]:
    return [
        _sum(one, other) if number == dim else most_specific_dim(number, one, other)
        for number, (one, other) in enumerate(zip(dims, others, strict=True))
    ]


def _sum(one: Dim, other: Dim) -> Dim:
    if one.is_static and other.is_static:
        return Dim(one.size + other.size)
    limits = [side.size if side.is_static else side.bound for side in (one, other)]
    known = [limit for limit in limits if limit is not None]
    return Dim(DYNAMIC_INDEX, sum(known) if len(known) == len(limits) else None)
