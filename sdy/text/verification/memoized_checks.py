"""Memoized checks: operations with equal keys are verified once per verification of a module.

The keys hold the identities of objects, which stay alive during the verification.
"""

from collections.abc import Callable
from functools import cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.dialect.attributes import SHARDING
from sdy.dialect.verifiers import verify_attributes
from sdy.ir.fast_access import type_of
from sdy.ir.operation_key import VerifiedByBody, key_by_identity

_MAX_BODY_VALUES = 8
"""The largest body, in values, that is memoized; comparing a larger one costs as much as verifying it."""


class AttributeCheck:
    """`verify_attributes`, memoized for operations whose only attribute is a sharding.

    The validity of a sharding depends on the result types and on the regions around the block: both are in the key.
    """

    def __init__(self) -> None:
        self._verified: set[tuple[int, ...]] = set()

    def __call__(self, op: Operation) -> None:
        sharding = op.attributes.get(SHARDING)
        if sharding is None or len(op.attributes) > 1 or op.__class__ is FuncOp:
            verify_attributes(op)
            return
        key = id(op.parent), id(sharding), *[id(type_of(result)) for result in op.results]
        if key not in self._verified:
            verify_attributes(op)
            self._verified.add(key)


class BodyCheck:
    """A check memoized for `VerifiedByBody` operations that are equal except for their operands."""

    def __init__(self, check: Callable[[Operation], None]):
        self._check = check
        self._verified: set[tuple[object, ...]] = set()

    def __call__(self, op: Operation) -> None:
        key = _key_with_body(op) if is_verified_by_body(op.__class__) else None
        if key is None or key not in self._verified:
            self._check(op)
        if key is not None:
            self._verified.add(key)


@cache
def is_verified_by_body(op_class: type[Operation]) -> bool:
    """Return whether the validity of a class's operations depends only on their key and their regions."""
    return op_class.has_trait(VerifiedByBody, value_if_unregistered=False)


def _key_with_body(op: Operation) -> tuple[object, ...] | None:
    """Return a key of an operation with its body; None if the body is long or captures values."""
    key = _key(op)
    numbers: dict[int, int] = {}
    for region in op.regions:
        for block in region.blocks:
            key.append("block")
            for argument in block.args:
                numbers[id(argument)] = len(numbers)
                key.append(id(argument.type))
            for inner in block.ops:
                if inner.regions or inner.successors or len(numbers) > _MAX_BODY_VALUES:
                    return None
                key += _key(inner)
                for operand in inner.operands:
                    if id(operand) not in numbers:
                        return None
                    key.append(numbers[id(operand)])
                for result in inner.results:
                    numbers[id(result)] = len(numbers)
    return tuple(key)


def _key(op: Operation) -> list[object]:
    """Return a key of an operation without its operands and regions."""
    return [*key_by_identity(op), *op.attributes, *map(id, op.attributes.values()), None]
