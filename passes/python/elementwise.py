"""Elementwise operations as operators and functions of `jnp` and `lax`."""

import math
from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from sdy import stablehlo
from sdy.dialect.constants import is_constant
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import (
    Expression,
    Item,
    Precedence,
    attribute,
    binary,
    call,
    method,
    unary,
)
from sdy.passes.python.literals import dtype_of, dtype_text, holds, known_elements
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.attributes.enums import ComparisonDirection, ComparisonType
from sdy.stablehlo.chlo import elementwise as chlo

_OPERATORS: dict[type[Operation], tuple[str, Precedence]] = {
    stablehlo.AddOp: ("+", Precedence.SUM),
    stablehlo.AndOp: ("&", Precedence.AND),
    stablehlo.MulOp: ("*", Precedence.PRODUCT),
    stablehlo.OrOp: ("|", Precedence.OR),
    stablehlo.SubtractOp: ("-", Precedence.SUM),
    stablehlo.XorOp: ("^", Precedence.XOR),
}

_COMPARISONS = {
    ComparisonDirection.EQ: "==",
    ComparisonDirection.NE: "!=",
    ComparisonDirection.GE: ">=",
    ComparisonDirection.GT: ">",
    ComparisonDirection.LE: "<=",
    ComparisonDirection.LT: "<",
}

HELPERS = {
    "total_order": '''def total_order(x, dtype):
    """Return integers of type `dtype` in the total order of floats, -0 before +0 and NaN last."""
    bits = lax.bitcast_convert_type(x, dtype)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(dtype).max, bits)'''
}
"""Functions that a file defines if it needs them."""

_FUNCTIONS: dict[type[Operation], str] = {
    stablehlo.AbsOp: "jnp.abs",
    stablehlo.CbrtOp: "lax.cbrt",
    stablehlo.CeilOp: "jnp.ceil",
    stablehlo.ClzOp: "lax.clz",
    stablehlo.CosineOp: "jnp.cos",
    stablehlo.ExpOp: "jnp.exp",
    stablehlo.Expm1Op: "jnp.expm1",
    stablehlo.FloorOp: "jnp.floor",
    stablehlo.IsFiniteOp: "jnp.isfinite",
    stablehlo.Log1pOp: "jnp.log1p",
    stablehlo.LogOp: "jnp.log",
    stablehlo.LogisticOp: "lax.logistic",
    stablehlo.PopulationCountOp: "lax.population_count",
    stablehlo.RoundNearestEvenOp: "jnp.round",
    stablehlo.RsqrtOp: "lax.rsqrt",
    stablehlo.SignOp: "lax.sign",
    stablehlo.SineOp: "jnp.sin",
    stablehlo.SqrtOp: "jnp.sqrt",
    stablehlo.TanOp: "jnp.tan",
    stablehlo.TanhOp: "jnp.tanh",
    chlo.AcosOp: "lax.acos",
    chlo.AcoshOp: "lax.acosh",
    chlo.AsinOp: "lax.asin",
    chlo.AsinhOp: "lax.asinh",
    chlo.AtanOp: "lax.atan",
    chlo.AtanhOp: "lax.atanh",
    chlo.BesselI1eOp: "lax.bessel_i1e",
    chlo.ConjOp: "jnp.conj",
    chlo.CoshOp: "lax.cosh",
    chlo.DigammaOp: "lax.digamma",
    chlo.ErfInvOp: "lax.erf_inv",
    chlo.ErfOp: "lax.erf",
    chlo.ErfcOp: "lax.erfc",
    chlo.IsInfOp: "jnp.isinf",
    chlo.IsNegInfOp: "jnp.isneginf",
    chlo.IsPosInfOp: "jnp.isposinf",
    chlo.LgammaOp: "lax.lgamma",
    chlo.SinhOp: "lax.sinh",
    chlo.SquareOp: "lax.square",
    chlo.TanOp: "lax.tan",
}
"""The functions of one array, which return one of the type of the operation's result."""

_BINARY_FUNCTIONS: dict[type[Operation], str] = {
    stablehlo.Atan2Op: "lax.atan2",
    stablehlo.ComplexOp: "lax.complex",
    stablehlo.MaxOp: "jnp.maximum",
    stablehlo.MinOp: "jnp.minimum",
    stablehlo.RemOp: "lax.rem",
    stablehlo.ShiftRightArithmeticOp: "lax.shift_right_arithmetic",
    stablehlo.ShiftRightLogicalOp: "lax.shift_right_logical",
    chlo.MulhiOp: "lax.mulhi",
    chlo.NextAfterOp: "lax.nextafter",
    chlo.PolygammaOp: "lax.polygamma",
    chlo.ZetaOp: "lax.zeta",
}
"""The functions of two arrays; those of `jnp` broadcast."""

