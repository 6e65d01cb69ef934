"""What propagation knows of a module: numbers and plain values, read once, and never changed.

Operations are numbered in the order of the text, from the module on, each before what is in it. *Nodes* are the places
that hold a sharding: a result, a function's argument or result, or the data-flow edge that holds the one sharding of
all the values that it joins. Node 0 stands for the values that cannot have a sharding, such as the arguments of a
reduction's body.

No operation is kept here, so that a snapshot outlives its module, and may be solved again and again. What the numbers
stand for in the module is in `binding.py`.
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
    """A value that the main function returns, tied to the function's result."""

    kind: OperationKind
    tensors: tuple[int, int]


class Sibling(NamedTuple):
    """A value that is defined with another one."""

    node: int
    rank: int
    """The number of its dimensions."""


class Route(NamedTuple):
    """Operations that the change of a node reaches while none of `through` is erased, and all of `instead_of` are."""

    operations: tuple[int, ...]
    through: tuple[int, ...] = ()
    instead_of: tuple[int, ...] = ()


class KindsByUse(NamedTuple):
    """Which kind an operation with a rule is; None where there is nothing to propagate."""

    alone: OperationKind | None
    """What it is if it is the only one to read each of its operands, scalars aside."""
    reusing: OperationKind | None
    """What it is if it reads a tensor that is read elsewhere too: the same where that makes no difference."""


class User(NamedTuple):
    """An operation that may be left alone with a value, which can let it take part earlier."""

    kinds: KindsByUse
    always_reuses: bool
    """Whether it reads a tensor that is read elsewhere too, whatever is erased."""
    operands: tuple[int, ...]
    """The other tensors that it reads, scalars aside, by the numbers of values in `DeadCode`."""


@dataclass(frozen=True, eq=False)
class DeadCode:
    """The operations that are trivially dead, or will be when others are erased, with all that is in them.

    The values that they read have numbers of their own here.
    """

    dead: Sequence[int]
    """The operations that are trivially dead to begin with."""
    sizes: Mapping[int, int]
    """For each operation that may be erased, how many there are in it, itself included."""
    operands: Mapping[int, tuple[int, ...]]
    """The values that each of these operations reads."""
    results: Mapping[int, tuple[int, ...]]
    """The values that each of these operations defines, of those that are read."""
    definers: Sequence[int | None]
    """The operation that defines each value; None for arguments."""
    readers: Sequence[tuple[int, ...]]
    """The operations that read each value, one as often as it does."""
    users: Mapping[int, User]
    """Those of the readers that anything is propagated through."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A module as propagation sees it; sequences are indexed by the numbers of operations, or of nodes."""

    meshes: Mapping[str, Mesh]
    given: Mapping[int, TensorSharding]
    """The shardings that nodes have."""
    kinds: Sequence[OperationKind | None]
    """What a step does at each operation; None where nothing is propagated."""
    tensors: Sequence[Sequence[int]]
    """The nodes of each operation's operands, then of its results."""
    readers: Sequence[Sequence[int]]
    """The operations that the sharding of each node matters to.

    In the order in which Shardy goes on to them, last to first: what defines the node's value, then what uses it, in
    the order of the use list, which starts with the latest. In any order where there are two alone, of which one is
    what changes the node, and of nodes with a route.
    """
    routes: Mapping[int, Sequence[Route]]
    """What is to be visited again when a node changes whose change may reach more than its readers, or more nodes than
    itself; in the order of `readers`. `UNSHARDABLE` is among them."""
    siblings: Mapping[int, Sequence[Sibling]]
    """The values that are defined with a node's, itself included, where there are several: they keep their shardings
    together, so that one cannot have a sharding without the others."""
    groups: Mapping[int, Sequence[int]]
    """The nodes that are always to have the sharding of a node, itself included."""
    functions: Sequence[FunctionNodes]
    """The functions that have a body."""
    main: int | None
    """The index in `functions` of the main one."""
    returns: Sequence[Return]
    dead_code: DeadCode

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, node 0 included."""
        return len(self.readers)

    def group(self, node: int) -> tuple[int, ...]:
        """`node`, and then the others that are always to have its sharding."""
        members = self.groups.get(node)
        return (node, *(member for member in members if member != node)) if members else (node,)
