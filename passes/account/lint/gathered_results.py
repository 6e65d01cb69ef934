"""Results of a manual computation that each device could return a part of, without the gathers before them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue, Use

from sdy.dialect.ops import ManualComputationOp, ReturnOp
from sdy.ir.editing import change_type, replace
from sdy.ir.shapes import shape_of, tensor_of
from sdy.passes.common.properties import is_elementwise
from sdy.rule import TensorMapping
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.shape import TransposeOp

_BY_PARTS = BroadcastInDimOp | DotGeneralOp | ReduceOp | TransposeOp
"""Operations, besides elementwise ones, that have no attribute with the size of a dimension that they keep."""


@dataclass(frozen=True, eq=False)
class GatheredResult:
    """A result whose parts along a dimension need only parts of gathered tensors."""

    index: int
    dimension: int
    gathers: frozenset[AllGatherOp]
    values: Mapping[SSAValue, int]
    """The gathered tensors, and what is computed from them on the way to the result, with the dimension in each."""

    def return_parts(self) -> None:
        """Compute and return the part of a device, without the gathers."""
        for value, dimension in self.values.items():
            sizes = [*shape_of(value)]
            sizes[dimension] //= self.number
            if value.owner not in self.gathers:
                change_type(value, tensor_of(element_type(value), sizes))
        for each in self.gathers:
            replace(each, [each.operands[0]])

    @property
    def number(self) -> int:
        """The number of parts of the dimension."""
        gather = next(iter(self.gathers))
        dimension = gather.all_gather_dim.value.data
        return shape_of(gather.results[0])[dimension] // shape_of(gather.operands[0])[dimension]


def gathered_results(manual: ManualComputationOp) -> Iterator[GatheredResult]:
    """Yield the results that are computed from gathered tensors part by part, of each one dimension."""
    end = manual.body.block.last_op
    for index, value in enumerate(end.operands if end else ()):
        for dimension in range(len(shape_of(value))):
            values = _values(value, dimension, index)
            gathers = frozenset(each.owner for each in values or () if isinstance(each.owner, AllGatherOp))
            if values and gathers:
                yield GatheredResult(index, dimension, gathers, values)
                break


def _values(result: SSAValue, dimension: int, index: int) -> Mapping[SSAValue, int] | None:
    """Return the values that have a dimension of result `index`, from gathers on; None if others depend on them."""
    found: dict[SSAValue, int] = {}
    pending = [(result, dimension)]
    while pending:
        value, at = pending.pop()
        if value in found:
            if found[value] != at:
                return None
            continue
        found[value] = at
        before = _before(value, at)
        if before is None:
            return None
        pending += before
        for use in value.uses:
            is_returned = isinstance(use.operation, ReturnOp) and use.index == index
            after = [] if is_returned else _after(use, at)
            if after is None:
                return None
            pending += after
    return found


def _before(value: SSAValue, at: int) -> list[tuple[SSAValue, int]] | None:
    """Return the operands that a dimension of a value comes from; none of a gather along it."""
    op = value.owner
    if isinstance(op, AllGatherOp):
        return [] if op.all_gather_dim.value.data == at else None
    if not isinstance(op, Operation) or not _is_by_parts(op) or not (rule := sharding_rule(op)):
        return None
    factors = rule.results[op.results.index(value)][at]
    found = _with(op.operands, rule.operands, factors)
    return found if found or isinstance(op, BroadcastInDimOp) else None


def _after(use: Use, at: int) -> list[tuple[SSAValue, int]] | None:
    """Return the results, and the other operands, of an operation that have a dimension of one operand."""
    op = use.operation
    if not _is_by_parts(op) or not (rule := sharding_rule(op)):
        return None
    factors = rule.operands[use.index][at]
    results = _with(op.results, rule.results, factors)
    return [*results, *_with(op.operands, rule.operands, factors)] if results else None


def _is_by_parts(op: Operation) -> bool:
    return is_elementwise(op) or isinstance(op, _BY_PARTS)


def _with(
    values: Sequence[SSAValue], mappings: Sequence[TensorMapping], factors: Sequence[int]
) -> list[tuple[SSAValue, int]]:
    """Return the values with a dimension of `factors`, and the dimension."""
    return [
        (value, index)
        for value, mapping in zip(values, mappings, strict=True)
        for index, own in enumerate(mapping)
        if own == factors != ()
    ]
