"""Non-tensor types of StableHLO: tokens and futures."""

from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!stablehlo.token`, a value without data that orders operations with side effects."""

    name = "stablehlo.token"


TOKEN = TokenType()


@irdl_attr_definition
class FutureType(Data[tuple[TensorType[Attribute], ...]], TypeAttribute):
    """`!stablehlo.future<tensor<4xf32>>`, the results of an asynchronous operation."""

    name = "stablehlo.future"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[TensorType[Attribute], ...]:
        """Parse the tensor types in angle brackets."""

        def parse_tensor() -> TensorType[Attribute]:
            start = parser.pos
            type_: Attribute = parser.parse_type()
            if not isinstance(type_, TensorType):
                message = f"future element type must be a ranked tensor, but got '{type_}'"
                parser.raise_error(message, start, parser.pos)
            return cast(TensorType[Attribute], type_)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_tensor))

    def print_parameter(self, printer: Printer) -> None:
        """Print the tensor types in angle brackets."""
        with printer.in_angle_brackets():
            printer.print_list(self.data, printer.print_attribute)
