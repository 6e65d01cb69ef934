"""Composite operations, defined by a function of the module."""

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
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR_TOKEN_OR_TUPLE

NAMESPACED = r"^[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+$"


class DecompositionUser(SymbolUserOpInterface):
    """Trait that checks the decomposition's signature."""

    def verify(self, op: Operation) -> None:
        """Raise DiagnosticError if the name has no namespace, or the function is missing or has another signature."""
        assert isinstance(op, CompositeOp)
        if not re.match(NAMESPACED, op.name_.data):
            rule = f'it must match the following regular expression: {NAMESPACED} e.g. "my_namespace.my_op"'
            raise error(op, f"name must be a valid namespaced op name, i.e. {rule}")
        function = SymbolTable.lookup_symbol(op, op.decomposition)
        if not isinstance(function, FuncOp):
            raise error(op, f"'{op.decomposition.string_value()}' does not reference a valid function")
        signature = function.function_type
        for kind, types, signature_types in (
            ("operand", op.operand_types, signature.inputs.data),
            ("result", op.result_types, signature.outputs.data),
        ):
            if len(types) != len(signature_types):
                raise error(op, f"has {len(types)} {kind}(s), but decomposition has {len(signature_types)}")
            for index, (one, other) in enumerate(zip(types, signature_types, strict=True)):
                if one != other:
                    difference = f"has type {quoted([one])}, but decomposition has type {quoted([other])}"
                    raise error(op, f"{kind} at index {index} {difference}")


@define
class CompositeOp(IRDLOperation):
    """An operation defined by its decomposition, a function that computes the same."""

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