_SHIFTS = (stablehlo.ShiftLeftOp, stablehlo.ShiftRightArithmeticOp, stablehlo.ShiftRightLogicalOp)

_NEUTRAL: dict[type[Operation], float] = {stablehlo.MaxOp: -math.inf, stablehlo.MinOp: math.inf}
"""The floats with which a maximum or a minimum is the other operand."""


def _operator(op: Operation, scope: Scope) -> Expression:
    symbol, precedence = _OPERATORS[type(op)]
    if symbol == "+" and dtype_of(op.operands[0]).kind in "iu" and holds(op.operands[1], 0):
        return scope.of(op.operands[0])
    lhs, rhs = scope.together(op.operands)
    if symbol == "+" and rhs.precedence is Precedence.SIGN and rhs.text.startswith("-") and is_constant(op.operands[1]):
        return binary(lhs, "-", Expression(rhs.text[1:]), precedence)
    return binary(lhs, symbol, rhs, precedence)


def _shift(op: Operation, scope: Scope) -> Expression:
    """Return a shift. `>>` is arithmetic for signed integers and logical for others."""
    is_signed = dtype_of(op.results[0]).kind == "i"
    if isinstance(op, stablehlo.ShiftRightArithmeticOp if not is_signed else stablehlo.ShiftRightLogicalOp):
        return _binary_function(op, scope)
    lhs, rhs = scope.together(op.operands)
    return binary(lhs, "<<" if isinstance(op, stablehlo.ShiftLeftOp) else ">>", rhs, Precedence.SHIFT)


def _function(op: Operation, scope: Scope) -> Expression:
    return call(_FUNCTIONS[type(op)], scope.of(op.operands[0]))


def _binary_function(op: Operation, scope: Scope) -> Expression:
    name = _BINARY_FUNCTIONS[type(op)]
    if type(op) in _NEUTRAL and dtype_of(op.operands[0]).kind == "f" and holds(op.operands[0], _NEUTRAL[type(op)]):
        return scope.of(op.operands[1])
    return call(name, *(scope.together(op.operands) if name.startswith("jnp.") else map(scope.of, op.operands)))


def _divide(op: stablehlo.DivOp, scope: Scope) -> Expression:
    if dtype_of(op.result).kind in "iub":
        return call("lax.div", *map(scope.of, op.operands))
    lhs, rhs = scope.together(op.operands)
    return binary(lhs, "/", rhs, Precedence.PRODUCT)


def _compare(op: stablehlo.CompareOp, scope: Scope) -> Expression:
    symbol = _COMPARISONS[op.comparison_direction.data]
    if dtype_of(op.lhs).kind == "b" and holds(op.rhs, number=symbol == "==") and symbol in ("==", "!="):
        return scope.of(op.lhs)
    if (matrix := _matrix_of_places(op.result, "jnp.bool_", scope)) is not None:
        return matrix
    kind = op.compare_type.data if op.compare_type is not None else ComparisonType.NOTYPE
    if op.lhs is op.rhs and symbol == "!=":
        return call("jnp.isnan", scope.of(op.lhs))
    if kind is ComparisonType.TOTALORDER and dtype_of(op.lhs).kind not in "iub":
        scope.writer.helpers.add("total_order")
        width = 8 * dtype_of(op.lhs).itemsize
        lhs, rhs = (call("total_order", scope.of(value), f"jnp.int{width}") for value in op.operands)
    else:
        lhs, rhs = scope.together(op.operands)
    return binary(lhs, symbol, rhs, Precedence.COMPARISON)


def _select(op: stablehlo.SelectOp, scope: Scope) -> Expression:
    values = [op.on_true, op.on_false]
    is_whole = shape(op.pred.type) == shape(op.result.type)
    if is_whole and dtype_of(op.result).kind == "b" and holds(op.on_true, True) and holds(op.on_false, False):
        return scope.of(op.pred)
    if is_whole:
        return call("jnp.where", *scope.together(op.operands, values))
    return call("jnp.where", scope.of(op.pred), *scope.together(values))


def _clamp(op: stablehlo.ClampOp, scope: Scope) -> Expression:
    return call("lax.clamp", scope.filling(op.min), scope.of(op.operand), scope.filling(op.max))


