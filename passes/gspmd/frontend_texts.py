"""Reading the texts of SDY that XLA keeps in `mhlo.frontend_attributes`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import ParseError

from sdy.diagnostics import DiagnosticError, error
from sdy.dialect.attributes import TensorShardingAttr, TensorShardingPerValueAttr
from sdy.passes.gspmd.texts import text_in
from sdy.sharding import TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.text import Parser

AttributeT = TypeVar("AttributeT", bound=Attribute)

MESHES = "xla.sdy.meshes"
"""The attribute of a module with its meshes by name."""


@dataclass(frozen=True)
class FrontendTexts:
    """What texts of SDY's attributes are."""

    ctx: Context

    def target(self, call: CustomCallOp) -> str:
        """What `call` calls, by the name that XLA has for it also where TensorFlow's copy of XLA wrote it."""
        return call.call_target_name.data.removeprefix("local_")

    def read(
        self, attributes: Mapping[str, Attribute], name: str, kind: type[AttributeT], where: Operation
    ) -> AttributeT | None:
        """The attribute that the text of this name is, or None; DiagnosticError where it is none of this kind."""
        text = text_in(attributes, name)
        if text is None:
            return None
        found = self._parsed(text, where)
        if not isinstance(found, kind):
            raise error(where, f"'{name}' is {kind.name}, and not '{found}'")
        return found

    def required(
        self, attributes: Mapping[str, Attribute], name: str, kind: type[AttributeT], where: Operation
    ) -> AttributeT:
        """As `read`; DiagnosticError where there is none."""
        found = self.read(attributes, name, kind, where)
        if found is None:
            raise error(where, f"has no '{name}' in its 'mhlo.frontend_attributes'")
        return found

    def shardings(
        self, attributes: Mapping[str, Attribute], name: str, where: Operation
    ) -> tuple[TensorSharding, ...] | None:
        """The shardings of values that the text of this name is, or None; one may stand by itself."""
        match self.read(attributes, name, Attribute, where):
            case None:
                return None
            case TensorShardingAttr() as one:
                return (one.data,)
            case TensorShardingPerValueAttr() as several:
                return several.data
            case other:
                raise error(where, f"'{name}' is a sharding, and not '{other}'")

    def _parsed(self, text: str, where: Operation) -> Attribute:
        # What went through HLO has a backslash before each quote.
        try:
            return Parser(self.ctx, text.replace("\\", ""), "mhlo.frontend_attributes").parse_attribute()
        except (DiagnosticError, ParseError) as problem:
            raise error(where, f"the frontend attribute '{text}' cannot be read: {problem}") from None
