"""What an operation is, apart from which values it works on: its signature.

A deep model repeats the same few hundred operations on other values:

    %5 = stablehlo.add %3, %4 : tensor<8x4xf32>        %9 = stablehlo.add %7, %7 : tensor<8x4xf32>

Both have one signature: the class, the types of operands and results, the properties, and the attributes without a
dialect's prefix (those with one belong to other dialects than the operation's own). What is decided by these alone can
be decided once for both: a sharding rule, most of what a verifier says.

To hash and compare xDSL's attributes is slow, so each attribute object is looked up once by what it is equal to, and
known by its number from then on. Its object is kept as long as its number is, so that no other can take its place in
memory.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from xdsl.ir import Attribute, Operation

T = TypeVar("T")


class Remembered(Generic[T]):
    """A function of operations that depends on nothing but their signature, called once for each.

    An operation for which it raises is asked about again. The answers, and the attributes that were met, are kept as
    long as this object: one for a module, or for a pass, forgets them in time.
    """

    def __init__(self, function: Callable[[Operation], T]):
        self._function = function
        self._answers: dict[Signature, T] = {}
        self._signature = Signatures().of

    def __call__(self, op: Operation) -> T:
        """The function's answer for this operation."""
        signature = self._signature(op)
        answers = self._answers
        if signature in answers:
            return answers[signature]
        answer = answers[signature] = self._function(op)
        return answer


Signature = tuple[object, ...]
"""A key for dictionaries; it can be compared with those that the same `Signatures` made."""


class Signatures:
    """Makes signatures."""

    def __init__(self):
        self._numbers: dict[int, int] = {}
        self._numbers_of_equals: dict[Attribute, int] = {}
        self._kept: list[Attribute] = []

    def of(self, op: Operation) -> Signature:
        """The signature of an operation, which is asked for so often that this is written to be fast."""
        numbers, add = self._numbers, self._add
        operands = op._operands  # pyright: ignore[reportPrivateUsage]
        key: list[object] = [op.__class__, len(operands)]
        for value in (*operands, *op.results):
            type_ = value._type  # pyright: ignore[reportPrivateUsage]
            key.append(numbers.get(id(type_)) or add(type_))
        for name, attribute in op.properties.items():
            key += name, numbers.get(id(attribute)) or add(attribute)
        for name, attribute in op.attributes.items():
            if "." not in name:
                key += "attribute", name, numbers.get(id(attribute)) or add(attribute)
        return tuple(key)

    def _add(self, attribute: Attribute) -> int:
        """The number, from 1 on, of an attribute that is met for the first time."""
        self._kept.append(attribute)
        number = self._numbers[id(attribute)] = self._numbers_of_equals.setdefault(attribute, len(self._kept))
        return number
