"""Convolutions, with static and with dynamic padding."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseIntOrFPElementsAttr
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import I64_ELEMENTS, POSITIVE_I64
from sdy.ir.elements import folded_elements
from sdy.ir.operation_key import VerifiedByConstants
from sdy.stablehlo.attributes.conv_dimensions import ConvDimensionNumbersAttr, ConvolutionDimensions
from sdy.stablehlo.attributes.conv_window import WindowAttributes
from sdy.stablehlo.attributes.enums import PrecisionAttr
from sdy.stablehlo.attributes.operation_attributes import BOOL_ARRAY, I64_ARRAY
from sdy.stablehlo.attributes.precision import verify_precision
from sdy.stablehlo.checks.conv_checks import verify_conv_dimensions, verify_groups
from sdy.stablehlo.checks.inference import check_inferred_shape, message_only
from sdy.stablehlo.checks.quantization_checks import quantization, verify_quantized_product
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.windows import WindowDimension, padding_pairs, window_dimensions
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import STATIC_INTEGERS_2D, TENSOR, TENSOR_BY_AXIS


class ConvolutionBase(IRDLOperation):
    """Base of the convolutions, which differ in whether the padding is static."""

    window_strides = opt_prop_def(I64_ARRAY)
    lhs_dilation = opt_prop_def(I64_ARRAY)
    rhs_dilation = opt_prop_def(I64_ARRAY)
    window_reversal = opt_prop_def(BOOL_ARRAY)
    dimension_numbers = prop_def(ConvDimensionNumbersAttr)
    feature_group_count = prop_def(POSITIVE_I64)
    batch_group_count = prop_def(POSITIVE_I64)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TENSOR)
    traits = traits_def(Pure())

    def verify_operands(self) -> None:
        """Raise VerifyException unless operands, dimension numbers and groups are consistent."""
        lhs, rhs = map(tensor_type, self.operands[:2])
        rank, numbers = lhs.get_num_dims(), self.dimension_numbers.data
        if rank < 2:
            raise VerifyException(f"expects convolution arguments to have >= 2 dimensions. Got: '{lhs}' and '{rhs}'.")
        if rank != rhs.get_num_dims():
            raise VerifyException(
                f"expects convolution arguments to have same number of dimensions. Got: '{lhs}' and '{rhs}'."
            )
        if not any(map(quantization, self.operands[:2])) and lhs.element_type != rhs.element_type:
            raise VerifyException(
                "expects lhs and rhs to have compatible element type. "
                f"Got: '{lhs.element_type}' and '{rhs.element_type}'"
            )
        verify_conv_dimensions(numbers, rank)
        verify_groups(
            numbers,
            lhs.get_shape(),
            rhs.get_shape(),
            self.batch_group_count.value.data,
            self.feature_group_count.value.data,
        )
        verify_precision(self.precision_config)
        if rank != len(numbers.input):
            raise VerifyException(f"expects convolution arguments to have {len(numbers.input)} dimensions. Got: {rank}")

    def window(self, padding: DenseIntOrFPElementsAttr | None) -> list[WindowDimension]:
        """Return the window along each spatial dimension. Raises VerifyException if it is invalid."""
        shape = tensor_type(self.operands[1]).get_shape()
        sizes = [shape[dim] for dim in self.dimension_numbers.data.kernel_spatial_dimensions]
        return window_dimensions(
            [None if size == DYNAMIC_INDEX else size for size in sizes],
            self.window_strides,
            padding_pairs(padding),
            self.lhs_dilation,
            self.rhs_dilation,
            0 if self.window_reversal is None else len(self.window_reversal),
        )

    def output_shape(self, window: Sequence[WindowDimension]) -> list[int]:
        """Return the shape of the result."""
        numbers = self.dimension_numbers.data
        lhs, rhs = (tensor_type(operand).get_shape() for operand in self.operands[:2])
        batch = lhs[numbers.input_batch_dimension]
        sizes = [
            batch if batch == DYNAMIC_INDEX else batch // self.batch_group_count.value.data,
            rhs[numbers.kernel_output_feature_dimension],
        ]
        for number, dim in enumerate(numbers.input_spatial_dimensions):
            count = window[number].places(None if lhs[dim] == DYNAMIC_INDEX else lhs[dim])
            sizes.append(DYNAMIC_INDEX if count is None else count)
        return [size for _, size in sorted(zip(numbers.output, sizes, strict=True))]

    def verify_quantization(self) -> None:
        """Raise VerifyException if the quantizations of operands and result are incompatible."""
        lhs, rhs, numbers = self.operands[0], self.operands[1], self.dimension_numbers.data
        if not any(map(quantization, (lhs, rhs, self.result))):
            return
        for name, value, feature, dim in (
            ("rhs", rhs, "kernel_output_feature_dimension", numbers.kernel_output_feature_dimension),
            ("result", self.result, "output_feature_dimension", numbers.output_feature_dimension),
        ):
            quantized = quantization(value)
            if quantized is not None and quantized.axis not in (None, dim):
                raise VerifyException(f"quantization dimension of {name} should be same with {feature}")
        verify_quantized_product(lhs, rhs, self.result)


@define
class ConvolutionOp(ConvolutionBase):
    """Convolve the input (lhs) with the kernel (rhs)."""

    name = "stablehlo.convolution"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR_BY_AXIS)
    padding = opt_prop_def(I64_ELEMENTS)
    result = result_def(TENSOR_BY_AXIS)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "`(` operands `)` `dim_numbers` `=` custom<ConvolutionDimensions>($dimension_numbers) `,`"
        " `window` `=` `{` custom<WindowAttributes>($window_strides, $padding, $lhs_dilation, $rhs_dilation,"
        " $window_reversal) `}` attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (ConvolutionDimensions, WindowAttributes)

    def verify_(self) -> None:
        """Verify the operands and the result's shape."""
        with message_only(self):
            self.verify_operands()
            check_inferred_shape(self.result, self.output_shape(self.window(self.padding)))
            self.verify_quantization()


@define
class DynamicConvOp(ConvolutionBase):
    """Convolve with dynamic padding."""

    name = "stablehlo.dynamic_conv"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    padding = operand_def(STATIC_INTEGERS_2D)
    traits = traits_def(VerifiedByConstants())

    def verify_(self) -> None:
        """Verify the operands; the result's shape depends on the dynamic padding."""
        with message_only(self):
            self.verify_operands()
            self._verify_padding()
            self.verify_quantization()

    def _verify_padding(self) -> None:
        shape = tensor_type(self.padding).get_shape()
        expected = (len(self.dimension_numbers.data.input_spatial_dimensions), 2)
        if len(shape) != 2:
            raise VerifyException(f"expects padding to be of rank 2 but got {len(shape)}")
        if shape != expected:
            raise VerifyException(f"expects padding to be of shape {list(expected)}, but got {list(shape)}")
        padding = folded_elements(self.padding)
        if padding is not None:
            self.window(padding)
