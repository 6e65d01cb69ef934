"""Parsing of the SDY attributes in `mhlo.frontend_attributes`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import ParseError

from sdy.diagnostics import DiagnosticError, error
from sdy.dialect.attributes import TensorShardingAttr, TensorShardingPerValueAttr
from sdy.passes.gspmd.sharding_texts import text_in
from sdy.sharding import TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.text import Parser

AttributeT = TypeVar("AttributeT", bound=Attribute)

MESHES = "xla.sdy.meshes"
"""Key of a module's meshes."""


@dataclass(frozen=True)
class FrontendTexts:
    """Parser of the SDY attributes in frontend attributes."""

    ctx: Context

    def target(self, call: CustomCallOp) -> str:
        """Return the target of `call`, without the prefix of TensorFlow's copy of XLA."""
        return call.call_target_name.data.removeprefix("local_")

    def read(
        self, attributes: Mapping[str, Attribute], name: str, kind: type[AttributeT], where: Operation
    ) -> AttributeT | None:
        """Parse the attribute `name`; None if it is absent. Raises DiagnosticError if it is not of class `kind`."""
        text = text_in(attributes, name)
        if text is None:
            return None
        attribute = self._parse(text, where)
        if not isinstance(attribute, kind):
            raise error(where, f"expected '{name}' to be of kind {kind.name}, got '{attribute}'")
        return attribute

    def required(
        self, attributes: Mapping[str, Attribute], name: str, kind: type[AttributeT], where: Operation
    ) -> AttributeT:
        """Parse the attribute `name`. Raises DiagnosticError if it is absent."""
        attribute = self.read(attributes, name, kind, where)
        if attribute is None:
            raise error(where, f"has no '{name}' in its 'mhlo.frontend_attributes'")
        return attribute

    def shardings(
        self, attributes: Mapping[str, Attribute], name: str, where: Operation
    ) -> tuple[TensorSharding, ...] | None:
        """Parse a sharding or a list of shardings; None if the attribute is absent."""
        match self.read(attributes, name, Attribute, where):
            case None:
                return None
            case TensorShardingAttr() as one:
                return (one.data,)
            case TensorShardingPerValueAttr() as several:
                return several.data
            case other:
                raise error(where, f"expected '{name}' to be a sharding, got '{other}'")

    def _parse(self, text: str, where: Operation) -> Attribute:
        # A round trip through HLO escapes each quote with a backslash.
        try:
            return Parser(self.ctx, text.replace("\\", ""), "mhlo.frontend_attributes").parse_attribute()
        except (DiagnosticError, ParseError) as problem:
            raise error(where, f"the frontend attribute '{text}' cannot be parsed: {problem}") from None
