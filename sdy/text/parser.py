"""MLIR text -> xDSL operations.

`Parser` is xDSL's, so that the operations of any registered dialect parse. It differs where MLIR does: names have
their scope, a value that is never defined is found where it is used, operations know where they stand, locations may
refer to aliases that come later, and a type or attribute seen before is recognised by its text.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    UnknownLoc,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import ForwardDeclaredValue, ParserState, UnresolvedOperand
from xdsl.parser import Parser as XDSLParser
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.diagnostics import DiagnosticError, Location, Note, error, register_source
from sdy.text.dense import DenseParser
from sdy.text.lexer import Lexer
from sdy.text.locations import LineTable, LocationParser
from sdy.text.names import asm_names
from sdy.text.spelling import SPELLINGS

_AttributeT = TypeVar("_AttributeT", bound=Attribute)

_IN_STRING = r'"(?:[^"\\]++|\\.)*+"'


def _bracketed(depth: int) -> str:
    inner = f"|{_bracketed(depth - 1)}" if depth else ""
    return rf'<(?:[^<>"-]++|->|-|{_IN_STRING}{inner})*+>'


# What a type or an attribute that starts here extends to, for those worth remembering by their text.
_TYPE_EXTENT = re.compile(rf"\w+(?:{_bracketed(2)})?")
_ATTRIBUTE_EXTENT = re.compile(
    rf"#[\w.]+{_bracketed(5)}|array{_bracketed(0)}|dense<[^<>]{{0,64}}> : tensor{_bracketed(1)}"
)

_REMEMBERED_ATTRIBUTES = frozenset({"array", "dense"})

_BAD_VALUE = (VerifyException, ValueError, AssertionError, NotImplementedError, OverflowError, MemoryError)
"""What attributes and operations raise when they are built from what the text says."""


class Parser(DenseParser, LocationParser):
    """Parses one text. Raises ParseError or DiagnosticError where it is wrong."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, "", filename)
        self.lines = LineTable(text, filename)
        self._parser_state = ParserState(Lexer(Input(text, filename)))
        self._types: dict[str, TypeAttribute] = {}
        self._attributes: dict[str, Attribute] = {}
        self._defined_here: list[str] = []
        self._uses: dict[str, Span] = {}

    # Diagnostics

    def error_at(self, offset: int, message: str, *notes: Note) -> DiagnosticError:
        """An error at an offset of the text."""
        return error(self.lines.place(offset), message, *notes)

    # Types and attributes

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type, if one starts here; the same object when its text has been seen before."""
        token = self._current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        return self._remembered(self._types, _TYPE_EXTENT, super().parse_optional_type)

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """A number with its type, or a boolean, if one starts here."""
        start = self.pos
        try:
            return super().parse_optional_builtin_int_or_float_attr()
        except (VerifyException, OverflowError):
            raise self.error_at(start, "integer constant out of range for attribute") from None

    def parse_optional_attribute(self) -> Attribute | None:
        """An attribute, if one starts here; the same object when its text has been seen before."""
        token = self._current_token
        if token.kind is MLIRTokenKind.HASH_IDENT or token.text in _REMEMBERED_ATTRIBUTES:
            return self._remembered(self._attributes, _ATTRIBUTE_EXTENT, super().parse_optional_attribute)
        return super().parse_optional_attribute()

    def _remembered(
        self, memory: dict[str, _AttributeT], extent: re.Pattern[str], parse: Callable[[], _AttributeT | None]
    ) -> _AttributeT | None:
        content = self.lexer.input.content
        match = extent.match(content, self.pos)
        if match is None:
            return parse()
        known = memory.get(match[0])
        if known is not None:
            self._resume_from(match.end())
            return known
        parsed = parse()
        if parsed is not None and not content[match.end() : self.pos].strip() and self.pos >= match.end():
            memory[match[0]] = parsed
        return parsed

    # Values

    def resolve_operand(self, operand: UnresolvedOperand, type: _AttributeT) -> SSAValue[_AttributeT]:  # noqa: A002
        """The value that an operand names, or a placeholder when it is defined further down."""
        name = operand.operand_name
        values = self.ssa_values.get(name)
        if values is None:
            references = self.forward_ssa_references.setdefault(name, {})
            value = references.get(operand.index)
            if value is None:
                self._uses.setdefault(name, operand.span)
                forward = ForwardDeclaredValue(type)
                references[operand.index] = forward
                return forward
        elif operand.index < len(values):
            value = values[operand.index]
        else:
            raise self.error_at(
                operand.span.start,
                f"reference to invalid result number {operand.index} of '%{name}', which has {len(values)}",
            )
        if value.type is not type and value.type != type:
            prior: list[Note] = [(self._place_of(name, value), "prior use here")]
            raise self.error_at(
                operand.span.start,
                f"use of value '%{name}' expects different type than prior uses: '{type}' vs '{value.type}'",
                *prior,
            )
        return cast(SSAValue[_AttributeT], value)

    def _place_of(self, name: str, value: SSAValue) -> SSAValue | Location:
        if isinstance(value, ForwardDeclaredValue):
            return self.lines.place(self._uses[name].start)
        return value

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if name in self.ssa_values:
            raise self.error_at(
                span.start,
                f"redefinition of SSA value '%{name}'",
                (self.ssa_values[name][0], "previously defined here"),
            )
        self.ssa_values[name] = tuple(values)
        self._defined_here.append(name)
        for index, forward in self.forward_ssa_references.pop(name, {}).items():
            use = self._uses[name].start
            if index >= len(values):
                raise self.error_at(use, f"reference to invalid result number {index} of '%{name}'")
            if forward.type != values[index].type:
                raise self.error_at(
                    span.start,
                    f"definition of SSA value '%{name}#{index}' has type '{values[index].type}'",
                    (self.lines.place(use), f"previously used here with type '{forward.type}'"),
                )
            forward.replace_all_uses_with(values[index])

    def parse_optional_region(self, arguments: Iterable[XDSLParser.Argument] | None = None) -> Region | None:
        """A region, if one starts here. `arguments` are those of its entry block, which then has no label."""
        if self.parse_optional_punctuation("{") is None:
            return None
        with self._scope():
            region = Region()
            if arguments is not None:
                region.add_block(self._entry_block(arguments))
            elif self._current_token.kind not in (MLIRTokenKind.CARET_IDENT, MLIRTokenKind.R_BRACE):
                block = Block()
                self._parse_block_body(block)
                region.add_block(block)
            while self.parse_optional_punctuation("}") is None:
                if self._current_token.kind is not MLIRTokenKind.CARET_IDENT:
                    self.raise_error("expected operation name in quotes")
                region.add_block(self._parse_block())
            for name, references in self.forward_block_references.items():
                raise self.error_at(references[0].start, f"reference to an undefined block '^{name}'")
        return region

    def _entry_block(self, arguments: Iterable[XDSLParser.Argument]) -> Block:
        if self._current_token.kind is MLIRTokenKind.CARET_IDENT:
            self.raise_error("invalid block name in region with named arguments")
        arguments = tuple(arguments)
        block = Block(arg_types=[argument.type for argument in arguments])
        for value, argument in zip(block.args, arguments, strict=True):
            value.location = argument.location or self.lines.attribute(argument.name.start)
            self._register_ssa_definition(argument.name.text[1:], (value,), argument.name)
        self._parse_block_body(block)
        return block

    def _parse_optional_block_arg_list(self, block: Block) -> Block | None:
        if self._current_token.kind is not MLIRTokenKind.L_PAREN:
            return None

        def parse_argument() -> None:
            name = self._parse_token(MLIRTokenKind.PERCENT_IDENT, "expected block argument").span
            self.parse_punctuation(":")
            argument_type = self.parse_type()
            location = self.parse_optional_location() or self.lines.attribute(name.start)
            argument = block.insert_arg(argument_type, len(block.args), location)
            self._register_ssa_definition(name.text[1:], (argument,), name)

        self.parse_comma_separated_list(self.Delimiter.PAREN, parse_argument)
        return block

    @contextmanager
    def _scope(self) -> Generator[None]:
        """The names of a region, which end with it."""
        outer_defined = self._defined_here
        outer_blocks, outer_forward_blocks = self.blocks, self.forward_block_references
        self._defined_here = []
        self.blocks, self.forward_block_references = {}, defaultdict(list)
        yield
        for name in self._defined_here:
            del self.ssa_values[name]
        self._defined_here = outer_defined
        self.blocks, self.forward_block_references = outer_blocks, outer_forward_blocks

    def _check_all_defined(self) -> None:
        undefined = [self._uses[name].start for name in self.forward_ssa_references]
        if undefined:
            raise self.error_at(min(undefined), "use of undeclared SSA value name")

    # Operations

    def parse_whole_module(self) -> ModuleOp:
        """The module that the text is, or one around the operations that it is."""
        operations: list[Operation] = []
        while (kind := self._current_token.kind) is not MLIRTokenKind.EOF:
            if kind is MLIRTokenKind.HASH_IDENT or kind is MLIRTokenKind.EXCLAMATION_IDENT:
                self._parse_alias_def()
            elif kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self._parse_file_metadata_dictionary()
            else:
                operations.append(self.parse_operation())
        self._check_all_defined()
        if len(operations) == 1 and isinstance(operations[0], ModuleOp):
            return operations[0]
        module = ModuleOp(operations)
        module.location = self.lines.attribute(0)
        return module

    def parse_operation(self) -> Operation:
        """One operation, in its own form or the generic one."""
        start = self._current_token.span.start
        bound = self._parse_op_result_list()
        token = self._current_token
        if token.kind is MLIRTokenKind.BARE_IDENT:
            self._consume_token()
            op_type = self._op_type(token, self._parser_state.dialect_stack[-1:])
            parse = self._parse_custom_operation
        elif token.kind is MLIRTokenKind.STRING_LIT:
            op_type = self._op_type(token, ())
            self._consume_token()
            parse = self._parse_operation_generically
        else:
            self.raise_error("expected operation name in quotes")

        self._parser_state.dialect_stack.append(asm_names(op_type).default_dialect)
        op = parse(op_type)
        self._parser_state.dialect_stack.pop()
        if isinstance(op.location, UnknownLoc):
            op.location = self.parse_optional_location() or self.lines.attribute(token.span.start)

        if bound:
            self._bind_results(op, bound, start)
        return op

    def _parse_custom_operation(self, op_type: type[Operation]) -> Operation:
        spelling = SPELLINGS.get(op_type)
        return op_type.parse(self) if spelling is None else spelling.parse(self)

    def _parse_operation_generically(self, op_type: type[Operation]) -> Operation:
        op = self._parse_generic_operation(op_type)
        if (spelling := SPELLINGS.get(op_type)) is not None:
            op.attributes.update({key: op.properties.pop(key) for key in spelling.inherent if key in op.properties})
        return op

    def _bind_results(self, op: Operation, bound: Sequence[tuple[Span, int]], start: int) -> None:
        count = sum(size for _, size in bound)
        if count != len(op.results):
            raise self.error_at(start, f"operation defines {len(op.results)} results but was provided {count} to bind")
        first = 0
        for name, size in bound:
            self._register_ssa_definition(name.text[1:], op.results[first : first + size], name)
            first += size

    def _op_type(self, token: Token[MLIRTokenKind, str], default_dialects: Sequence[str]) -> type[Operation]:
        quoted = token.kind is MLIRTokenKind.STRING_LIT
        name = token.kind.get_string_literal_value(token.span) if quoted else token.text
        op_type = self.ctx.get_optional_op(name, dialect_stack=default_dialects)
        registered = op_type is not None and not issubclass(op_type, UnregisteredOp)
        dialect, dot, _ = name.partition(".")
        known_dialect = registered or self.ctx.get_optional_dialect(dialect) is not None
        if op_type is not None and (registered or (quoted and not known_dialect)):
            return op_type
        if quoted and known_dialect:
            message = (
                f"unregistered operation '{name}' found in dialect ('{dialect}') that does not allow unknown operations"
            )
        elif quoted:
            message = (
                f"operation being parsed with an unregistered dialect: '{name}'; "
                "if this is intended, use -allow-unregistered-dialect"
            )
        elif dot and not known_dialect:
            message = f"Dialect `{dialect}' not found for custom op '{name}'"
        else:
            tried = "".join(f" (tried '{default}.{name}' as well)" for default in default_dialects if not dot)
            message = f"custom op '{name}' is unknown{tried}"
        raise self.error_at(token.span.start, message)


def parse_module(text: str, filename: str, context: Context) -> ModuleOp:
    """The module that `text` is, or one around the operations that it is, not yet verified. Raises DiagnosticError."""
    register_source(filename, text)
    if not text.strip():
        raise error(Location(filename, 1, 1), "the file is empty")
    try:
        parser = Parser(context, text, filename)
    except ParseError as problem:
        raise error(LineTable(text, filename).place(problem.span.start), problem.msg) from problem
    try:
        return parser.parse_whole_module()
    except MultipleSpansParseError as problem:
        notes = [(parser.lines.place(span.start), note or "here") for span, note in problem.refs]
        raise parser.error_at(problem.span.start, problem.msg, *notes) from problem
    except ParseError as problem:
        raise parser.error_at(problem.span.start, _sentence(problem.msg)) from problem
    except RecursionError:
        raise parser.error_at(parser.pos, "nested too deeply") from None
    except _BAD_VALUE as problem:
        raise parser.error_at(parser.pos, str(problem) or "not valid here") from problem


def _sentence(message: str) -> str:
    """A message of xDSL's parser in MLIR's manner: it begins with a small letter."""
    return message[:1].lower() + message[1:] if message.startswith(("Expect", "Duplicate")) else message
