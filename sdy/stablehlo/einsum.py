"""Deprecated einsum operations."""

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from sdy.stablehlo.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR


@define
class EinsumOp(IRDLOperation):
    """Einsum of two operands, `"ab,bc->ac"`."""

    name = "stablehlo.einsum"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    einsum_config = prop_def(StringAttr)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"


@define
class UnaryEinsumOp(IRDLOperation):
    """Einsum of one operand, `"ab->a"`."""

    name = "stablehlo.unary_einsum"
    operand = operand_def(TENSOR)
    einsum_config = prop_def(StringAttr)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"
