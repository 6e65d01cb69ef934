"""Operations made of others, those of a function of the module."""

import re

from xdsl.dialects.builtin import I32, DictionaryAttr, FlatSymbolRefAttrConstr, IntegerAttr, StringAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import SymbolTable, SymbolUserOpInterface

from sdy.diagnostics import error, quoted
from sdy.stablehlo.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR_TOKEN_OR_TUPLE

NAMESPACED = r"^[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+$"


class DecompositionUser(SymbolUserOpInterface):
    """The decomposition is a function of the module that takes the operands and gives the results."""

    def verify(self, op: Operation) -> None:
        """Raises DiagnosticError for a name without a namespace, and for a function that is missing or different."""
        assert isinstance(op, CompositeOp)
        if not re.match(NAMESPACED, op.name_.data):
            rule = f'it must match the following regular expression: {NAMESPACED} e.g. "my_namespace.my_op"'
            raise error(op, f"name must be a valid namespaced op name, i.e. {rule}")
        function = SymbolTable.lookup_symbol(op, op.decomposition)
        if not isinstance(function, FuncOp):
            raise error(op, f"'{op.decomposition.string_value()}' does not reference a valid function")
        signature = function.function_type
        for kind, given, wanted in (
            ("operand", op.operand_types, signature.inputs.data),
            ("result", op.result_types, signature.outputs.data),
        ):
            if len(given) != len(wanted):
                raise error(op, f"has {len(given)} {kind}(s), but decomposition has {len(wanted)}")
            for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
                if one != other:
                    types = f"has type {quoted([one])}, but decomposition has type {quoted([other])}"
                    raise error(op, f"{kind} at index {index} {types}")


@define
class CompositeOp(IRDLOperation):
    """An operation made of others: its decomposition is a function that computes the same."""

    name = "stablehlo.composite"
    inputs = var_operand_def(TENSOR_TOKEN_OR_TUPLE)
    name_ = prop_def(StringAttr, prop_name="name")
    composite_attributes = opt_prop_def(DictionaryAttr, DictionaryAttr({}))
    decomposition = prop_def(FlatSymbolRefAttrConstr)
    version = opt_prop_def(IntegerAttr[I32], IntegerAttr(0, i32))
    res = var_result_def(TENSOR_TOKEN_OR_TUPLE)
    composite_regions = var_region_def()
    traits = traits_def(DecompositionUser())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$name operands (` ` `(` $composite_regions^ `)`)? attr-dict `:` functional-type(operands, results)"
    )
