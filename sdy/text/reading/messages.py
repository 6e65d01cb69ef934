"""MLIR's wording of xDSL's error messages about missing tokens."""

MISSING_TOKEN_MESSAGES = {
    "'(' expected in operation argument list": "expected '(' to start operand list",
    "')' expected in operation argument list": "expected ')' to end operand list",
    "Attribute expected": "expected attribute value",
    "Expected '<' after `strided`": "expected '<' after 'strided'",
    "Expected a MemRef layout attribute": "expected attribute value",
    "Expected bare-id or string-literal here as part of attribute entry!": "expected attribute name",
    "Expected block argument!": "expected SSA operand",
    "Expected integer as SSA value tuple index": "invalid SSA value result number",
    "Expected either a float, integer, or complex literal": "expected element literal of primitive type",
    "Expected region!": "expected '{' to begin a region",
    "Expected shape type.": "expected non-function type",
    "Expected vector element type": "expected non-function type",
    "block argument expected": "expected SSA operand",
    "expected ':' after block argument name!": "expected ':'",
    "expected ':' in attribute type": "expected ':'",
    "expected ':' in dense array": "expected ':' after dense array type",
    "expected '<' in dense array": "expected '<' after 'array'",
    "expected '>' in dense array": "expected '>' to close an array attribute",
    "expected '=' after attribute alias name": "expected '=' in attribute alias definition",
    "expected '}' in operation region list": "expected ')' to end region list",
    "function type expected": "expected function type",
    "operand expected": "expected SSA operand",
}
"""Reported at the place of the missing token: after the preceding one."""

UNEXPECTED_TOKEN_MESSAGES = {
    "expect symbol name": "expected valid '@'-identifier for symbol name",
    "string literal expected": "expected string",
    "Expected float literal": "expected floating point literal",
}
"""Reported at the unexpected token, with the name of the operation being parsed."""
