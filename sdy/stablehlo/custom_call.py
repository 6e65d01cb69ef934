"""Calls of code outside StableHLO: custom_call, composite, and the tuples that old ones return."""

from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import (
    I32,
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    TupleType,
    i32,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes import FALSE, OutputOperandAliasAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.syntax import SpacedOperands

ORIGINAL_API = IntegerAttr(1, i32)


class CustomCallEffects(MemoryEffect):
    """A custom call has side effects where it says so."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Reads and writes, or nothing."""
        assert isinstance(op, CustomCallOp)
        if op.has_side_effect.value.data:
            return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}
        return set()


@irdl_custom_directive
class SymbolName(CustomDirective):
    """`@target`, kept as a string."""

    target: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the name."""
        self.target.set(state, parser.parse_symbol_name())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the name."""
        target = self.target.get(op)
        assert isinstance(target, StringAttr)
        state.print_whitespace(printer)
        printer.print_symbol_name(target.data)


@define
class CustomCallOp(IRDLOperation):
    """Whatever the target, a name that the backend knows, makes of the inputs."""

    name = "stablehlo.custom_call"
    inputs = var_operand_def()
    call_target_name = prop_def(StringAttr)
    has_side_effect = opt_prop_def(BoolAttr, FALSE)
    backend_config = opt_prop_def(StringAttr | DictionaryAttr)
    api_version = opt_prop_def(IntegerAttr[I32], ORIGINAL_API)
    called_computations = opt_prop_def(ArrayAttr, ArrayAttr(()))
    operand_layouts = opt_prop_def(ArrayAttr)
    result_layouts = opt_prop_def(ArrayAttr)
    output_operand_aliases = opt_prop_def(ArrayAttr[OutputOperandAliasAttr], ArrayAttr(()))
    result_tilings = opt_prop_def(ArrayAttr)
    res = var_result_def()
    traits = traits_def(CustomCallEffects())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "custom<SymbolName>($call_target_name) `(` $inputs `)` attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (SymbolName,)

    def verify_(self) -> None:
        """Refuse layouts for only one side or of another number."""
        if (self.operand_layouts is None) != (self.result_layouts is None):
            raise VerifyException("Layout attributes should be specified for either both operands and results or none.")
        if self.operand_layouts is not None and len(self.operand_layouts) != len(self.inputs):
            raise VerifyException(
                "Number of operands must match the number of operand layouts, "
                f"{len(self.inputs)} != {len(self.operand_layouts)}"
            )


@define
class CompositeOp(IRDLOperation):
    """An operation made of others: its decomposition is a function that computes the same."""

    name = "stablehlo.composite"
    inputs = var_operand_def()
    name_ = prop_def(StringAttr, prop_name="name")
    composite_attributes = opt_prop_def(DictionaryAttr, DictionaryAttr({}))
    decomposition = prop_def(FlatSymbolRefAttrConstr)
    version = opt_prop_def(IntegerAttr[I32], IntegerAttr(0, i32))
    res = var_result_def()
    composite_regions = var_region_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$name operands (` ` `(` $composite_regions^ `)`)? attr-dict `:` functional-type(operands, results)"
    )


@irdl_custom_directive
class TupleTypes(CustomDirective):
    """`tuple<tensor<4xf32>, tensor<i32>>`, the result's type, which says the operands' as well."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Set the types of the operands and of the result."""
        start = parser.pos
        result = parser.parse_type()
        if not isinstance(result, TupleType):
            parser.raise_error("expected tuple type", start, parser.pos)
        self.operands.set(state, result.types.data)
        self.result.set(state, (result,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the result's type."""
        state.print_whitespace(printer)
        printer.print_attribute(op.results[0].type)


@define
class TupleOp(IRDLOperation):
    """The operands as one value."""

    name = "stablehlo.tuple"
    val = var_operand_def()
    result = result_def(TupleType)
    traits = traits_def(Pure())
    assembly_format = "custom<SpacedOperands>($val) attr-dict `:` custom<TupleTypes>(type($val), type($result))"
    custom_directives = (SpacedOperands, TupleTypes)

    def verify_(self) -> None:
        """Refuse a result that does not hold the operands' types."""
        assert isinstance(self.result.type, TupleType)
        if self.result.type.types.data != tuple(self.operand_types):
            raise VerifyException("the types of the operands must be those of the tuple's elements")


@define
class GetTupleElementOp(IRDLOperation):
    """One value of a tuple."""

    name = "stablehlo.get_tuple_element"
    operand = operand_def(TupleType)
    index = prop_def(IntegerAttr[I32])
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand `[` $index `]` attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Refuse an index that is out of range, and a result of another type."""
        assert isinstance(self.operand.type, TupleType)
        types: tuple[Attribute, ...] = self.operand.type.types.data
        index = self.index.value.data
        if not 0 <= index < len(types):
            raise VerifyException(f"index {index} is out of bounds of operand with size {len(types)}")
        if types[index] != self.result.type:
            raise VerifyException(f"has return type {self.result.type}, but expected {types[index]}")
