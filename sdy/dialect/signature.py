"""What an operation is, apart from which values it works on: its signature.

A deep model repeats the same few hundred operations on other values:

    %5 = stablehlo.add %3, %4 : tensor<8x4xf32>        %9 = stablehlo.add %7, %7 : tensor<8x4xf32>

Both have one signature: the class, the types of operands and results, the properties, the attributes without a
dialect's prefix (those with one belong to other dialects than the operation's own), and how many regions and successors
there are. What is decided by these alone can be decided once for both: a sharding rule, most of what a verifier says.

To hash and compare xDSL's attributes is slow, so that an operation is first looked up by which attributes it has as
objects in memory, and only then by what these are equal to.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from xdsl.ir import Attribute, Operation
from xdsl.traits import (
    ConditionallySpeculatable,
    HasFolder,
    IsTerminator,
    OpTrait,
    ReturnLike,
    SameOperandsAndResultType,
)

T = TypeVar("T")

Signature = tuple[object, ...]
"""A key for dictionaries."""

_MOST = 2**15
"""So many signatures are remembered before all are forgotten, so that a long-lived process does not grow."""


_NOT_LOOKING_AROUND = (ConditionallySpeculatable, HasFolder, IsTerminator, ReturnLike, SameOperandsAndResultType)
"""Traits whose own check looks at the operation alone, or at its place, which is checked of every terminator."""


class VerifiedBySignature(OpTrait):
    """What the operation's verifier says depends on its signature alone, so that it need be asked once for each."""


class VerifiedByConstants(OpTrait):
    """What the operation's verifier says depends on the constants that its operands are, so that it is asked of all."""


def is_verified_by_signature(op_class: type[Operation]) -> bool:
    """Whether all that a class's definition, verifier and traits check depends on an operation's signature alone.

    A trait that checks something may look at where an operation stands, so that the operation must be asked itself.
    """
    if op_class.has_trait(VerifiedByConstants, value_if_unregistered=False):
        return False
    return op_class.has_trait(VerifiedBySignature, value_if_unregistered=False) and all(
        isinstance(trait, _NOT_LOOKING_AROUND) or type(trait).verify is OpTrait.verify
        for trait in op_class.get_traits_of_type(OpTrait)
    )


class Remembered(Generic[T]):
    """A function of operations that depends on nothing but their signature, called once for each.

    An operation for which it raises is asked about again. Answers, and the attributes that were met, are kept in
    memory, up to a limit.
    """

    def __init__(self, function: Callable[[Operation], T]):
        self._function = function
        self._answers: dict[Signature, T] = {}
        self._equals: dict[Attribute, Attribute] = {}
        self._kept: list[Attribute] = []

    def __call__(self, op: Operation) -> T:
        """The function's answer for this operation."""
        signature = _signature(op, id)
        answers = self._answers
        if signature in answers:
            return answers[signature]
        return self._first_answer(op, signature)

    def _first_answer(self, op: Operation, signature: Signature) -> T:
        """The answer for an operation whose attributes are met as objects for the first time."""
        of_equals = _signature(op, self._equal)
        answer = self._answers[of_equals] if of_equals in self._answers else self._function(op)
        if len(self._answers) >= _MOST:
            self._answers.clear()
            self._equals.clear()
            self._kept.clear()
            of_equals = _signature(op, self._equal)
        # No other object may take the place in memory of one that is in a signature.
        _signature(op, self._keep)
        self._answers[signature] = self._answers[of_equals] = answer
        return answer

    def _equal(self, attribute: Attribute) -> int:
        return id(self._equals.setdefault(attribute, attribute))

    def _keep(self, attribute: Attribute) -> int:
        self._kept.append(attribute)
        return id(attribute)


def _signature(op: Operation, identify: Callable[[Attribute], int]) -> Signature:
    """The signature of an operation whose attributes are known by a number; written to be fast."""
    operands = op._operands  # pyright: ignore[reportPrivateUsage]
    key: list[object] = [op.__class__, len(operands), len(op.regions), len(op.successors)]
    append = key.append
    for value in operands:
        append(identify(value._type))  # pyright: ignore[reportPrivateUsage]
    for value in op.results:
        append(identify(value._type))  # pyright: ignore[reportPrivateUsage]
    if op.properties:
        for name, attribute in op.properties.items():
            append(name)
            append(identify(attribute))
    if op.attributes:
        for name, attribute in op.attributes.items():
            if "." not in name:
                key += "attribute", name, identify(attribute)
    return tuple(key)
