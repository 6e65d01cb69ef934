"""Neutral elements: those from which a reduction may start in each of its parts, as they change no result.

The reductions that StableHLO names have an identity, or none that their type can hold. For any other body StableHLO
lets an implementation put initial values anywhere among the elements, as often as it likes (specification of `reduce`),
so that a program has one result only if they change nothing. That is relied on for initial values that are idempotent.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerType,
    ModuleOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from sdy.diagnostics import DiagnosticError
from sdy.dialect import ConstantOp as ShardedConstantOp
from sdy.ir.captures import captured_values
from sdy.passes.spmd.elements import IEEE_FLOATS, bounds
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp, XorOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.reduce_window import ReduceWindowOp
from sdy.stablehlo.reduction import ReduceOp


def identities_of(body: Region, element_types: Sequence[Attribute]) -> list[float] | None:
    """For each tensor that `body` reduces, the element that leaves any other as it is.

    None where one of the reductions is no known one, takes more than its own tensor, or has no such element.
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
    """Whether all elements of `value` are known to be this one; a complex number is a pair."""
    elements = _constant_elements(value)
    return elements is not None and all(each in (element, (element, 0)) for each in elements.get_values())


def neutral_starts(op: ReduceOp | ReduceWindowOp) -> Sequence[SSAValue] | None:
    """Scalars, one for each input, that may count any number of times beside the initial values of `op`.

    Identities are made in front of it. None where it is not known that there are such.
    """
    identities = _identities(op)
    if identities is None:
        return op.init_values if _starts_are_idempotent(op) else None
    return [
        start if is_constant(start, identity) else before(op).filled(tensor_type(start), identity)
        for start, identity in zip(op.init_values, identities, strict=True)
    ]


def has_neutral_starts(op: ReduceOp | ReduceWindowOp) -> bool:
    """Whether the initial values of `op` are known to be such that they may count any number of times."""
    identities = _identities(op)
    if identities is None:
        return _starts_are_idempotent(op)
    return all(is_constant(start, identity) for start, identity in zip(op.init_values, identities, strict=True))


def _identities(op: ReduceOp | ReduceWindowOp) -> list[float] | None:
    return identities_of(op.body, [tensor_type(start).element_type for start in op.init_values])


def _starts_are_idempotent(op: ReduceOp | ReduceWindowOp) -> bool:
    """Whether the body, given the initial values twice, gives them again; False where they are not known."""
    from sdy.interpreter.machine import run_function  # few programs need it

    elements = [_constant_elements(value) for value in op.init_values]
    block = Block([ConstantOp(each) for each in elements if each is not None])
    given = [start.results[0] for start in block.ops]
    if len(given) < len(elements) or captured_values(op):
        return False
    copies: dict[SSAValue, SSAValue] = dict(zip(op.body.block.args, given * 2, strict=True))
    for inner in op.body.block.ops:
        block.add_op(inner.clone(copies))
    combined = block.last_op
    assert isinstance(combined, ReturnOp)
    combined.operands = [*combined.operands, *given]
    types = FunctionType.from_lists([], [value.type for value in combined.operands])
    program = FuncOp("combined", types, Region(block))
    try:
        values = run_function(ModuleOp([program]), program)
    except DiagnosticError:
        return False
    return all(x.tobytes() == y.tobytes() for x, y in zip(values[: len(given)], values[len(given) :], strict=True))


def _constant_elements(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    while isinstance(value.owner, BroadcastInDimOp) and value.type == value.owner.operand.type:
        value = value.owner.operand
    elements = value.owner.value if isinstance(value.owner, ConstantOp | ShardedConstantOp) else None
    return elements if isinstance(elements, DenseIntOrFPElementsAttr) else None
