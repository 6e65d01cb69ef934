"""Affine expressions, simplified on construction and printed as MLIR does: `d0 * 2 + s0 - 1`.

xDSL's constructors simplify sums differently and cannot multiply or divide by a symbol.
"""

from collections.abc import Callable
from math import gcd

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

Kind = AffineBinaryOpKind

_ZERO = AffineConstantExpr(0)
_MINUS_ONE = AffineConstantExpr(-1)


# Construction


def combine(kind: Kind, lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """Apply an operator to two expressions, with MLIR's simplifications."""
    return _simplified(kind, lhs, rhs) or AffineBinaryOpExpr(kind, lhs, rhs)


def negate(expression: AffineExpr) -> AffineExpr:
    """Return `-expression`."""
    return combine(Kind.Mul, expression, _MINUS_ONE)


def is_symbolic(expression: AffineExpr) -> bool:
    """Return whether the expression contains no dimension, only symbols and constants."""
    match expression:
        case AffineBinaryOpExpr():
            return is_symbolic(expression.lhs) and is_symbolic(expression.rhs)
        case _:
            return not isinstance(expression, AffineDimExpr)


def _simplified(kind: Kind, lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr | None:
    match lhs, rhs:
        case (AffineDimExpr(), AffineDimExpr()) | (AffineSymExpr(), AffineSymExpr()) if (
            kind in (Kind.Add, Kind.Mul) and lhs.position > rhs.position
        ):
            return combine(kind, rhs, lhs)
        case _:
            pass
    if kind is Kind.Add:
        return _simplified_sum(lhs, rhs)
    if kind is Kind.Mul:
        return _simplified_product(lhs, rhs)
    # Division by zero and the remainder by a negative number are not folded.
    is_constant = isinstance(rhs, AffineConstantExpr)
    if is_constant and (rhs.value == 0 or (kind is Kind.Mod and rhs.value < 0)):
        return None
    if lhs == rhs:
        return _ZERO if kind is Kind.Mod else AffineConstantExpr(1)
    return _SIMPLIFIED_DIVISIONS[kind](lhs, rhs) if is_constant else None


def _simplified_sum(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr | None:
    match lhs, rhs:
        case AffineConstantExpr(), AffineConstantExpr():
            return AffineConstantExpr(lhs.value + rhs.value)
        case AffineConstantExpr(), _:
            return combine(Kind.Add, rhs, lhs)
        case _ if is_symbolic(lhs) and not is_symbolic(rhs):
            return combine(Kind.Add, rhs, lhs)
        case _, AffineConstantExpr(value=0):
            return lhs
        case AffineBinaryOpExpr(kind=Kind.Add, rhs=AffineConstantExpr() as first), AffineConstantExpr():
            return combine(Kind.Add, lhs.lhs, AffineConstantExpr(first.value + rhs.value))
        case _:
            pass
    left_factor, left = _scaled(lhs)
    right_factor, right = _scaled(rhs)
    if left == right:
        return combine(Kind.Mul, left, AffineConstantExpr(left_factor + right_factor))
    match lhs:
        case AffineBinaryOpExpr(kind=Kind.Add, rhs=AffineConstantExpr() as constant):
            return combine(Kind.Add, combine(Kind.Add, lhs.lhs, rhs), constant)
        case _:
            return _remainder(lhs, rhs)


def _scaled(expression: AffineExpr) -> tuple[int, AffineExpr]:
    match expression:
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr() as factor):
            return factor.value, expression.lhs
        case _:
            return 1, expression


def _remainder(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr | None:
    """Fold `e + (e floordiv q) * -q` to `e mod q`, where `q` may be a symbol.

    If `lhs` is a sum, only its last term is tried, or swapped with `rhs`.
    """
    match rhs:
        case AffineBinaryOpExpr(
            lhs=AffineBinaryOpExpr(kind=Kind.Mul, lhs=AffineBinaryOpExpr(kind=Kind.FloorDiv) as quotient, rhs=divisor),
            rhs=AffineConstantExpr(value=-1),
        ) if quotient.rhs == divisor and quotient.lhs == lhs:
            return combine(Kind.Mod, lhs, divisor)
        case AffineBinaryOpExpr(kind=Kind.Mul, lhs=AffineBinaryOpExpr(kind=Kind.FloorDiv) as quotient):
            if quotient.lhs == lhs and quotient.rhs == negate(rhs.rhs):
                return combine(Kind.Mod, lhs, quotient.rhs)
        case _:
            return None
    if not isinstance(lhs, AffineBinaryOpExpr) or lhs.kind is not Kind.Add:
        return None
    simpler = _simplified(Kind.Add, lhs.rhs, rhs)
    return None if simpler is None else combine(Kind.Add, lhs.lhs, simpler)


def _simplified_product(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr | None:
    match lhs, rhs:
        case AffineConstantExpr(), AffineConstantExpr():
            return AffineConstantExpr(lhs.value * rhs.value)
        case AffineConstantExpr(), _:
            return combine(Kind.Mul, rhs, lhs)
        case _ if not is_symbolic(rhs):
            return combine(Kind.Mul, rhs, lhs)
        case _, AffineConstantExpr(value=1):
            return lhs
        case _, AffineConstantExpr(value=0):
            return rhs
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr() as first), AffineConstantExpr():
            return combine(Kind.Mul, lhs.lhs, AffineConstantExpr(first.value * rhs.value))
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr() as constant), _:
            return combine(Kind.Mul, combine(Kind.Mul, lhs.lhs, rhs), constant)
        case _:
            return None


def _simplified_floordiv(lhs: AffineExpr, rhs: AffineConstantExpr) -> AffineExpr | None:
    simpler = _simplified_quotient(lhs, rhs, lhs.value // rhs.value if isinstance(lhs, AffineConstantExpr) else 0)
    if simpler is not None:
        return simpler
    match lhs:
        case AffineBinaryOpExpr(kind=Kind.Add) if any(
            _known_divisor(part) % rhs.value == 0 for part in (lhs.lhs, lhs.rhs)
        ):
            return combine(Kind.Add, combine(Kind.FloorDiv, lhs.lhs, rhs), combine(Kind.FloorDiv, lhs.rhs, rhs))
        case _:
            return None


def _simplified_ceildiv(lhs: AffineExpr, rhs: AffineConstantExpr) -> AffineExpr | None:
    return _simplified_quotient(lhs, rhs, -(-lhs.value // rhs.value) if isinstance(lhs, AffineConstantExpr) else 0)


def _simplified_quotient(lhs: AffineExpr, rhs: AffineConstantExpr, of_constants: int) -> AffineExpr | None:
    match lhs:
        case AffineConstantExpr():
            return AffineConstantExpr(of_constants)
        case _ if rhs.value == 1:
            return lhs
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr() as factor) if factor.value % rhs.value == 0:
            return combine(Kind.Mul, lhs.lhs, AffineConstantExpr(factor.value // rhs.value))
        case _:
            return None


def _simplified_mod(lhs: AffineExpr, rhs: AffineConstantExpr) -> AffineExpr | None:
    match lhs:
        case AffineConstantExpr():
            return AffineConstantExpr(lhs.value % rhs.value)
        case _ if _known_divisor(lhs) % rhs.value == 0:
            return _ZERO
        case AffineBinaryOpExpr(kind=Kind.Add) if _known_divisor(lhs.lhs) % rhs.value == 0:
            return combine(Kind.Mod, lhs.rhs, rhs)
        case AffineBinaryOpExpr(kind=Kind.Add) if _known_divisor(lhs.rhs) % rhs.value == 0:
            return combine(Kind.Mod, lhs.lhs, rhs)
        case AffineBinaryOpExpr(kind=Kind.Mod, rhs=AffineConstantExpr() as inner) if (
            inner.value >= 1 and inner.value % rhs.value == 0
        ):
            return combine(Kind.Mod, lhs.lhs, rhs)
        case _:
            return None


_SIMPLIFIED_DIVISIONS: dict[Kind, Callable[[AffineExpr, AffineConstantExpr], AffineExpr | None]] = {
    Kind.FloorDiv: _simplified_floordiv,
    Kind.CeilDiv: _simplified_ceildiv,
    Kind.Mod: _simplified_mod,
}


def _known_divisor(expression: AffineExpr) -> int:
    """Return an integer that divides the expression for all values of its dimensions and symbols; 0 if it is 0."""
    match expression:
        case AffineConstantExpr():
            return abs(expression.value)
        case AffineBinaryOpExpr(kind=Kind.Mul):
            return _known_divisor(expression.lhs) * _known_divisor(expression.rhs)
        case AffineBinaryOpExpr(kind=Kind.Add | Kind.Mod):
            return gcd(_known_divisor(expression.lhs), _known_divisor(expression.rhs))
        case AffineBinaryOpExpr(rhs=AffineConstantExpr(value=divisor)) if (
            divisor and _known_divisor(expression.lhs) % divisor == 0
        ):
            return abs(_known_divisor(expression.lhs) // divisor)
        case _:
            return 1


# Printing


def map_text(affine_map: AffineMap) -> str:
    """Return the text of a map: `(d0, d1)[s0] -> (d0 + s0, d1)`."""
    results = ", ".join(map(expression_text, affine_map.results))
    return f"{_space_text(affine_map)} -> ({results})"


def set_text(affine_set: AffineSet) -> str:
    """Return the text of a set: `(d0) : (d0 - 4 == 0, d0 + 3 >= 0)`."""
    constraints = (f"{expression_text(each.lhs)} {each.kind.value} 0" for each in affine_set.constraints)
    return f"{_space_text(affine_set)} : ({', '.join(constraints)})"


def _space_text(space: AffineMap | AffineSet) -> str:
    symbols = f"[{_numbered('s', space.num_symbols)}]" if space.num_symbols else ""
    return f"({_numbered('d', space.num_dims)}){symbols}"


def _numbered(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{number}" for number in range(count))


def expression_text(expression: AffineExpr) -> str:
    """Return the text of an expression, `d0 * 2 + s0 - 1`, with the fewest parentheses."""
    match expression:
        case AffineDimExpr():
            return f"d{expression.position}"
        case AffineSymExpr():
            return f"s{expression.position}"
        case AffineConstantExpr():
            return str(expression.value)
        case AffineBinaryOpExpr(kind=Kind.Add):
            return _sum_text(expression)
        case AffineBinaryOpExpr(kind=Kind.Mul, rhs=AffineConstantExpr(value=-1)):
            return f"-{_tight_text(expression.lhs)}"
        case AffineBinaryOpExpr():
            return f"{_tight_text(expression.lhs)} {expression.kind.get_token()} {_tight_text(expression.rhs)}"
        case _:
            raise TypeError(f"not an affine expression: {expression}")


def _tight_text(expression: AffineExpr) -> str:
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, AffineBinaryOpExpr) else text


def _sum_text(addition: AffineBinaryOpExpr) -> str:
    left = expression_text(addition.lhs)
    match addition.rhs:
        case AffineBinaryOpExpr(kind=Kind.Mul, lhs=term, rhs=AffineConstantExpr(value=-1)):
            is_sum = isinstance(term, AffineBinaryOpExpr) and term.kind is Kind.Add
            return f"{left} - {_tight_text(term) if is_sum else expression_text(term)}"
        case AffineBinaryOpExpr(kind=Kind.Mul, lhs=term, rhs=AffineConstantExpr(value=factor)) if factor < 0:
            return f"{left} - {_tight_text(term)} * {-factor}"
        case AffineConstantExpr(value=number) if number < 0:
            return f"{left} - {-number}"
        case right:
            return f"{left} + {expression_text(right)}"
