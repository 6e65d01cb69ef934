"""Carried booleans that are false in the rows that have ended, and the elements of rows by which that is proven.

Libraries such as diffrax carry which rows are active, and select by that. With `t < 1` as the condition of the rows::

    new = step(t)
    t = select(active, new, t)
    active = active & (new < 1)

`active` is false wherever `t < 1` is. The proof is by induction: it is so for the initial values; a row that is not
active stays so; and in one that is, `t` becomes `new`, so that `active` becomes `t < 1`.
"""

from collections import ChainMap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import SHARDING
from sdy.dialect.constants import constant_number
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.shardings import get_sharding
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, shape
from sdy.passes.common.loops import carried_unchanged
from sdy.passes.common.properties import is_pure
from sdy.passes.spmd.value_numbers import ValueNumbers
from sdy.sharding import equivalent
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AndOp, ConvertOp
from sdy.stablehlo.mixed_elementwise import SelectOp

_FALSE, _TRUE = (("constant", i1, repr(element)) for element in (False, True))


class _And(NamedTuple):
    """The conjunction of booleans."""

    conjuncts: frozenset[Hashable]


class RowElements:
    """Elements in one row: those of two values are equal if they are computed alike, also from broadcast scalars.

    Args:
        numbers: The value numbers, which values have that are not computed row by row.
    """

    def __init__(self, numbers: ValueNumbers) -> None:
        self._numbers = numbers
        self._of_value: ChainMap[SSAValue, Hashable] = ChainMap()
        self._of_key: dict[Hashable, int] = {}
        self._replaced = frozenset[SSAValue]()

    def assuming(self, value: SSAValue, element: Hashable, ops: Iterable[Operation]) -> "RowElements":
        """Return the elements with those of `ops` in the rows in which `value` has this element."""
        return self._with({value: element}, frozenset(), ops)

    def replacing(self, elements: Mapping[SSAValue, Hashable], ops: Iterable[Operation]) -> "RowElements":
        """Return the elements with those that `ops` would compute if some values had other elements."""
        return self._with(elements, frozenset(elements), ops)

    def _with(
        self, elements: Mapping[SSAValue, Hashable], replaced: frozenset[SSAValue], ops: Iterable[Operation]
    ) -> "RowElements":
        other = RowElements(self._numbers)
        other._of_value, other._of_key = self._of_value.new_child(dict(elements)), self._of_key
        other._replaced = replaced
        for op in ops:
            other.add(op)
        return other

    def add(self, op: Operation) -> None:
        """Find the elements of the results of `op`."""
        known = self._row_by_row(op)
        is_replaced = self._replaced and (op.regions or not self._replaced.isdisjoint(op.operands))
        if is_replaced:
            self._replaced |= {*op.results}
        if isinstance(op, WhileOp):
            self._of_value.update({each: self.of(begin) for each, begin in carried_unchanged(op).items()})
        for result in op.results:
            if known is not None:
                self._of_value[result] = known
            elif is_replaced:
                self._of_value[result] = object()

    def of(self, value: SSAValue) -> Hashable:
        """Return the element of `value`: equal only if it is in the same row."""
        known = self._of_value.get(value)
        return ("value", self._numbers.number_of(value)) if known is None else known

    def conjuncts(self, value: SSAValue) -> frozenset[Hashable]:
        """Return the booleans that a boolean is the conjunction of."""
        return _conjuncts(self.of(value))

    def _row_by_row(self, op: Operation) -> Hashable | None:
        """Return the element of the result of an operation that computes it from elements of the same row."""
        if len(op.results) != 1 or op.regions:
            return None
        result = op.results[0]
        if (number := constant_number(result)) is not None:
            type_ = element_type(result)
            return "constant", type_, repr(bool(number) if type_ == i1 else number)
        if isinstance(op, BroadcastInDimOp) and is_scalar(op.operand):
            return self.of(op.operand)
        sizes = shape(result.type)
        if not has_trait(op, Elementwise) or not is_pure(op):
            return None
        if not all(is_scalar(each) or shape(each.type) == sizes for each in op.operands):
            return None
        return self._elementwise(op, [*map(self.of, op.operands)])

    def _elementwise(self, op: Operation, operands: Sequence[Hashable]) -> Hashable:
        result = element_type(op.results[0])
        if isinstance(op, SelectOp) and operands[0] in (_TRUE, _FALSE):
            return operands[1 if operands[0] == _TRUE else 2]
        if isinstance(op, ConvertOp) and element_type(op.operand) == result:
            return operands[0]
        if isinstance(op, AndOp) and result == i1:
            conjuncts = frozenset[Hashable]().union(*map(_conjuncts, operands))
            return _FALSE if _FALSE in conjuncts else _And(conjuncts) if conjuncts else _TRUE
        attributes = {**op.properties, **op.attributes}
        attributes.pop(SHARDING, None)
        key = op.__class__, frozenset(attributes.items()), result, *operands
        return "elementwise", self._of_key.setdefault(key, len(self._of_key))


def _conjuncts(element: Hashable) -> frozenset[Hashable]:
    return element.conjuncts if isinstance(element, _And) else frozenset([element]) - {_TRUE}


def false_at_end(loop: WhileOp, rows: SSAValue, elements: RowElements) -> list[SSAValue]:
    """Return the arguments of the body that are false in the rows in which the condition's boolean `rows` is.

    Args:
        loop: The loop.
        rows: A boolean of each row, in the condition.
        elements: The elements of the values around and in the loop.
    """
    tested, body = loop.cond.block, loop.body.block
    unchanged = carried_unchanged(loop)
    assert body.last_op is not None
    end = body.last_op.operands

    def rows_with(known: RowElements, values: Sequence[SSAValue]) -> frozenset[Hashable]:
        given: dict[SSAValue, Hashable] = {}
        for argument, value in zip(tested.args, values, strict=True):
            if argument not in unchanged:
                given[argument] = known.of(value)
        return known.replacing(given, tested.ops).conjuncts(rows)

    def is_false(index: int) -> bool:
        argument, returned = body.args[index], end[index]
        if not rows_with(elements, loop.operands) <= elements.conjuncts(loop.operands[index]):
            return False
        if elements.assuming(argument, _FALSE, body.ops).of(returned) != _FALSE:
            return False
        active = elements.assuming(argument, _TRUE, body.ops)
        return rows_with(active, end) <= active.conjuncts(returned)

    return [
        argument
        for argument in body.args
        if argument.type == rows.type
        and argument not in unchanged
        and equivalent(get_sharding(argument), get_sharding(rows))
        and is_false(argument.index)
    ]
