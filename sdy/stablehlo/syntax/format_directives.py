"""`operands`, `functional-type(operands, results)` and `attr-dict` of assembly formats, with MLIR's checks.

While parsing, xDSL compares the numbers of operands and of types with the definition. MLIR compares them with each
other at the end, and leaves the definition to the verifier. Inherent attributes are checked right after `attr-dict`.
"""

from collections.abc import Sequence
from dataclasses import fields, replace

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute
from xdsl.irdl.declarative_assembly_format import (
    AttrDictDirective,
    CustomDirective,
    FormatDirective,
    FormatProgram,
    FunctionalTypeDirective,
    OperandsDirective,
    ParsingState,
    ResultsDirective,
    TypeDirective,
)
from xdsl.parser import Parser

from sdy.parse_errors import parse_error
from sdy.text.verification.definition_checks import attribute_problem


class AnyOperands(OperandsDirective):
    """`%0, %1`, any number of operands."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse all operands, and assign them to the first definition."""
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        state.operands = [operands or (), *(() for _ in state.operands[1:])]

    def set_types(self, state: ParsingState, types: Sequence[Attribute]) -> None:
        """Set the types of all operands."""
        state.operand_types = [types, *(() for _ in state.operand_types[1:])]


class AnyFunctionType(FunctionalTypeDirective):
    """`(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`, with any number of types."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the function type, and assign the types to the first definitions."""
        start = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, FunctionType):
            expected = f"expected builtin.function, but found '{type_}'"
            raise parse_error(parser, f"invalid kind of type specified: {expected}", start)
        self.operand_typeable_directive.set_types(state, type_.inputs.data)
        state.result_types = [type_.outputs.data, *(() for _ in state.result_types[1:])]


class CheckedAttrDict(AttrDictDirective):
    """`{feature_group_count = 1 : i64}`, where inherent attributes are checked against the definition."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse and check the attributes."""
        start = parser.pos
        super().parse(parser, state)
        for name, definition in state.op_type.get_irdl_definition().properties.items():
            if name not in self.expected_properties or name not in state.properties:
                continue
            if (problem := attribute_problem(name, definition, state.properties[name])) is not None:
                raise parse_error(parser, f"'{state.op_type.name}' op {problem}", start)


def with_mlir_checks(program: FormatProgram) -> FormatProgram:
    """Return an assembly format with MLIR's checks."""
    return FormatProgram(tuple(map(_with_mlir_checks, program.stmts)))


def _with_mlir_checks(directive: FormatDirective) -> FormatDirective:
    match directive:
        case OperandsDirective():
            return AnyOperands()
        case FunctionalTypeDirective(OperandsDirective(), ResultsDirective() as results):
            return AnyFunctionType(AnyOperands(), results)
        case AttrDictDirective(with_keyword, reserved, expected) if expected:
            return CheckedAttrDict(with_keyword, reserved, expected)
        case CustomDirective():
            variables = {field.name: getattr(directive, field.name) for field in fields(directive)}
            replaced = {name: TypeDirective(AnyOperands()) for name, part in variables.items() if _is_of_operands(part)}
            return replace(directive, **replaced)
        case _:
            return directive


def _is_of_operands(part: object) -> bool:
    return isinstance(part, TypeDirective) and isinstance(part.inner, OperandsDirective)
