"""The names of values during parsing: scopes, definitions and forward references."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import ForwardDeclaredValue, UnresolvedOperand
from xdsl.utils.lexer import Span

from sdy.diagnostics import Location, Note
from sdy.parse_errors import parse_error
from sdy.text.reading.tokens import TokenParser

_AttributeT = TypeVar("_AttributeT", bound=Attribute)


class ValueParser(TokenParser):
    """Mixin of the parser for value names."""

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._defined_here: list[str] = []
        self._uses: dict[tuple[str, int], int] = {}
        """The offset of the first use of each forward reference, by name and result number."""

    def resolve_operand(self, operand: UnresolvedOperand, type: _AttributeT) -> SSAValue[_AttributeT]:  # noqa: A002
        """Return the value of an operand, or a placeholder if it is a forward reference."""
        return self.use(operand.operand_name, operand.index, type, operand.span.start)

    def resolve_operands(
        self, args: Sequence[UnresolvedOperand], input_types: Sequence[Attribute], error_pos: int
    ) -> Sequence[SSAValue]:
        """Return the values of operands. Raises ParseError if the numbers of operands and types differ."""
        if len(args) != len(input_types):
            counts = f"got {len(args)} operands and {len(input_types)} types"
            raise parse_error(self, f"number of operands and types do not match: {counts}", error_pos)
        return [self.resolve_operand(operand, type_) for operand, type_ in zip(args, input_types, strict=True)]

    def use(self, name: str, index: int, type: _AttributeT, offset: int) -> SSAValue[_AttributeT]:  # noqa: A002
        """Return the value of a use: result `index` of `name`, at an offset of the text, of the type `type`."""
        values = self.ssa_values.get(name)
        if values is None:
            references = self.forward_ssa_references.setdefault(name, {})
            value = references.get(index)
            if value is None:
                self._uses.setdefault((name, index), offset)
                forward = ForwardDeclaredValue(type)
                references[index] = forward
                return forward
        elif index < len(values):
            value = values[index]
        else:
            raise self.error_at(offset, "reference to invalid result number")
        if value.type is not type and value.type != type:
            prior: list[Note] = [(self._place_of(name, value), "prior use here")]
            raise self.error_at(
                offset,
                f"use of value '%{name}' expects different type than prior uses: '{type}' vs '{value.type}'",
                *prior,
            )
        return cast(SSAValue[_AttributeT], value)

    def _place_of(self, name: str, value: SSAValue) -> SSAValue | Location:
        return self._first_use(name) if isinstance(value, ForwardDeclaredValue) else value

    def _first_use(self, name: str) -> Location:
        return self.lines.place(min(self._uses[name, index] for index in self.forward_ssa_references[name]))

    def check_unused(self, argument: Span) -> None:
        """Raise DiagnosticError if the name of a region's argument is already in use."""
        name = argument.text[1:]
        if name in self.ssa_values:
            earlier = self._place_of(name, self.ssa_values[name][0])
        elif name in self.forward_ssa_references:
            earlier = self._first_use(name)
        else:
            return
        message = f"region entry argument '%{name}' is already in use"
        raise self.error_at(argument.start, message, (earlier, "previously referenced here"))

    def register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        self.define(name, values, span.start)

    def define(self, name: str, values: Sequence[SSAValue], offset: int) -> None:
        """Define a name, at an offset of the text, as `values`."""
        if name in self.ssa_values:
            raise self.error_at(
                offset,
                f"redefinition of SSA value '%{name}'",
                (self.ssa_values[name][0], "previously defined here"),
            )
        self.ssa_values[name] = tuple(values)
        self._defined_here.append(name)
        if name not in self.forward_ssa_references:
            return
        references = self.forward_ssa_references.pop(name)
        for index, forward in references.items():
            if index >= len(values):
                # It stays undefined; `check_all_defined` reports it.
                self.forward_ssa_references.setdefault(name, {})[index] = forward
                continue
            use = self._uses[name, index]
            if forward.type != values[index].type:
                raise self.error_at(
                    offset,
                    f"definition of SSA value '%{name}#{index}' has type '{values[index].type}'",
                    (self.lines.place(use), f"previously used here with type '{forward.type}'"),
                )
            forward.replace_all_uses_with(values[index])

    @property
    def uses_follow_definitions(self) -> bool:
        """True if the text so far has no forward references."""
        return not self._uses

    @contextmanager
    def scope(self) -> Generator[None]:
        """Open the scope of a region: names defined in it are removed at its end."""
        outer_defined = self._defined_here
        outer_blocks, outer_forward_blocks = self.blocks, self.forward_block_references
        self._defined_here = []
        self.blocks, self.forward_block_references = {}, defaultdict(list)
        yield
        for name in self._defined_here:
            del self.ssa_values[name]
        self._defined_here = outer_defined
        self.blocks, self.forward_block_references = outer_blocks, outer_forward_blocks

    def check_all_defined(self) -> None:
        """Raise DiagnosticError if a used value has not been defined."""
        undefined = [self._uses[name, index] for name, uses in self.forward_ssa_references.items() for index in uses]
        if undefined:
            raise self.error_at(min(undefined), "use of undeclared SSA value name")
