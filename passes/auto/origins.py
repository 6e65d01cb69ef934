"""Where operations of a prepared copy come from: what is chosen for their results is written into the module itself.

Preparation inlines functions and takes composites apart, and so has several copies of some operations, or none.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import IntAttr, ModuleOp, TensorType
from xdsl.ir import Operation, OpResult

from sdy.dialect.shardings import keeps_shardings_of_results
from sdy.ir.walking import operations

_NUMBER = "sdy_auto.number"
_LEAST_RANK = 2


def number_operations(module: ModuleOp) -> None:
    """Let each operation that a result can be chosen of know its number, which its copies have, too."""
    for number, op in enumerate(operations(module)):
        if _has_choosable_result(op):
            op.attributes[_NUMBER] = IntAttr(number)


def number_of(op: Operation) -> int | None:
    """The number of the operation that `op` is a copy of; None where there is none, or nothing to choose."""
    number = op.attributes.get(_NUMBER)
    return None if number is None else cast("IntAttr[int]", number).data


def results_of(module: ModuleOp, numbers: Iterable[int]) -> Sequence[OpResult]:
    """The results of operations of `module`, by the operations' numbers."""
    found = operations(module)
    return [found[number].results[0] for number in numbers]


def _has_choosable_result(op: Operation) -> bool:
    """Whether `op` computes one tensor of several dimensions from others, whose sharding it keeps itself."""
    if len(op.results) != 1 or not op.operands or not keeps_shardings_of_results(type(op)):
        return False
    type_ = op.results[0].type
    return isinstance(type_, TensorType) and type_.get_num_dims() >= _LEAST_RANK
