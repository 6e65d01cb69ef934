"""`define`, a faster `irdl_op_definition` for operations whose assembly format contains every type.

xDSL's parser of assembly formats infers omitted types, and checks the operation's constraints for that. Without types
to infer, parsing takes about 60% of the time; the verifier checks the operation afterwards like any other.
"""

from functools import cache
from typing import TypeVar

from xdsl.ir import Attribute, OpTraits, Region
from xdsl.irdl import IRDLOperation, OpDef, irdl_op_definition
from xdsl.irdl.declarative_assembly_format import FormatProgram, ParsingState
from xdsl.parser import Parser
from xdsl.printer import Printer

from sdy.ir.operation_key import VerifiedByKey
from sdy.stablehlo.syntax.format_directives import with_mlir_checks

OpT = TypeVar("OpT", bound=IRDLOperation)


def define(cls: type[OpT]) -> type[OpT]:
    """Decorate a class that defines an operation.

    The `verify_` of an operation without regions must depend only on its types and attributes: it runs once for all
    operations with the same ones. Other checks belong in a trait's `verify`.

    Raises:
        PyRDLError: If the definition is invalid. An invalid assembly format is reported when it is first used.
    """
    assembly_format, cls.assembly_format = cls.assembly_format, None
    irdl_op_definition(cls)
    definition = cls.get_irdl_definition()
    if not definition.regions:
        inherited = cls.traits
        cls.traits = OpTraits(lambda: (*inherited, VerifiedByKey()))
    if assembly_format is not None:
        cls.assembly_format = assembly_format
        _add_syntax(cls, definition, assembly_format)
    return cls


def _add_syntax(cls: type[IRDLOperation], definition: OpDef, assembly_format: str) -> None:
    @cache
    def program() -> FormatProgram:
        """Compile the assembly format, on its first use."""
        return with_mlir_checks(FormatProgram.from_str(assembly_format, definition))

    def parse(cls: type[OpT], parser: Parser) -> OpT:
        start = parser.pos
        state = ParsingState(cls)
        for directive in program().stmts:
            directive.parse(parser, state)
        named = [operand for operands in state.operands for operand in operands or ()]
        operand_types = [type_ for types in state.operand_types for type_ in types or ()]
        result_types: list[Attribute] = [type_ for types in state.result_types for type_ in types or ()]
        regions: list[Region] = [region for regions in state.regions for region in regions or ()]
        return cls.create(
            operands=parser.resolve_operands(named, operand_types, start),
            result_types=result_types,
            properties=state.properties,
            attributes=state.attributes,
            regions=regions,
        )

    def print_(self: IRDLOperation, printer: Printer) -> None:
        program().print(printer, self)

    setattr(cls, "parse", classmethod(parse))  # noqa: B010
    setattr(cls, "print", print_)  # noqa: B010
