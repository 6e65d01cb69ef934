"""Reductions over sliding windows."""

from xdsl.ir import Attribute
from xdsl.irdl import (
    SameVariadicOperandSize,
    opt_prop_def,
    prop_def,
    region_def,
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
    inputs_and_init_values,
    reducer_element_types,
    verify_compatible_inputs,
    verify_reducer,
)
from sdy.stablehlo.checks.windows import WindowDimension, padding_pairs, window_dimensions, windowed_type
from sdy.stablehlo.definition import define
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
