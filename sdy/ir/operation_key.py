"""What an operation is, apart from which values it works on: its key.

A deep model repeats the same few hundred operations on other values:

    %5 = stablehlo.add %3, %4 : tensor<8x4xf32>        %9 = stablehlo.add %7, %7 : tensor<8x4xf32>

Both have one key: the class, the types of operands and results, the properties, and how many regions and successors
there are. What is decided by these, and by some attributes, can be decided once for both: the text between the names, a
sharding rule, most of what a verifier says. Most look at the attributes without a dialect's prefix alone, as those with
one belong to other dialects than the operation's own.

To hash and compare xDSL's attributes is slow, so that an operation is first looked up by which attributes it has as
objects in memory, and only then by what these are equal to.
"""

# pyright: reportPrivateUsage=false

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

OperationKey = tuple[object, ...]
"""For dictionaries."""

_MOST = 2**15
"""So many answers are remembered before all are forgotten, so that a process that lives long does not grow."""

_MOST_MET = 2**10
"""So many operations are found by addresses: each module brings its own, of which a deep model has a few hundred."""

_NOT_LOOKING_AROUND = (ConditionallySpeculatable, HasFolder, IsTerminator, ReturnLike, SameOperandsAndResultType)
"""Traits whose own check looks at the operation alone, or at its place, which is checked of every terminator."""


class VerifiedByKey(OpTrait):
    """What the operation's verifier says depends on its key and its dialect's attributes alone, and is asked once."""


class VerifiedByBody(OpTrait):
    """What the operation's verifier says depends on its key and its regions alone, not on where it stands."""


class VerifiedByConstants(OpTrait):
    """What the operation's verifier says depends on the constants that its operands are, so that it is asked of all."""


def is_verified_by_key(op_class: type[Operation]) -> bool:
    """Whether all that a class's definition, verifier and traits check depends on an operation's key alone.

    A trait that checks something may look at where an operation stands, so that the operation must be asked itself.
    """
    if op_class.has_trait(VerifiedByConstants, value_if_unregistered=False):
        return False
    return op_class.has_trait(VerifiedByKey, value_if_unregistered=False) and all(
        isinstance(trait, _NOT_LOOKING_AROUND) or type(trait).verify is OpTrait.verify
        for trait in op_class.get_traits_of_type(OpTrait)
    )


def key_by_identity(op: Operation) -> list[object]:
    """The key of `op` in which attributes are told by their places in memory, for as long as these are not given away.

    It is asked for of each operation again and again, and is written to be fast: a comprehension instead of a loop
    would cost as much as all the rest, and so would calls for what xDSL's objects hold.
    """
    properties = op.properties
    key: list[object] = [type(op), *properties]
    for value in op._operands:
        key.append(id(value._type))  # noqa: PERF401
    key.append(None)
    for value in op.results:
        key.append(id(value._type))  # noqa: PERF401
    for attribute in properties.values():
        key.append(id(attribute))  # noqa: PERF401
    if op.regions or op._successors:
        key += "regions", len(op.regions), len(op._successors)
    return key


class Remembered(Generic[T]):
    """A function of operations that depends on their key and their own dialect's attributes alone, called once each.

    An operation for which it raises is asked about again. Answers, and the attributes that were met, are kept in
    memory, up to a limit.
    """

    def __init__(self, function: Callable[[Operation], T]):
        self._function = function
        self._by_identity: dict[OperationKey, T] = {}
        self._by_equality: dict[OperationKey, T] = {}
        self._met: list[OperationKey] = []
        """What is in the keys of `_by_identity`, as no other object may take its place in memory."""

    def __call__(self, op: Operation) -> T:
        """The function's answer for this operation, which is asked for so often that this is written to be fast."""
        key = key_by_identity(op)
        if op.attributes:
            for name, attribute in op.attributes.items():
                if "." not in name:
                    key += "attribute", name, id(attribute)
        identity = tuple(key)
        try:
            return self._by_identity[identity]
        except KeyError:
            pass
        return self._answer_of_equal(op, identity)

    def _answer_of_equal(self, op: Operation, identity: OperationKey) -> T:
        """The answer for an operation whose attributes were not met together before."""
        key = (
            op.__class__,
            tuple(op.operand_types),
            tuple(op.result_types),
            tuple(op.properties.items()),
            tuple([item for item in op.attributes.items() if "." not in item[0]]),
            len(op.regions),
            len(op.successors),
        )
        answer = self._by_equality[key] if key in self._by_equality else self._function(op)
        if len(self._by_equality) == _MOST:
            self._by_equality.clear()
        if len(self._by_identity) == _MOST_MET:
            self._by_identity.clear()
            self._met.clear()
        self._met.append(key)
        self._by_equality[key] = self._by_identity[identity] = answer
        return answer


class RememberedByResult(Generic[T]):
    """As `Remembered`, for a function of one class's operations that depends on the type of their only result alone.

    This is faster, as nothing else of the operation is looked at.
    """

    def __init__(self, function: Callable[[Operation], T]):
        self._function = function
        self.known: dict[int, T] = {}
        """The answers, by the `id` of the type, for who has the type at hand."""
        self._by_equality: dict[Attribute, T] = {}
        self._met: list[Attribute] = []

    def __call__(self, op: Operation) -> T:
        """The function's answer for this operation, which is asked for so often that this is written to be fast."""
        (result,) = op.results
        try:
            return self.known[id(result._type)]
        except KeyError:
            pass
        return self._answer_of_equal(op, result.type)

    def _answer_of_equal(self, op: Operation, type_: Attribute) -> T:
        """The answer for an operation whose result's type was not met before."""
        answer = self._by_equality[type_] if type_ in self._by_equality else self._function(op)
        if len(self._by_equality) == _MOST:
            self._by_equality.clear()
        if len(self.known) == _MOST_MET:
            self.known.clear()
            self._met.clear()
        self._met.append(type_)
        self._by_equality[type_] = self.known[id(type_)] = answer
        return answer
