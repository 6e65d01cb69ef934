"""The types of StableHLO that are not tensors."""

from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!stablehlo.token`, a value that only orders operations with side effects."""

    name = "stablehlo.token"


TOKEN = TokenType()
