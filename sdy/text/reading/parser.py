"""The parser of MLIR text.

`Parser` extends xDSL's parser, so that the operations of any registered dialect parse. As in MLIR, and unlike xDSL's,
value names are scoped by region, undefined values are reported at their use, operations carry locations and location
aliases may be defined later. Types, attributes and lines are cached by their text.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ModuleOp,
    UnknownLoc,
    UnregisteredOp,
)
from xdsl.ir import Block, Operation, Region
from xdsl.parser import Parser as XDSLParser
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy import gc_control
from sdy.diagnostics import DiagnosticError, error, register_source
from sdy.parse_errors import ChainedParseError
from sdy.text.large_stack import again_on_large_stack, has_large_stack
from sdy.text.lines import LineTable
from sdy.text.printing.assembly_formats import ASSEMBLY_FORMATS
from sdy.text.printing.names import asm_names
from sdy.text.reading.affine_parser import AffineParser
from sdy.text.reading.builtin_syntax import BuiltinSyntaxParser
from sdy.text.reading.dialect_symbols import DialectSymbolParser
from sdy.text.reading.generic_form import GenericFormParser, normalize
from sdy.text.reading.lexer import LazyToken
from sdy.text.reading.line_cache import LineCacheParser
from sdy.text.reading.other_formats import refuse_other_formats
from sdy.text.reading.property_storage import PropertyStorageError
from sdy.text.reading.tokens import integer_value
from sdy.text.verification import verify_parts

_BAD_VALUE = (VerifyException, ValueError, AssertionError, NotImplementedError)
"""The exceptions of constructors of attributes and operations for invalid arguments."""


class Parser(  # pyright: ignore[reportIncompatibleMethodOverride]
    BuiltinSyntaxParser, AffineParser, DialectSymbolParser, GenericFormParser, LineCacheParser
):
    """Parser of one text. Its methods raise ParseError or DiagnosticError."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._op_types: dict[tuple[str, str], type[Operation]] = {}
        self._parsed_regions: set[Region] = set()

    # Regions

    def parse_optional_region(self, arguments: Iterable[XDSLParser.Argument] | None = None) -> Region | None:
        """Parse a region, if one starts here; `arguments` are those of an entry block without a label."""
        if self.parse_optional_punctuation("{") is None:
            return None
        region = Region()
        self._parsed_regions.add(region)
        with self.scope():
            if arguments is not None and not self._is_empty_region(arguments):
                region.add_block(self._entry_block(arguments))
            elif self.current_token.kind not in (MLIRTokenKind.CARET_IDENT, MLIRTokenKind.R_BRACE):
                block = Block()
                self.parse_block_body(block)
                region.add_block(block)
            while self.parse_optional_punctuation("}") is None:
                if self.current_token.kind is not MLIRTokenKind.CARET_IDENT:
                    self.raise_error("expected operation name in quotes")
                region.add_block(self.parse_block())
            for name, references in self.forward_block_references.items():
                raise self.error_at(references[0].start, f"reference to an undefined block '^{name}'")
        return region

    def _is_empty_region(self, arguments: Iterable[XDSLParser.Argument]) -> bool:
        return not tuple(arguments) and self.current_token.kind is MLIRTokenKind.R_BRACE

    def _entry_block(self, arguments: Iterable[XDSLParser.Argument]) -> Block:
        if self.current_token.kind is MLIRTokenKind.CARET_IDENT:
            self.raise_error("invalid block name in region with named arguments", self.pos)
        arguments = tuple(arguments)
        block = Block(arg_types=[argument.type for argument in arguments])
        for value, argument in zip(block.args, arguments, strict=True):
            value.location = argument.location or self.lines.attribute(argument.name.start)
            self.check_unused(argument.name)
            self.register_ssa_definition(argument.name.text[1:], (value,), argument.name)
        self.parse_block_body(block)
        return block

    def parse_block_body(self, block: Block) -> None:
        while True:
            self.parse_cached_lines(block)
            op = self.parse_optional_operation()
            if op is None:
                return
            block.add_op(op)

    def parse_block(self) -> Block:
        token = self.parse_token(MLIRTokenKind.CARET_IDENT, "expected block name")
        name = token.text[1:]
        block, defined_at = self.blocks.get(name, (Block(), None))
        if defined_at is not None:
            raise self.error_at(
                token.span.start,
                f"redefinition of block '^{name}'",
                (self.lines.place(defined_at.start), "previously defined here"),
            )
        self.blocks[name] = block, token.span
        self.forward_block_references.pop(name, None)
        self.parse_optional_block_arg_list(block)
        self.parse_punctuation(":", " after block name")
        self.parse_block_body(block)
        return block

    def parse_optional_block_arg_list(self, block: Block) -> Block | None:
        if self.current_token.kind is not MLIRTokenKind.L_PAREN:
            return None

        def parse_argument() -> None:
            name = self.parse_token(MLIRTokenKind.PERCENT_IDENT, "expected SSA operand").span
            if self.current_token.kind is MLIRTokenKind.HASH_IDENT:
                self.raise_error("invalid SSA value result number")
            self.parse_punctuation(":", " and type for SSA operand")
            argument_type = self.parse_type()
            location = self.parse_optional_location() or self.lines.attribute(name.start)
            argument = block.insert_arg(argument_type, len(block.args), location)
            self.register_ssa_definition(name.text[1:], (argument,), name)

        self.parse_comma_separated_list(self.Delimiter.PAREN, parse_argument)
        return block

    # Operations

    def parse_whole_module(self) -> ModuleOp:
        """Parse the text; operations without a module around them get an implicit one."""
        operations: list[Operation] = []
        while (kind := self.current_token.kind) is not MLIRTokenKind.EOF:
            if kind is MLIRTokenKind.HASH_IDENT or kind is MLIRTokenKind.EXCLAMATION_IDENT:
                self.parse_alias_def()
            elif kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self.parse_file_metadata_dictionary()
            else:
                operations.append(self.parse_operation())
        self.check_all_defined()
        if len(operations) == 1 and isinstance(operations[0], ModuleOp):
            return operations[0]
        module = ModuleOp(operations)
        module.location = self.lines.top
        return module

    def verify(self, module: ModuleOp) -> None:
        """Verify a module that this parser returned. Raises DiagnosticError if it is invalid."""
        parts = [*self.to_verify]
        for op in self.to_verify:
            # Assembly formats may imply regions, such as the body of a reduction that `applies` an operation.
            implied = [region for region in op.regions if region not in self._parsed_regions]
            parts += [nested for region in implied for nested in region.walk()]
        verify_parts(module, parts, self.uses_follow_definitions)

    def parse_operation(self) -> Operation:
        """Parse an operation, in its assembly format or the generic form."""
        line = self.line_at(self.pos)
        op = self._parse_new_operation()
        self.to_verify.append(op)
        if line is not None:
            self.cache_line(line, op)
        return op

    def _parse_new_operation(self) -> Operation:
        start = self.pos
        names = self._parse_result_names()
        token = cast(LazyToken, self.current_token)
        stack = self.state.dialect_stack
        op_type = self._op_types.get((token.text, stack[-1]))
        if op_type is None:
            op_type = self._op_types[token.text, stack[-1]] = self._op_type(token, stack[-1])
        self.consume_token()

        if token.kind is MLIRTokenKind.STRING_LIT:
            op = self._parse_operation_generically(op_type, token.start)
        else:
            stack.append(asm_names(op_type).default_dialect)
            op = self._parse_custom_operation(op_type)
            stack.pop()
            if isinstance(op.location, UnknownLoc):
                op.location = self.parse_optional_location() or self.lines.attribute(token.start)

        if names:
            self._bind_results(op, names, start)
        return op

    def _parse_result_names(self) -> list[tuple[LazyToken, int]]:
        """Parse the left-hand side of an operation: names with their numbers of results."""
        names: list[tuple[LazyToken, int]] = []
        if self.current_token.kind is not MLIRTokenKind.PERCENT_IDENT:
            return names
        while True:
            name = self.parse_token(MLIRTokenKind.PERCENT_IDENT, "expected valid ssa identifier")
            names.append((cast(LazyToken, name), self._parse_number_of_results()))
            if self.parse_optional_punctuation(",") is None:
                self.parse_punctuation("=", " after SSA name")
                return names

    def _parse_number_of_results(self) -> int:
        if self.parse_optional_punctuation(":") is None:
            return 1
        token = self.parse_token(MLIRTokenKind.INTEGER_LIT, "expected integer number of results")
        number = integer_value(token.text)
        if number < 1:
            self.raise_error("expected named operation to have at least 1 result", token.span)
        return number

    def _parse_custom_operation(self, op_type: type[Operation]) -> Operation:
        start, assembly_format = self.pos, ASSEMBLY_FORMATS.get(op_type)
        try:
            return op_type.parse(self) if assembly_format is None else assembly_format.parse(self)
        except ChainedParseError as problem:
            raise problem.close(f"custom op '{op_type.name}' ") from None
        except IndexError:
            if not op_type.__module__.startswith("xdsl.dialects.linalg"):
                raise
            # xDSL's linalg operations build an implied body before checking the number of operands.
            raise self.error_at(start, f"custom op '{op_type.name}' has too few operands for its body") from None

    def _parse_operation_generically(self, op_type: type[Operation], start: int) -> Operation:
        try:
            op = self.parse_generic_operation(op_type, start)
        except ChainedParseError as problem:
            raise problem.close() from None
        except PropertyStorageError as problem:
            raise self.error_at(start, str(problem)) from None
        normalize(op)
        return op

    def _bind_results(self, op: Operation, names: Sequence[tuple[LazyToken, int]], start: int) -> None:
        count = sum(size for _, size in names)
        if not op.results:
            raise self.error_at(start, "cannot name an operation with no results")
        if count != len(op.results):
            raise self.error_at(start, f"operation defines {len(op.results)} results but was provided {count} to bind")
        first = 0
        for name, size in names:
            self.define(name.text[1:], op.results[first : first + size], name.start)
            first += size

    def _op_type(self, token: LazyToken, default_dialect: str) -> type[Operation]:
        """Return the operation class of a name. Raises DiagnosticError if it is unregistered."""
        quoted = token.kind is MLIRTokenKind.STRING_LIT
        if not quoted and token.kind is not MLIRTokenKind.BARE_IDENT:
            self.raise_error("expected operation name in quotes")
        name = token.kind.get_string_literal_value(token.span) if quoted else token.text
        default_dialects = () if quoted else (default_dialect,)
        op_type = self.ctx.get_optional_op(name, dialect_stack=default_dialects)
        registered = op_type is not None and not issubclass(op_type, UnregisteredOp)
        dialect, dot, _ = name.partition(".")
        known_dialect = registered or self.ctx.get_optional_dialect(dialect) is not None
        if op_type is not None and (registered or (quoted and not known_dialect)):
            return op_type
        start = token.start
        if quoted and known_dialect:
            message = (
                f"unregistered operation '{name}' found in dialect ('{dialect}') that does not allow unknown operations"
            )
        elif quoted:
            message = (
                "operation being parsed with an unregistered dialect. If this is intended, please use "
                "-allow-unregistered-dialect with the MLIR tool used"
            )
            self.consume_token()
            start = self.pos
        else:
            full_name = name if dot else f"{default_dialect}.{name}"
            namespace = full_name.partition(".")[0]
            known_dialect = self.ctx.get_optional_dialect(namespace) is not None
            message = (
                f"custom op '{name}' is unknown"
                if known_dialect
                else f"Dialect `{namespace}' not found for custom op '{name}' "
            )
            if not dot:
                message += f" (tried '{full_name}' as well)"
        raise self.error_at(start, message)


