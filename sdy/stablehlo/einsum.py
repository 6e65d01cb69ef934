"""Sums of products in Einstein's notation, which StableHLO no longer recommends."""

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from sdy.stablehlo.definition import define


@define
class EinsumOp(IRDLOperation):
    """A sum of products of two operands, `"ab,bc->ac"`."""

    name = "stablehlo.einsum"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    einsum_config = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"


@define
class UnaryEinsumOp(IRDLOperation):
    """A transposition, diagonal or sum of one operand, `"ab->a"`."""

    name = "stablehlo.unary_einsum"
    operand = operand_def(TensorType)
    einsum_config = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"
