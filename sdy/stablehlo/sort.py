"""Sort, by a comparator region."""

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, i1, i64
from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, region_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import FALSE
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.reducers import scalar
from sdy.stablehlo.checks.shape_checks import tensor_type, verify_same_shape
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR


@define
class SortOp(InferredResults):
    """Sort the inputs together along a dimension by the comparator."""

    name = "stablehlo.sort"
    inputs = var_operand_def(TENSOR)
    dimension = opt_prop_def(IntegerAttr[I64], IntegerAttr(-1, i64))
    is_stable = opt_prop_def(BoolAttr, FALSE)
    res = var_result_def(TENSOR)
    comparator = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def infer_types(self) -> list[Attribute]:
        """Return the types of the inputs."""
        return list(self.inputs.types)

    def verify_(self) -> None:
        """Verify the shapes, the dimension and the comparator."""
        verify_same_shape(self)
        with message_only(self):
            rank = tensor_type(self.inputs[0]).get_num_dims()
            dimension = self.dimension.value.data
            if not -rank <= dimension < rank:
                raise VerifyException(
                    f"dimension attribute value must be in range [-{rank}, {rank}), but found {dimension}"
                )
            self._verify_comparator()
        super().verify_()

    def _verify_comparator(self) -> None:
        block = self.comparator.block
        expected = [scalar(tensor_type(input_).element_type) for input_ in self.inputs for _ in range(2)]
        if len(block.args) != len(expected):
            raise VerifyException(f"comparator block should have {len(expected)} arguments")
        for number, (type_, actual) in enumerate(zip(expected, block.arg_types, strict=True)):
            if actual != type_:
                raise VerifyException(
                    f"comparator block argument #{number} should be of type '{type_}' but got '{actual}'"
                )
        returned = () if block.last_op is None else block.last_op.operand_types
        if len(returned) != 1:
            raise VerifyException(f"comparator must return single output but got {len(returned)}")
        if returned[0] != scalar(i1):
            raise VerifyException(f"comparator must return tensor<i1> but got '{returned[0]}'")
