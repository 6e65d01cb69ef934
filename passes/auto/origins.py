"""Correspondence between the operations of a module and of its prepared copy.

The search works on the copy, in which calls are inlined and composites are decomposed, so that an operation of the
module has several copies or none. Numbers in attributes lead from a copy to the result whose sharding is written.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntAttr, ModuleOp, TensorType
from xdsl.ir import Operation, OpResult

from sdy.dialect.shardings import stores_result_shardings
from sdy.ir.walking import operations

_NUMBER = "sdy_auto.number"
_LEAST_RANK = 2


def choosable_results(root: Operation) -> Sequence[OpResult]:
    """Return the results for which a sharding can be chosen; a result's number is its index in this list.

    They are those of operations with operands and one result of rank 2 or more, on which a sharding can be written.
    """
    return [op.results[0] for op in operations(root) if _has_choosable_result(op)]


def number_operations(module: ModuleOp) -> None:
    """Store the number of each choosable result in an attribute of its operation, which copies inherit."""
    for number, result in enumerate(choosable_results(module)):
        result.op.attributes[_NUMBER] = IntAttr(number)


def number_of(op: Operation) -> int | None:
    """Return the number of the choosable result that the result of `op` is a copy of, or None."""
    number = op.attributes.get(_NUMBER)
    return None if number is None else cast("IntAttr[int]", number).data


def _has_choosable_result(op: Operation) -> bool:
    if len(op.results) != 1 or not op.operands or not stores_result_shardings(type(op)):
        return False
    type_ = op.results[0].type
    return isinstance(type_, TensorType) and type_.get_num_dims() >= _LEAST_RANK
