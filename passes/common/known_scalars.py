"""Scalars that constants determine, and slices that start at them."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from sdy.diagnostics import DiagnosticError
from sdy.dialect.constants import constant_elements, splat_number
from sdy.dialect.interfaces import Elementwise
from sdy.ir.elements import dense
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, shape_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.slicing import DynamicSliceOp


def is_foldable(op: Operation) -> bool:
    """Return whether `op` computes a scalar from scalars."""
    return has_trait(op, Elementwise) and not op.regions and all(map(is_scalar, (*op.operands, *op.results)))


def folded(op: Operation, constants: Sequence[DenseIntOrFPElementsAttr]) -> DenseIntOrFPElementsAttr:
    """Compute a foldable operation of constants."""
    from sdy.interpreter.machine import run_function  # few programs need it

    operands = [ConstantOp(each) for each in constants]
    copy = op.clone(dict(zip(op.operands, (each.output for each in operands), strict=True)))
    block = Block([*operands, copy, ReturnOp(*copy.results)])
    function = FuncOp("folded", FunctionType.from_lists([], [copy.results[0].type]), Region(block))
    (value,) = run_function(ModuleOp([function]), function)
    return dense(cast(Any, tensor_type(op.results[0])), value.tobytes())


def known_integers(values: Sequence[SSAValue]) -> list[int] | None:
    """Return the integers of scalars that are constant, or computed from integer constants; None if one is unknown."""
    known: dict[SSAValue, DenseIntOrFPElementsAttr] = {}
    pending = [*values]
    while pending:
        value = pending[-1]
        elements = known.get(value) or constant_elements(value)
        if elements is None:
            op = value.owner
            if not isinstance(op, Operation) or not is_foldable(op) or not all(map(_is_integer, op.operands)):
                return None
            missing = [operand for operand in op.operands if operand not in known]
            if missing:
                pending += missing
                continue
            try:
                elements = folded(op, [known[operand] for operand in op.operands])
            except DiagnosticError:  # an operation of another package, without semantics
                return None
        known[value] = elements
        pending.pop()
    numbers = [splat_number(known[value]) for value in values]
    integers = [number for number in numbers if isinstance(number, int)]
    return integers if len(integers) == len(numbers) else None


def static_slice(op: DynamicSliceOp) -> SSAValue | None:
    """Insert a slice equal to `op`, and return its result; None if a start index is unknown."""
    starts = known_integers(op.start_indices)
    if starts is None:
        return None
    sizes = op.slice_sizes.get_values()
    # The semantics of `dynamic_slice` clamp start indices, so that the slice is within bounds.
    firsts = [
        min(max(start, 0), whole - size) for start, whole, size in zip(starts, shape_of(op.operand), sizes, strict=True)
    ]
    return before(op).slice(op.operand, firsts, [first + size for first, size in zip(firsts, sizes, strict=True)])


def _is_integer(value: SSAValue) -> bool:
    return isinstance(tensor_type(value).element_type, IntegerType)
