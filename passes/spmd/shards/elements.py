"""Elements of tensor types: their ranges, and the identity elements of reductions.

A reduction of a shard can start from the identity element without changing the result.

The body of a known reduction, such as a sum, has an identity unless the element type cannot represent it. For any other
body, the StableHLO specification of `reduce` lets an implementation insert the initial values any number of times, so
that a well-defined program has initial values that change nothing. `identities_of` relies on it for idempotent ones.
"""

import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FunctionType,
    IntegerType,
    ModuleOp,
    Signedness,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from sdy.diagnostics import DiagnosticError
from sdy.dialect import ConstantOp as ShardedConstantOp
from sdy.ir.walking import captured_values
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp, XorOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.windows import ReduceWindowOp

IEEE_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)
"""Float types with infinities and NaNs as in IEEE 754."""


def bounds(element_type: Attribute) -> tuple[float, float]:
    """Return the least and the greatest element of a type; for a float, the infinities."""
    if not isinstance(element_type, IntegerType):
        return -math.inf, math.inf
    integer = cast(IntegerType, element_type)
    width = integer.width.data
    if width == 1 or integer.signedness.data is Signedness.UNSIGNED:
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def identities_of(body: Region, element_types: Sequence[Attribute]) -> list[float] | None:
    """Return the identity element of each tensor that `body` reduces.

    Returns:
        The elements, or None if a reduction is unknown, depends on other tensors too, or has no identity in its type.
    """
    block, count = body.block, len(element_types)
    reduced = block.last_op.operands if block.last_op is not None else ()
    if len(reduced) != count or len(list(block.ops)) != count + 1:
        return None
    identities: list[float] = []
    for index, (value, element_type) in enumerate(zip(reduced, element_types, strict=True)):
        pair = {block.args[index], block.args[count + index]}
        if not isinstance(value, OpResult) or set(value.op.operands) != pair:
            return None
        low, high = bounds(element_type)
        known: dict[type[Operation], float] = {
            AddOp: 0,
            MulOp: 1,
            MaxOp: low,
            MinOp: high,
            AndOp: -1 if low < 0 else high,
            OrOp: 0,
            XorOp: 0,
        }
        identity = known.get(type(value.op))
        if identity is None or not _has(element_type, identity):
            return None
        identities.append(identity)
    return identities


def _has(element_type: Attribute, element: float) -> bool:
    if isinstance(element_type, AnyFloat):
        return math.isfinite(element) or isinstance(element_type, IEEE_FLOATS)
    return isinstance(element_type, IntegerType | ComplexType)


def is_constant(value: SSAValue, element: float) -> bool:
    """Return whether `value` is a constant all of whose elements are `element`; complex ones have imaginary part 0."""
    elements = _constant_elements(value)
    if elements is None:
        return False
    values = elements.get_values()
    if elements.get_element_type() == i1:
        return all(bool(each) == element for each in values)  # a true element is -1 in the attribute
    return all(each in (element, (element, 0)) for each in values)


def neutral_starts(op: ReduceOp | ReduceWindowOp) -> Sequence[SSAValue] | None:
    """Return an initial value for each input that can be reduced any number of times in addition to those of `op`.

    Identities that are not initial values of `op` are emitted in front of it.

    Returns:
        The scalars, or None if no neutral ones are known.
    """
    identities = _identities(op)
    if identities is None:
        return op.init_values if _starts_are_idempotent(op) else None
    return [
        start if is_constant(start, identity) else before(op).filled(tensor_type(start), identity)
        for start, identity in zip(op.init_values, identities, strict=True)
    ]


def has_neutral_starts(op: ReduceOp | ReduceWindowOp) -> bool:
    """Return whether the initial values of `op` are neutral: they can be reduced any number of times."""
    identities = _identities(op)
    if identities is None:
        return _starts_are_idempotent(op)
    return all(is_constant(start, identity) for start, identity in zip(op.init_values, identities, strict=True))


def _identities(op: ReduceOp | ReduceWindowOp) -> list[float] | None:
    return identities_of(op.body, [tensor_type(start).element_type for start in op.init_values])


def _starts_are_idempotent(op: ReduceOp | ReduceWindowOp) -> bool:
    """Return whether the body maps the initial values, as both arguments, to themselves; False if not constant."""
    from sdy.interpreter.machine import run_function  # few programs need it

    elements = [_constant_elements(value) for value in op.init_values]
    block = Block([ConstantOp(each) for each in elements if each is not None])
    starts = [start.results[0] for start in block.ops]
    if len(starts) < len(elements) or captured_values(op):
        return False
    copies: dict[SSAValue, SSAValue] = dict(zip(op.body.block.args, starts * 2, strict=True))
    for inner in op.body.block.ops:
        block.add_op(inner.clone(copies))
    combined = block.last_op
    assert isinstance(combined, ReturnOp)
    combined.operands = [*combined.operands, *starts]
    types = FunctionType.from_lists([], [value.type for value in combined.operands])
    program = FuncOp("combined", types, Region(block))
    try:
        values = run_function(ModuleOp([program]), program)
    except DiagnosticError:
        return False
    return all(x.tobytes() == y.tobytes() for x, y in zip(values[: len(starts)], values[len(starts) :], strict=True))


def _constant_elements(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """Return the elements of the constant that defines `value`, perhaps broadcast."""
    while isinstance(value.owner, BroadcastInDimOp):
        value = value.owner.operand
    elements = value.owner.value if isinstance(value.owner, ConstantOp | ShardedConstantOp) else None
    return elements if isinstance(elements, DenseIntOrFPElementsAttr) else None
