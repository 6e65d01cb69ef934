"""Dot products of vectors and matrices, general dot products, and the deprecated einsum operations."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.dot_algorithm import DotAlgorithmAttr
from sdy.stablehlo.attributes.enums import PrecisionAttr
from sdy.stablehlo.attributes.operation_attributes import DotDimensionNumbers, DotDimensionNumbersAttr
from sdy.stablehlo.attributes.precision import is_default, verify_precision
from sdy.stablehlo.checks.inference import check_inferred_shape, message_only
from sdy.stablehlo.checks.quantization_checks import quantization, verify_quantized_product
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.dot_syntax import DotDimensions, OptionalPrecision, OptionalPrecisionAndAlgorithm
from sdy.stablehlo.types.sizes import dims_of, most_specific_dim
from sdy.stablehlo.types.tensor_types import TENSOR, TENSOR_BY_AXIS


@define
class DotGeneralOp(IRDLOperation):
    """Sum the products of lhs and rhs over the contracting dimensions.

    The result's dimensions are the batching ones, then lhs's free ones, then rhs's free ones.
    """

    name = "stablehlo.dot_general"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR_BY_AXIS)
    dot_dimension_numbers = prop_def(DotDimensionNumbersAttr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    algorithm = opt_prop_def(DotAlgorithmAttr)
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs `,` custom<DotDimensions>($dot_dimension_numbers)"
        " custom<OptionalPrecisionAndAlgorithm>($precision_config, $algorithm)"
        " attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (DotDimensions, OptionalPrecisionAndAlgorithm)

    def verify_(self) -> None:
        """Verify the algorithm, the dimension numbers, the result's shape and the quantization."""
        with message_only(self):
            if self.algorithm is not None and self.algorithm.data.problem is not None:
                raise VerifyException(self.algorithm.data.problem)
            verify_precision(self.precision_config)
            shape = dot_shape(self.dot_dimension_numbers.data, self.lhs, self.rhs)
            check_inferred_shape(self.result, shape)
            if self.algorithm is not None and not is_default(self.precision_config):
                raise VerifyException("must specify DEFAULT precision config when algorithm is set.")
            if any(map(quantization, (self.lhs, self.rhs, self.result))):
                self._verify_quantization()

    def _verify_quantization(self) -> None:
        rhs_quantization = quantization(self.rhs)
        if rhs_quantization is not None and any(zero_point for _, zero_point in rhs_quantization.levels):
            raise VerifyException(f"Zero point{'' if rhs_quantization.axis is None else 's'} of rhs should be 0")
        if (
            rhs_quantization is not None
            and rhs_quantization.axis in self.dot_dimension_numbers.data.rhs_contracting_dimensions
        ):
            raise VerifyException("Quantization dimension of rhs should not be in the contracting dimension of rhs")
        verify_quantized_product(self.lhs, self.rhs, self.result)


def dot_shape(numbers: DotDimensionNumbers, lhs: SSAValue, rhs: SSAValue) -> Sequence[int]:
    """Return the shape of the product. Raises VerifyException if the dimension numbers are invalid."""
    lhs_dims, rhs_dims = dims_of(tensor_type(lhs)), dims_of(tensor_type(rhs))
    verify_dot_dimensions(numbers, tensor_type(lhs).get_shape(), tensor_type(rhs).get_shape())
    batching = zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True)
    batches = [most_specific_dim(i, lhs_dims[left], rhs_dims[right]) for i, (left, right) in enumerate(batching)]
    lhs_used = {*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions}
    rhs_used = {*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions}
    lhs_own = [dim for number, dim in enumerate(lhs_dims) if number not in lhs_used]
    rhs_own = [dim for number, dim in enumerate(rhs_dims) if number not in rhs_used]
    return [dim.size for dim in (*batches, *lhs_own, *rhs_own)]


def verify_dot_dimensions(numbers: DotDimensionNumbers, lhs: Sequence[int], rhs: Sequence[int]) -> None:
    """Raise VerifyException if the dimension numbers are invalid for operands of these shapes."""
    pairs = {
        "batching": (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions),
        "contracting": (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
    }
    sides = {"lhs": lhs, "rhs": rhs}
    for kind, (lhs_dims, rhs_dims) in pairs.items():
        if len(lhs_dims) != len(rhs_dims):
            raise VerifyException(f"lhs and rhs should have the same number of {kind} dimensions")
    for number, side in enumerate(sides):
        dims = [dim for pair in pairs.values() for dim in pair[number]]
        repeated = next((dim for i, dim in enumerate(dims) if dim in dims[:i]), None)
        if repeated is not None:
            names = f"{side}_batching_dimensions and {side}_contracting_dimensions"
            raise VerifyException(f"has duplicated dimension from {names}: {repeated}")
    for number, (side, shape) in enumerate(sides.items()):
        for kind, pair in pairs.items():
            for dim in pair[number]:
                if not 0 <= dim < len(shape):
                    raise VerifyException(f"{side}_{kind}_dimensions value: {dim} is out of range: [0, {len(shape)})")
    for kind, (lhs_dims, rhs_dims) in pairs.items():
        if not compatible_shapes([lhs[dim] for dim in lhs_dims], [rhs[dim] for dim in rhs_dims]):
            raise VerifyException(f"{kind} dimension sizes must match for lhs/rhs")


@define
class DotOp(IRDLOperation):
    """Multiply vectors or matrices."""

    name = "stablehlo.dot"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR_BY_AXIS)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TENSOR_BY_AXIS)
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs custom<OptionalPrecision>($precision_config) attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (OptionalPrecision,)

    def verify_(self) -> None:
        """Verify that the operands are compatible vectors or matrices, and the result's shape."""
        with message_only(self):
            verify_precision(self.precision_config)
            lhs, rhs = tensor_type(self.lhs).get_shape(), tensor_type(self.rhs).get_shape()
            if not (1 <= len(lhs) <= 2 and 1 <= len(rhs) <= 2 and compatible_shapes(lhs[-1:], rhs[:1])):
                raise VerifyException("expected both lhs/rhs ranks to be either 1 or 2")
            check_inferred_shape(self.result, (*lhs[:-1], *rhs[1:]))


@define
class EinsumOp(IRDLOperation):
    """Einsum of two operands, `"ab,bc->ac"`."""

    name = "stablehlo.einsum"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    einsum_config = prop_def(StringAttr)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"


@define
class UnaryEinsumOp(IRDLOperation):
    """Einsum of one operand, `"ab->a"`."""

    name = "stablehlo.unary_einsum"
    operand = operand_def(TENSOR)
    einsum_config = prop_def(StringAttr)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"
