"""Bounds of the 64-bit integers of a module, to know whether 32 bits suffice for them.

Partitioning computes the index of a shard with 64-bit integers, which JAX lacks by default. If all 64-bit integers of
a module are known to be small, as those computed from constants and the number of a device, the file has 32-bit ones.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, ModuleOp, Signedness, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from sdy import stablehlo
from sdy.dialect.constants import constant_value
from sdy.ir.shapes import shape
from sdy.ir.walking import operations, values_in
from sdy.passes.python.literals import elements, integers, optional_dtype_of


class Range(NamedTuple):
    """The least and the greatest element that an array of integers may have."""

    low: int
    high: int

    @property
    def is_narrow(self) -> bool:
        """True if all elements are 32-bit integers."""
        return self.low >= -(2**31) and self.high < 2**31


_NARROW: dict[Attribute, Attribute] = {
    IntegerType(64): IntegerType(32),
    IntegerType(64, Signedness.UNSIGNED): IntegerType(32, Signedness.UNSIGNED),
}

Ranges = dict[SSAValue, Range]

_Rule = Callable[[Operation, Sequence[Range]], Range]


def ranges_of(module: ModuleOp, device_count: int) -> Ranges:
    """Return the range of each integer that is known to be computed from constants and numbers of devices."""
    known: Ranges = {}
    for op in operations(module):
        if len(op.results) == 1 and (found := _range(op, known, device_count)) is not None:
            known[op.results[0]] = found
    return known


def is_narrow(module: ModuleOp, ranges: Ranges) -> bool:
    """Return whether 32-bit integers suffice for all 64-bit ones, and there are no 64-bit floats."""
    wide = {np.dtype(kind) for kind in (np.int64, np.uint64)}
    floats = {np.dtype(kind) for kind in (np.float64, np.complex128)}
    for value in values_in(module):
        dtype = optional_dtype_of(value)
        if dtype in floats or (dtype in wide and (value not in ranges or not ranges[value].is_narrow)):
            return False
    return True


def narrow(module: ModuleOp) -> None:
    """Replace the 64-bit integers of `module` by 32-bit ones, in place."""
    for value in values_in(module):
        if (type_ := _narrow_type(value.type)) is not None:
            Rewriter.replace_value_with_new_type(value, type_)
    for op in operations(module):
        constant = op.properties.get("value")
        if isa(constant, DenseIntOrFPElementsAttr) and _narrow_type(constant.get_type()) is not None:
            op.properties["value"] = _narrow_elements(constant)


def _narrow_type(type_: Attribute) -> TensorType[Attribute] | None:
    if not isinstance(type_, TensorType):
        return None
    tensor = cast(TensorType[Attribute], type_)
    narrow_element = _NARROW.get(tensor.element_type)
    return None if narrow_element is None else TensorType(narrow_element, tensor.get_shape(), tensor.encoding)


def _narrow_elements(constant: DenseIntOrFPElementsAttr) -> DenseIntOrFPElementsAttr:
    type_ = _narrow_type(constant.get_type())
    assert type_ is not None
    return DenseIntOrFPElementsAttr.from_list(cast(TensorType[IntegerType], type_), integers(constant))


def _range(op: Operation, known: Ranges, device_count: int) -> Range | None:
    dtype = optional_dtype_of(op.results[0])
    if dtype is None or dtype.kind not in "iu":
        return None
    if (constant := constant_value(op.results[0])) is not None:
        values = elements(constant)
        return Range(int(values.min()), int(values.max())) if values.size else Range(0, 0)
    if isinstance(op, stablehlo.PartitionIdOp):
        return Range(0, device_count - 1)
    if isinstance(op, stablehlo.IotaOp):
        return Range(0, max(0, shape(op.output.type)[op.iota_dimension.value.data] - 1))
    rule, moved = _RULES.get(type(op)), _MOVING.get(type(op))
    operands = [*op.operands] if moved is None else [op.operands[index] for index in moved(op)]
    ranges = [known[operand] for operand in operands if operand in known]
    if len(ranges) != len(operands) or (rule is None and moved is None):
        return None
    found = rule(op, ranges) if rule is not None else Range(min(r.low for r in ranges), max(r.high for r in ranges))
    limits = np.iinfo(dtype)
    return found if limits.min <= found.low and found.high <= limits.max else None


def _corners(function: Callable[[int, int], int]) -> _Rule:
    def rule(op: Operation, ranges: Sequence[Range]) -> Range:
        lhs, rhs = ranges
        values = [function(one, other) for one in lhs for other in rhs]
        return Range(min(values), max(values))

    return rule


def _division(op: Operation, ranges: Sequence[Range]) -> Range:
    greatest = max(map(abs, ranges[0]))
    return Range(0 if ranges[0].low >= 0 and ranges[1].low >= 0 else -greatest, greatest)


def _remainder(op: Operation, ranges: Sequence[Range]) -> Range:
    greatest = min(max(map(abs, ranges[0])), max(map(abs, ranges[1])))
    return Range(0 if ranges[0].low >= 0 else -greatest, greatest)


def _clamp(op: Operation, ranges: Sequence[Range]) -> Range:
    low, _, high = ranges
    return Range(min(low.low, high.low), high.high)


_RULES: dict[type[Operation], _Rule] = {
    stablehlo.AddOp: _corners(lambda x, y: x + y),
    stablehlo.ClampOp: _clamp,
    stablehlo.DivOp: _division,
    stablehlo.MaxOp: _corners(max),
    stablehlo.MinOp: _corners(min),
    stablehlo.MulOp: _corners(lambda x, y: x * y),
    stablehlo.RemOp: _remainder,
    stablehlo.SubtractOp: _corners(lambda x, y: x - y),
}

_MOVING: dict[type[Operation], Callable[[Operation], Sequence[int]]] = {
    stablehlo.BroadcastInDimOp: lambda op: [0],
    stablehlo.ConcatenateOp: lambda op: range(len(op.operands)),
    stablehlo.ConvertOp: lambda op: [0],
    stablehlo.DynamicSliceOp: lambda op: [0],
    stablehlo.GatherOp: lambda op: [0],
    stablehlo.OptimizationBarrierOp: lambda op: range(len(op.operands)),
    stablehlo.PadOp: lambda op: [0, 1],
    stablehlo.ReshapeOp: lambda op: [0],
    stablehlo.SelectOp: lambda op: [1, 2],
    stablehlo.SliceOp: lambda op: [0],
    stablehlo.TransposeOp: lambda op: [0],
}
"""Operations whose elements are those of these operands."""
