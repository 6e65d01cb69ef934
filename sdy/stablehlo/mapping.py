"""Map: an elementwise computation in a region."""

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import prop_def, region_def, result_def, traits_def, var_operand_def
from xdsl.traits import IsTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.checks.shape_checks import as_ranked, tensor_type, verify_same_shape
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR


@define
class MapOp(InferredResults):
    """Apply a computation to corresponding elements of the inputs."""

    name = "stablehlo.map"
    inputs = var_operand_def(TENSOR)
    dimensions = prop_def(I64_ARRAY)
    result = result_def(TENSOR)
    computation = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def infer_types(self) -> list[Attribute]:
        """Return the inputs' shape with the computation's element type."""
        element_type = self._computed_element()
        dims = self.dimensions.get_values()
        if dims != tuple(range(len(dims))):
            listed = ", ".join(map(str, dims))
            raise VerifyException(f"requires monotonically increasing dimension numbers, but got: {listed}")
        inputs = [tensor_type(input_) for input_ in self.inputs]
        for input_ in inputs:
            if input_.get_num_dims() != len(dims):
                raise VerifyException(
                    "applied to a subset of dimensions currently not supported: operand dimensions = "
                    f"{input_.get_num_dims()}, requested map dimensions size = {len(dims)}"
                )
        return [TensorType(element_type, inputs[-1].shape)]

    def verify_(self) -> None:
        """Verify the shapes, the computation and the result type."""
        verify_same_shape(self)
        last = self.computation.block.last_op
        if last is not None and last.has_trait(IsTerminator):
            super().verify_()

    def _computed_element(self) -> Attribute:
        block = self.computation.block
        if len(self.inputs) != len(block.args):
            raise VerifyException(
                "expects number of operands to match the arity of map computation, but got: "
                f"{len(self.inputs)} and {len(block.args)}"
            )
        for number, (parameter, input_) in enumerate(zip(block.args, self.inputs, strict=True)):
            type_, element_type = as_ranked(parameter.type), tensor_type(input_).element_type
            if type_ is None or type_.get_num_dims():
                raise VerifyException(
                    f"computation arguments must be 0-rank tensor, but got: arg #{number} of type '{parameter.type}'"
                )
            if type_.element_type != element_type:
                raise VerifyException(
                    "element type of operands and computation arguments must match, but got: "
                    f"'{element_type}' and '{type_.element_type}'"
                )
        returned = () if block.last_op is None else block.last_op.operands
        if len(returned) != 1:
            raise VerifyException(f"computation must return single output, but got: {len(returned)}")
        result = as_ranked(returned[0].type)
        if result is None or result.get_num_dims():
            raise VerifyException(f"computation must return 0-rank tensor, but got: '{returned[0].type}'")
        return result.element_type
