"""Memoization of functions of operations by a key: everything but the operands.

A deep model repeats the same few hundred operations on other values:

    %5 = stablehlo.add %3, %4 : tensor<8x4xf32>        %9 = stablehlo.add %7, %7 : tensor<8x4xf32>

Both have one key: the class, the types of operands and results, the properties, and the numbers of regions and
successors. Facts that depend only on the key, and on some attributes, can be computed once for both: the text between
the value names, a sharding rule, most verifier checks. Most depend only on attributes without a dialect prefix, since
the others belong to other dialects than the operation's own.

Hashing and comparing xDSL's attributes is slow, so that an operation is first looked up by the identity of its
attributes, and by equality only on a miss.
"""

# pyright: reportPrivateUsage=false

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

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
KeyT = TypeVar("KeyT")

_UNKNOWN: Any = object()
"""Stands for a result that is not cached."""

OperationKey = tuple[object, ...]
"""A hashable key of an operation."""

_MOST = 2**15
"""Maximal number of cached values; the cache is cleared beyond it, to bound the memory of long-lived processes."""

_MAX_IDENTITIES = 2**10
"""Maximal number of identity keys: each module adds its own, a few hundred for a deep model."""

_CONTEXT_FREE_TRAITS = (ConditionallySpeculatable, HasFolder, IsTerminator, ReturnLike, SameOperandsAndResultType)
"""Traits verified from the operation alone, or from its position, which is checked for every terminator."""


class VerifiedByKey(OpTrait):
    """Trait: verification depends only on the key and the attributes of the operation's dialect, and is memoized."""


class VerifiedByBody(OpTrait):
    """Trait: verification depends only on the key and the regions, not on the operation's position."""


class VerifiedByConstants(OpTrait):
    """Trait: verification depends on the values of constant operands, and is not memoized."""


def is_verified_by_key(op_class: type[Operation]) -> bool:
    """Return whether all checks of a class's definition, verifier and traits depend only on an operation's key.

    A trait with checks of its own may depend on the position of the operation, and disables memoization.
    """
    if op_class.has_trait(VerifiedByConstants, value_if_unregistered=False):
        return False
    return op_class.has_trait(VerifiedByKey, value_if_unregistered=False) and all(
        isinstance(trait, _CONTEXT_FREE_TRAITS) or type(trait).verify is OpTrait.verify
        for trait in op_class.get_traits_of_type(OpTrait)
    )


def key_by_identity(op: Operation) -> list[object]:
    """Return the key of `op` with attributes replaced by their ids; it is valid while these attributes are alive.

    This is a hot path: a comprehension instead of a loop would double its time, and so would property access to xDSL's
    fields.
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


class _Results(Generic[KeyT, T]):
    """Results of a function by the identity and by the equality of a key, kept up to a limit."""

    def __init__(self):
        self.by_identity: dict[Any, T] = {}
        self._by_equality: dict[KeyT, T] = {}
        self._alive: list[KeyT] = []
        """Keeps the attributes of the keys in `by_identity` alive, so that their ids stay unique."""
        self._storing = Lock()
        """Held while results are stored, so that no thread drops the attributes of a key that another one stores."""

    def of_new_identity(self, key: KeyT, identity: object, compute: Callable[[], T]) -> T:
        """Return the result for a key whose identity is new; it is computed if no equal key is known."""
        known: Any = self._by_equality.get(key, _UNKNOWN)
        value: T = compute() if known is _UNKNOWN else known
        with self._storing:
            if len(self._by_equality) >= _MOST:
                self._by_equality.clear()
            if len(self.by_identity) >= _MAX_IDENTITIES:
                self.by_identity.clear()
                self._alive.clear()
            self._alive.append(key)
            self._by_equality[key] = self.by_identity[identity] = value
        return value


class MemoizedByKey(Generic[T]):
    """Memoized function of operations that depends only on their key and the attributes of their own dialect.

    Exceptions are not memoized. Results, and the attributes of the keys, are kept alive up to a limit.
    """

    def __init__(self, function: Callable[[Operation], T]):
        self._function = function
        self._results = _Results[OperationKey, T]()
        self._by_identity = self._results.by_identity

    def __call__(self, op: Operation) -> T:
        """Return the memoized result for `op`. This is a hot path."""
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
        return self._lookup_equal(op, identity)

    def _lookup_equal(self, op: Operation, identity: OperationKey) -> T:
        """Return the result for an operation whose identity key is new."""
        key = (
            op.__class__,
            tuple(op.operand_types),
            tuple(op.result_types),
            tuple(op.properties.items()),
            tuple([item for item in op.attributes.items() if "." not in item[0]]),
            len(op.regions),
            len(op.successors),
        )
        return self._results.of_new_identity(key, identity, lambda: self._function(op))


class MemoizedByResultType(Generic[T]):
    """Memoized function of one class's operations that depends only on the type of their single result.

    Faster than `MemoizedByKey`, as it looks up nothing else.
    """

    def __init__(self, function: Callable[[Operation], T]):
        self._function = function
        self._results = _Results[Attribute, T]()
        self.known: dict[int, T] = self._results.by_identity
        """Results by the `id` of the result type, for callers that have the type."""

    def __call__(self, op: Operation) -> T:
        """Return the memoized result for `op`. This is a hot path."""
        (result,) = op.results
        try:
            return self.known[id(result._type)]
        except KeyError:
            pass
        type_ = result.type
        return self._results.of_new_identity(type_, id(type_), lambda: self._function(op))
