"""Operations without tensor operands: constants, iota, and ids of the executing device."""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    TensorType,
    i64,
)
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute
from xdsl.irdl import AnyOf, BaseAttr, IRDLOperation, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from sdy.diagnostics import inferred_types_error
from sdy.ir.constraints import NON_NEGATIVE_I64
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.names import ConstantNames
from sdy.stablehlo.types.element_types import NUMBERS
from sdy.stablehlo.types.quantized import stored_type
from sdy.stablehlo.types.tensor_types import STATIC_TENSOR, STATIC_TENSOR_BY_AXIS, UI32_TENSOR, static


class TensorConstantOp(InferredResults, HasFolderInterface):
    """Base of constants, whose result has the type of the value."""

    value = prop_def(AnyOf((BaseAttr(DenseIntOrFPElementsAttr), BaseAttr(DenseResourceAttr))))
    output = result_def(STATIC_TENSOR)
    traits = traits_def(ConstantLike(), Pure())

    def __init__(self, value: DenseIntOrFPElementsAttr):
        super().__init__(properties={"value": value}, result_types=[value.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `{attributes} dense<...> : type`, or `() <{value = dense<...> : type}> : () -> type`.

        In the short form the result has the type of the value.
        """
        if parser.parse_optional_punctuation("("):
            return cls._parse_long_form(parser)
        attributes = parser.parse_optional_attr_dict()
        start = parser.pos
        value = parser.parse_attribute()
        if not isa(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
            parser.raise_error("invalid kind of attribute specified", start, parser.pos)
        return cls.create(result_types=(value.get_type(),), properties={"value": value}, attributes=attributes)

    @classmethod
    def _parse_long_form(cls, parser: Parser) -> Self:
        parser.parse_punctuation(")")
        properties = parser.parse_optional_properties_dict()
        attributes = parser.parse_optional_attr_dict()
        if "value" in attributes:
            properties["value"] = attributes.pop("value")
        parser.parse_punctuation(":")
        result_types = parser.parse_function_type().outputs.data
        return cls.create(result_types=result_types, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print the short form, or the long one if the result's type differs from the value's."""
        if self.value.get_type() == self.output.type:
            printer.print_op_attributes(self.attributes)
            printer.print_string(" ")
            printer.print_attribute(self.value)
        else:
            printer.print_string("() <")
            printer.print_attr_dict(self.properties)
            printer.print_string(">")
            printer.print_op_attributes(self.attributes)
            printer.print_string(" : () -> ")
            printer.print_attribute(self.output.type)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type of the value."""
        return [self.value.get_type()]

    def fold(self) -> Sequence[Attribute]:
        """Return the value."""
        return (self.value,)


@define
class ConstantOp(TensorConstantOp):
    """A constant tensor."""

    name = "stablehlo.constant"
    output = result_def(STATIC_TENSOR_BY_AXIS)
    traits = traits_def(ConstantNames())

    def verify_(self) -> None:
        """Verify that the result has the value's type, or is a quantized type stored as the value's."""
        if self.value.get_type() != stored_type(self.output.type):
            raise inferred_types_error(self, self.infer_types(), self.result_types)


@define
class IotaOp(IRDLOperation):
    """A tensor of the indices along one dimension."""

    name = "stablehlo.iota"
    iota_dimension = prop_def(NON_NEGATIVE_I64)
    output = result_def(static(NUMBERS))
    traits = traits_def(Pure())
    assembly_format = "`dim` `=` $iota_dimension attr-dict `:` type($output)"

    def __init__(self, iota_dimension: int, result_type: TensorType[Attribute]):
        super().__init__(properties={"iota_dimension": IntegerAttr(iota_dimension, i64)}, result_types=[result_type])

    def verify_(self) -> None:
        """Verify that the result has the dimension."""
        rank = tensor_type(self.output).get_num_dims()
        with message_only(self):
            if rank == 0:
                raise VerifyException("does not support scalars.")
            if self.iota_dimension.value.data >= rank:
                raise VerifyException("iota dimension cannot go beyond the output rank.")


class DeviceIdOp(InferredResults):
    """Base of the operations that return an id of the executing device, `tensor<ui32>`."""

    result = result_def(UI32_TENSOR)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def infer_types(self) -> Sequence[Attribute]:
        """Return `tensor<ui32>`."""
        return [TensorType(IntegerType(32, Signedness.UNSIGNED), ())]


@define
class ReplicaIdOp(DeviceIdOp):
    """The replica id of the executing device."""

    name = "stablehlo.replica_id"


@define
class PartitionIdOp(DeviceIdOp):
    """The partition id of the executing device."""

    name = "stablehlo.partition_id"