def parse_module(text: str, filename: str, context: Context) -> ModuleOp:
    """Parse a module without verifying it. Raises DiagnosticError if the text is invalid."""
    module, _ = _parse(text, filename, context)
    return module


def parse_valid_module(text: str, filename: str, context: Context) -> ModuleOp:
    """Parse and verify a module. Raises DiagnosticError if it is invalid."""
    module, parser = _parse(text, filename, context)
    parser.verify(module)
    return module


@again_on_large_stack
def _parse(text: str, filename: str, context: Context) -> tuple[ModuleOp, Parser]:
    register_source(filename, text)
    refuse_other_formats(text, filename)
    try:
        parser = Parser(context, text, filename)
    except ParseError as problem:
        raise error(LineTable(text, filename).place(problem.span.start), problem.msg) from problem
    try:
        with gc_control.paused():
            return parser.parse_whole_module(), parser
    except MultipleSpansParseError as problem:
        notes = [(parser.lines.place(span.start), note or "here") for span, note in problem.refs]
        raise parser.error_at(problem.span.start, problem.msg, *notes) from problem
    except ChainedParseError as problem:
        diagnostics = [
            parser.error_at(statement.offset, statement.message).diagnostic for statement in problem.statements
        ]
        raise DiagnosticError(*diagnostics) from problem
    except ParseError as problem:
        raise parser.error_at(problem.span.start, _mlir_message(problem.msg)) from problem
    except RecursionError:
        if not has_large_stack():
            raise
        raise parser.error_at(parser.pos, "nested too deeply") from None
    except _BAD_VALUE as problem:
        raise parser.error_at(parser.pos, str(problem) or "not valid here") from problem


def _mlir_message(message: str) -> str:
    """Return an error message of xDSL's parser in MLIR's style, with a lower-case initial."""
    return message[:1].lower() + message[1:] if message.startswith(("Expect", "Duplicate")) else message