def _convert(op: stablehlo.ConvertOp, scope: Scope) -> Expression:
    dtype = dtype_of(op.result)
    if (matrix := _matrix_of_places(op.operand, dtype_text(dtype), scope)) is not None:
        return matrix
    value = scope.of(op.operand)
    if dtype_of(op.operand) == dtype:
        return value
    if dtype_of(op.operand).kind == "c" and dtype.kind != "c":
        return call("lax.convert_element_type", value, dtype_text(dtype))
    return method(value, "astype", dtype_text(dtype))


_MATRICES = {ComparisonDirection.EQ: "jnp.eye", ComparisonDirection.GE: "jnp.tri"}
"""The matrix that is true where its row compares so with its column."""


def _matrix_of_places(value: SSAValue, dtype: str, scope: Scope) -> Expression | None:
    """Return the identity or the lower triangle if `value` is a comparison of rows and columns; else None."""
    compare = scope.definition(value)
    if not isinstance(compare, stablehlo.CompareOp):
        return None
    counts = [scope.definition(_without_zero(operand, scope)) for operand in compare.operands]
    dims = [count.iota_dimension.value.data for count in counts if isinstance(count, stablehlo.IotaOp)]
    function = _MATRICES.get(compare.comparison_direction.data)
    sizes = shape(value.type)
    if function is None or dims != [0, 1] or len(sizes) != len(dims):
        return None
    return call(function, *map(str, sizes), dtype=dtype)


def _without_zero(value: SSAValue, scope: Scope) -> SSAValue:
    """Return the integers to which `value` adds zero."""
    op = scope.definition(value)
    return op.lhs if isinstance(op, stablehlo.AddOp) and holds(op.rhs, 0) else value


def _power(op: stablehlo.PowOp, scope: Scope) -> Expression:
    """Return a power; `jnp.power` computes one to a constant exponent in another way."""
    if dtype_of(op.result).kind != "f" or known_elements(op.rhs) is not None:
        return call("lax.pow", *map(scope.of, op.operands))
    return call("jnp.power", *scope.together(op.operands))


def _negate(op: stablehlo.NegOp, scope: Scope) -> Expression:
    return unary("-", scope.of(op.operand))


def _not(op: stablehlo.NotOp, scope: Scope) -> Expression:
    return unary("~", scope.of(op.operand))


def _part(name: str) -> Callable[[Operation, Scope], Expression]:
    def print_part(op: Operation, scope: Scope) -> Expression:
        value = op.operands[0]
        if dtype_of(value).kind != "c":
            return scope.of(value) if name == "real" else call("jnp.zeros_like", scope.of(value))
        return attribute(scope.of(value), name)

    return print_part


def _round(op: stablehlo.RoundOp, scope: Scope) -> Expression:
    return call("lax.round", scope.of(op.operand), "lax.RoundingMethod.AWAY_FROM_ZERO")


def _reduce_precision(op: stablehlo.ReducePrecisionOp, scope: Scope) -> Expression:
    bits: list[Item] = [str(op.exponent_bits.value.data), str(op.mantissa_bits.value.data)]
    return call("lax.reduce_precision", scope.of(op.operand), *bits)


ELEMENTWISE: dict[type[Operation], Printer] = {
    **dict.fromkeys(_OPERATORS, _operator),
    **dict.fromkeys(_FUNCTIONS, _function),
    **dict.fromkeys(_BINARY_FUNCTIONS, _binary_function),
    **dict.fromkeys(_SHIFTS, _shift),
    stablehlo.ClampOp: _clamp,
    stablehlo.CompareOp: _compare,
    stablehlo.ConvertOp: _convert,
    stablehlo.DivOp: _divide,
    stablehlo.ImagOp: _part("imag"),
    stablehlo.NegOp: _negate,
    stablehlo.NotOp: _not,
    stablehlo.PowOp: _power,
    stablehlo.RealOp: _part("real"),
    stablehlo.ReducePrecisionOp: _reduce_precision,
    stablehlo.RoundOp: _round,
    stablehlo.SelectOp: _select,
}

BROADCASTING = frozenset(
    {
        *_OPERATORS,
        *_SHIFTS,
        stablehlo.CompareOp,
        stablehlo.DivOp,
        stablehlo.MaxOp,
        stablehlo.MinOp,
        stablehlo.PowOp,
        stablehlo.SelectOp,
    }
)
"""The operations whose operands NumPy's rules broadcast."""
