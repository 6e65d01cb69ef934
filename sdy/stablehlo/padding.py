"""Static and dynamic padding."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.operation_key import VerifiedByConstants
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY, I64Array, i64_array
from sdy.stablehlo.checks.agreement import verify_all_match, verify_matching_elements, verify_same_elements
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.shape_operands import constant_integers
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.sizes import Dim, dims_of, sizes_text, tensor_like
from sdy.stablehlo.types.tensor_types import SCALAR, STATIC_DIMENSION_TENSOR, TENSOR


@define
class PadOp(InferredResults):
    """Pad the operand at its edges and between its elements; negative edge padding crops."""

    name = "stablehlo.pad"
    operand = operand_def(TENSOR)
    padding_value = operand_def(SCALAR)
    edge_padding_low = prop_def(I64_ARRAY)
    edge_padding_high = prop_def(I64_ARRAY)
    interior_padding = prop_def(I64_ARRAY)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` $padding_value `,` `low` `=` $edge_padding_low `,` `high` `=` $edge_padding_high `,`"
        " `interior` `=` $interior_padding attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: SSAValue,
        padding_value: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ):
        type_ = tensor_type(operand)
        interior = interior or [0] * len(low)
        super().__init__(
            operands=[operand, padding_value],
            properties={
                "edge_padding_low": i64_array(*low),
                "edge_padding_high": i64_array(*high),
                "interior_padding": i64_array(*interior),
            },
            result_types=[TensorType(type_.element_type, padded_shape(type_.get_shape(), low, high, interior))],
        )

    def verify_(self) -> None:
        """Verify the padding and the result type."""
        if len(set(map(len, self._columns()))) > 1:
            names = "edge_padding_low, edge_padding_high, interior_padding"
            raise VerifyException(f"failed to verify that all of {{{names}}} have same size")
        verify_same_elements(self)
        verify_inferred(self)

    def _columns(self) -> tuple[I64Array, I64Array, I64Array]:
        return self.edge_padding_low, self.edge_padding_high, self.interior_padding

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type with padded sizes and bounds."""
        type_ = tensor_type(self.operand)
        low, high, interior = (column.get_values() for column in self._columns())
        if len(low) != type_.get_num_dims():
            raise VerifyException(
                f"edge_padding_low length ({len(low)}) must match operand rank ({type_.get_num_dims()})"
            )
        dims = [
            _padded_dim(number, *padding)
            for number, padding in enumerate(zip(dims_of(type_), low, high, interior, strict=True))
        ]
        return [tensor_like(type_, dims)]


def _padded_dim(number: int, dim: Dim, low: int, high: int, interior: int) -> Dim:
    if interior < 0:
        raise VerifyException(f"Interior padding cannot be negative: {interior}")
    most = dim.size if dim.is_static else dim.bound
    if most is None:
        return dim
    padded = padded_size(most, low, high, interior)
    if padded < 0:
        what = "size" if dim.is_static else "bound"
        raise VerifyException(f"Padding result in negative {what} for dimension {number}")
    return Dim(padded) if dim.is_static else Dim(DYNAMIC_INDEX, padded)


def padded_shape(shape: Sequence[int], low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> list[int]:
    """Return the shape after padding; a dynamic size stays dynamic."""
    return [
        size if size == DYNAMIC_INDEX else padded_size(size, *padding)
        for size, *padding in zip(shape, low, high, interior, strict=True)
    ]


def padded_size(size: int, low: int, high: int, interior: int) -> int:
    """Return the size of a dimension after padding."""
    return low + size + max(size - 1, 0) * interior + high


@define
class DynamicPadOp(IRDLOperation):
    """Pad the operand by dynamic amounts."""

    name = "stablehlo.dynamic_pad"
    operand = operand_def(TENSOR)
    padding_value = operand_def(SCALAR)
    edge_padding_low = operand_def(STATIC_DIMENSION_TENSOR)
    edge_padding_high = operand_def(STATIC_DIMENSION_TENSOR)
    interior_padding = operand_def(STATIC_DIMENSION_TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), VerifiedByConstants())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify the ranks, and the result's shape if the paddings are constant."""
        verify_matching_elements(self, "operand", "padding_value", "result")
        paddings = ("edge_padding_low", "edge_padding_high", "interior_padding")
        verify_all_match(self, "type", lambda value: value.type, *paddings)
        verify_all_match(self, "rank", lambda value: tensor_type(value).get_num_dims(), "operand", "result")
        with message_only(self):
            self._verify_paddings()

    def _verify_paddings(self) -> None:
        operand, result = tensor_type(self.operand), tensor_type(self.result)
        (count,) = tensor_type(self.edge_padding_low).get_shape()
        if count != operand.get_num_dims():
            raise VerifyException(f"padding operands size ({count}) must match operand rank ({operand.get_num_dims()})")
        low, high, interior = map(
            constant_integers, (self.edge_padding_low, self.edge_padding_high, self.interior_padding)
        )
        if interior is not None and min(interior, default=0) < 0:
            raise VerifyException(f"interior_padding must be non-negative, but got {sizes_text(interior)}")
        if low is None or high is None or interior is None:
            return
        if not operand.has_static_shape() or not result.has_static_shape():
            return
        padded = padded_shape(operand.get_shape(), low, high, interior)
        for dim, (size, expected) in enumerate(zip(result.get_shape(), padded, strict=True)):
            if size != expected:
                raise VerifyException(f"expected output dimension at index {dim} to equal {expected}, but got {size}")
