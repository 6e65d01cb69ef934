"""The propagation problem of a module: an immutable snapshot of numbers and plain values.

Operations are numbered in pre-order, beginning with the module. A *node* is a place that holds a sharding: an operation
result, a function argument or result, or a data-flow edge, which holds one sharding for all the values that it joins.
Node 0 stands for the values that cannot have a sharding, such as the arguments of a reduction's body.

A snapshot refers to no operation, so it outlives its module, and can be solved many times. `binding.py` maps its
numbers to the operations and values of the module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sdy.mesh import Mesh
from sdy.passes.propagation.step import OperationKind
from sdy.sharding import TensorSharding

UNSHARDABLE = 0
"""The node of the values that cannot have a sharding."""


class FunctionNodes(NamedTuple):
    """The nodes of a function's arguments and results."""

    name: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]


class Return(NamedTuple):
    """A value that the main function returns, and the function result that shares its sharding."""

    kind: OperationKind
    tensors: tuple[int, int]


class Sibling(NamedTuple):
    """A value whose defining operation or block defines other values too."""

    node: int
    rank: int
    """The number of dimensions."""


class Route(NamedTuple):
    """Operations to visit after a node changes, if none of `through` is erased and all of `instead_of` are."""

    operations: tuple[int, ...]
    through: tuple[int, ...] = ()
    instead_of: tuple[int, ...] = ()


class KindsByUse(NamedTuple):
    """The kind of an operation with a rule, by the uses of its operands; None if nothing propagates through it."""

    alone: OperationKind | None
    """The kind if each operand, scalars aside, has no other use."""
    reusing: OperationKind | None
    """The kind if some operand has another use; identical to `alone` if that makes no difference."""


class User(NamedTuple):
    """An operation that may become the only user of its operands when others are erased, and join an earlier stage."""

    kinds: KindsByUse
    always_reuses: bool
    """True if some operand has another use that is never erased."""
    operands: tuple[int, ...]
    """The other operands, scalars aside, by their value numbers in `DeadCode`."""


@dataclass(frozen=True, eq=False)
class DeadCode:
    """The operations that are trivially dead, or become so when others are erased, with their nested operations.

    The values that these operations read are numbered separately here.
    """

    dead: Sequence[int]
    """The operations that are trivially dead before propagation."""
    sizes: Mapping[int, int]
    """For each operation that may be erased, the number of operations nested in it, itself included."""
    operands: Mapping[int, tuple[int, ...]]
    """The values that each of these operations reads."""
    results: Mapping[int, tuple[int, ...]]
    """The numbered values that each of these operations defines."""
    definers: Sequence[int | None]
    """The operation that defines each value; None for block arguments."""
    readers: Sequence[tuple[int, ...]]
    """The operations that read each value, once per use."""
    users: Mapping[int, User]
    """The readers through which shardings propagate."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The propagation problem of a module; sequences are indexed by operation number or by node."""

    meshes: Mapping[str, Mesh]
    initial: Mapping[int, TensorSharding]
    """The initial shardings of nodes, by node."""
    kinds: Sequence[OperationKind | None]
    """The kind of each operation, which determines its step; None if nothing propagates through the operation."""
    tensors: Sequence[Sequence[int]]
    """The nodes of each operation's operands, then of its results."""
    readers: Sequence[Sequence[int]]
    """The operations whose steps read the sharding of each node.

    They are in the reverse of the order in which Shardy visits them: the definer of the node's value, then its users
    in the order of the use list, which begins with the latest use. The order is arbitrary for nodes with a route, and
    for nodes with two readers: one reader changes the node, so only the other is revisited.
    """
    routes: Mapping[int, Sequence[Route]]
    """The operations to revisit when a node changes, for nodes whose change affects more than their readers, or more
    nodes than themselves; in the order of `readers`. `UNSHARDABLE` is one of them."""
    siblings: Mapping[int, Sequence[Sibling]]
    """The values defined together with a node's value, itself included, if there are several: one attribute holds their
    shardings, so either all of them have one or none."""
    groups: Mapping[int, Sequence[int]]
    """The nodes in the same sharding group as a node, itself included."""
    functions: Sequence[FunctionNodes]
    """The functions that have a body."""
    main: int | None
    """The index of the main function in `functions`."""
    returns: Sequence[Return]
    dead_code: DeadCode

    @property
    def num_nodes(self) -> int:
        """The number of nodes, node 0 included."""
        return len(self.readers)

    def group(self, node: int) -> tuple[int, ...]:
        """Return `node`, followed by the other nodes of its sharding group."""
        members = self.groups.get(node)
        return (node, *(member for member in members if member != node)) if members else (node,)
