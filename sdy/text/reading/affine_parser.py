"""The parser of `affine_map<(d0) -> (d0 * 2)>` and `affine_set<(d0) : (d0 >= 0)>`."""

from collections.abc import Callable
from dataclasses import replace

from xdsl.ir.affine import (
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineExpr,
    AffineMap,
    AffineSet,
)
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

from sdy.ir.open_syntax import OpenAffineParser
from sdy.text.affine import Kind, combine, is_symbolic, negate
from sdy.text.reading.tokens import TokenParser

_OPERATORS = {"*": Kind.Mul, "floordiv": Kind.FloorDiv, "ceildiv": Kind.CeilDiv, "mod": Kind.Mod}

_ZERO = AffineConstantExpr(0)
_ALWAYS = AffineConstraintExpr(AffineConstraintKind.eq, _ZERO, _ZERO, canonicalize=False)
"""The constraint of a set without constraints, `0 == 0`."""

_Identifier = Callable[[], AffineExpr | None]


class _ExpressionParser(OpenAffineParser):
    """xDSL's parser of affine expressions, with MLIR's simplifications."""

    def parse_primary(self, parse_optional_bare_id: _Identifier) -> AffineExpr:
        if self.parse_optional_token(MLIRTokenKind.MINUS) is not None:
            return negate(self.parse_primary(parse_optional_bare_id))
        return super().parse_primary(parse_optional_bare_id)

    def create_binop_expr(self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken) -> AffineExpr:
        operator = binop.text
        if operator in ("+", "-"):
            return combine(Kind.Add, lhs, rhs if operator == "+" else negate(rhs))
        if not is_symbolic(rhs) and not (operator == "*" and is_symbolic(lhs)):
            needed = "at least one of the multiply operands" if operator == "*" else f"right operand of {operator}"
            self.raise_error(f"non-affine expression: {needed} has to be either a constant or symbolic", binop.span)
        return combine(_OPERATORS[operator], lhs, rhs)

    def parse_affine_constraint(self, parse_optional_bare_id: _Identifier) -> AffineConstraintExpr:
        """Parse a constraint, normalized to a comparison of one expression with 0."""
        lhs = self.parse_affine_expr(parse_optional_bare_id)
        start = self.current_token.span
        relation = self.consume_token().text + self.consume_token().text
        rhs = self.parse_affine_expr(parse_optional_bare_id)
        match relation:
            case ">=" | "==":
                difference = combine(Kind.Add, lhs, negate(rhs))
            case "<=":
                difference = combine(Kind.Add, rhs, negate(lhs))
            case _:
                self.raise_error("expected '== affine-expr' at end of affine constraint", start)
        kind = AffineConstraintKind.eq if relation == "==" else AffineConstraintKind.ge
        return AffineConstraintExpr(kind, difference, _ZERO, canonicalize=False)


class AffineParser(TokenParser):
    """Mixin of the parser for affine maps and sets."""

    def parse_affine_map(self) -> AffineMap:
        """Parse `(d0)[s0] -> (d0 + s0)`."""
        return _ExpressionParser(self.state).parse_affine_map()

    def parse_affine_set(self) -> AffineSet:
        """Parse `(d0)[s0] : (d0 - s0 >= 0)`."""
        affine_set = _ExpressionParser(self.state).parse_affine_set()
        return affine_set if affine_set.constraints else replace(affine_set, constraints=(_ALWAYS,))
