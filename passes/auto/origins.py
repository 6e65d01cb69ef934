"""Where operations of a prepared copy come from: what is chosen for their results is written into the module itself.

Preparation inlines functions and takes composites apart, and so has several copies of some operations, or none.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntAttr, ModuleOp, TensorType
from xdsl.ir import Operation, OpResult

from sdy.dialect.shardings import keeps_shardings_of_results
from sdy.ir.walking import operations

_NUMBER = "sdy_auto.number"
_LEAST_RANK = 2


def choosable_results(module: ModuleOp) -> Sequence[OpResult]:
    """The results that can be chosen of, each called by its index: of an operation that computes one tensor of several
    dimensions from others, whose sharding it keeps itself."""
    return [op.results[0] for op in operations(module) if _has_choosable_result(op)]


def number_operations(module: ModuleOp) -> None:
    """Let each operation that a result can be chosen of know that result's number, which its copies have, too."""
    for number, result in enumerate(choosable_results(module)):
        result.op.attributes[_NUMBER] = IntAttr(number)


def number_of(op: Operation) -> int | None:
    """The number of the result that that of `op` is a copy of; None where there is none, or nothing to choose."""
    number = op.attributes.get(_NUMBER)
    return None if number is None else cast("IntAttr[int]", number).data


def _has_choosable_result(op: Operation) -> bool:
    if len(op.results) != 1 or not op.operands or not keeps_shardings_of_results(type(op)):
        return False
    type_ = op.results[0].type
    return isinstance(type_, TensorType) and type_.get_num_dims() >= _LEAST_RANK
