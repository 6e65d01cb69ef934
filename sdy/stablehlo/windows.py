"""Reductions over sliding windows, and select-and-scatter, the gradient of max pooling."""

from typing import cast

from xdsl.dialects.builtin import AnyFloat, TensorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import (
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
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import I64_ELEMENTS
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.reducers import (
    Tensor,
    inputs_and_init_values,
    reducer_element_types,
    scalar,
    verify_compatible_inputs,
    verify_reducer,
)
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.checks.windows import WindowDimension, padding_pairs, window_dimensions, windowed_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR


@define
class ReduceWindowOp(InferredResults):
    """Reduce each window of the inputs by the body, from the init values."""

    name = "stablehlo.reduce_window"
    inputs = var_operand_def(TENSOR)
    init_values = var_operand_def(TENSOR)
    window_dimensions = prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    base_dilations = opt_prop_def(I64_ARRAY)
    window_dilations = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def(I64_ELEMENTS)
    res = var_result_def(TENSOR)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def infer_types(self) -> list[Attribute]:
        """Return types with one element per window position, of the body's element types."""
        inputs, _ = inputs_and_init_values(self.operands)
        window = self.window()
        return [
            windowed_type(input_, window, element_type)
            for input_, element_type in zip(inputs, reducer_element_types(self.body), strict=True)
        ]

    def verify_(self) -> None:
        """Verify the window, the body and the result types."""
        with message_only(self):
            inputs, init_values = inputs_and_init_values(self.operands)
            verify_compatible_inputs(inputs)
            self.window()
            verify_reducer(self.body, inputs, init_values, self.window_dimensions.get_values())
        super().verify_()

    def window(self) -> list[WindowDimension]:
        """Return the window along each dimension. Raises VerifyException if it is invalid."""
        inputs, _ = inputs_and_init_values(self.operands)
        padding = padding_pairs(self.padding)
        sizes = self.window_dimensions.get_values()
        for input_ in inputs:
            if input_.get_num_dims() != len(sizes):
                raise VerifyException(
                    f"expects window-dimensions size == input rank, but got window-dimensions size: {len(sizes)} and "
                    f"input: '{input_}' with rank = {input_.get_num_dims()}."
                )
        return window_dimensions(sizes, self.window_strides, padding, self.base_dilations, self.window_dilations)


@define
class SelectAndScatterOp(InferredResults):
    """Combine each source element, by `scatter`, into the position that `select` picks in the operand's window."""

    name = "stablehlo.select_and_scatter"
    operand = operand_def(TENSOR)
    source = operand_def(TENSOR)
    init_value = operand_def(TENSOR)
    window_dimensions = opt_prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def(I64_ELEMENTS)
    result = result_def(TENSOR)
    select = region_def("single_block")
    scatter = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def infer_types(self) -> list[Attribute]:
        """Return the operand's shape with the element type of `scatter`."""
        operand = tensor_type(self.operand)
        (element_type,) = reducer_element_types(self.scatter)
        return [TensorType(element_type, operand.shape, operand.encoding)]

    def verify_(self) -> None:
        """Verify the regions, the window, the source's shape and the result type."""
        with message_only(self):
            self._verify_select()
            source = tensor_type(self.source)
            verify_reducer(self.scatter, [scalar(source.element_type)], [tensor_type(self.init_value)])
            self._verify_window()
        super().verify_()

    def _verify_select(self) -> None:
        parameters = self.select.block.arg_types
        if len(parameters) != 2:
            raise VerifyException(f"expects the select-region to take 2 parameters, but takes {len(parameters)}")
        expected = scalar(tensor_type(self.operand).element_type)
        for number, parameter in enumerate(parameters):
            if not _is_like(parameter, expected):
                raise VerifyException(
                    f"expects the type of select-region's parameter at index {number} to be '{expected}', but got "
                    f"'{parameter}'"
                )
        terminator = self.select.block.last_op
        returned = () if terminator is None else terminator.operand_types
        if len(returned) != 1:
            raise VerifyException(f"expects select-region to return single value, but got: {len(returned)}")
        if returned[0] != scalar(i1):
            raise VerifyException(
                f"expects the return-type of select-region to be tensor<i1>, but got: '{returned[0]}'"
            )

    def _verify_window(self) -> None:
        operand, source = tensor_type(self.operand), tensor_type(self.source)
        sizes = () if self.window_dimensions is None else self.window_dimensions.get_values()
        rank = operand.get_num_dims()
        if rank != len(sizes):
            raise VerifyException(
                f"expects window-dimensions size == operand rank, but got window-dimensions size: {len(sizes)} and "
                f"operand-type: '{operand}' with rank = {rank}."
            )
        window = window_dimensions(sizes, self.window_strides, padding_pairs(self.padding))
        shape = windowed_type(operand, window, operand.element_type).shape
        expected: Tensor = TensorType(operand.element_type, shape)
        if not _is_like(source, expected):
            raise VerifyException(f"expects source-type to be '{expected}', but got'{source}'")


def _is_like(type_: Attribute, expected: Tensor) -> bool:
    """Return whether a type is a tensor of a compatible shape and the same element type; all float types are equal."""
    if not isinstance(type_, TensorType):
        return False
    tensor = cast(Tensor, type_)
    elements = (tensor.element_type, expected.element_type)
    return compatible_shapes(tensor.get_shape(), expected.get_shape()) and (
        elements[0] == elements[1] or all(isinstance(element_type, AnyFloat) for element_type in elements)
    )
