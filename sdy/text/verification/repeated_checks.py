"""Checks that are right for one operation, and so for all that are like it, are made once while a module is verified.

What an operation is like is told by places in memory, which are not given to others in that time.
"""

from collections.abc import Callable
from functools import cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.dialect.attributes import SHARDING
from sdy.dialect.verifiers import verify_attributes
from sdy.ir.fields import type_of
from sdy.ir.operation_key import VerifiedByBody, key_by_identity

_MOST_VALUES = 8
"""In a body; to compare longer ones takes as long as to verify them."""


class AttributeCheck:
    """`verify_attributes`, asked once for all operations of a block that have but a sharding, and the same one.

    What is right about a sharding depends on the types of the results, and on what is around the block.
    """

    def __init__(self) -> None:
        self._right: set[tuple[int, ...]] = set()

    def __call__(self, op: Operation) -> None:
        sharding = op.attributes.get(SHARDING)
        if sharding is None or len(op.attributes) > 1 or op.__class__ is FuncOp:
            verify_attributes(op)
            return
        places = id(op.parent), id(sharding), *[id(type_of(result)) for result in op.results]
        if places not in self._right:
            verify_attributes(op)
            self._right.add(places)


class BodyCheck:
    """A check, made once for all operations `VerifiedByBody` whose bodies and all else but operands are equal."""

    def __init__(self, check: Callable[[Operation], None]):
        self._check = check
        self._right: set[tuple[object, ...]] = set()

    def __call__(self, op: Operation) -> None:
        whole = _whole(op) if is_verified_by_body(op.__class__) else None
        if whole is None or whole not in self._right:
            self._check(op)
        if whole is not None:
            self._right.add(whole)


@cache
def is_verified_by_body(op_class: type[Operation]) -> bool:
    """Whether all that is checked of a class's operations depends on their key and their regions."""
    return op_class.has_trait(VerifiedByBody, value_if_unregistered=False)


def _whole(op: Operation) -> tuple[object, ...] | None:
    """An operation with its body; None for one that is long, or that uses values from outside."""
    described = _itself(op)
    numbers: dict[int, int] = {}
    for region in op.regions:
        for block in region.blocks:
            described.append("block")
            for argument in block.args:
                numbers[id(argument)] = len(numbers)
                described.append(id(argument.type))
            for inner in block.ops:
                if inner.regions or inner.successors or len(numbers) > _MOST_VALUES:
                    return None
                described += _itself(inner)
                for operand in inner.operands:
                    if id(operand) not in numbers:
                        return None
                    described.append(numbers[id(operand)])
                for result in inner.results:
                    numbers[id(result)] = len(numbers)
    return tuple(described)


def _itself(op: Operation) -> list[object]:
    """An operation apart from which values it works on, and from what is in its regions."""
    return [*key_by_identity(op), *op.attributes, *map(id, op.attributes.values()), None]
