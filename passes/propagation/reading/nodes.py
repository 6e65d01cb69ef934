"""The nodes of a snapshot, numbered in the order in which the reader meets their values."""

from collections.abc import Iterable

from xdsl.ir import Attribute, SSAValue

from sdy.dialect.shardings import get_sharding, shardable_value
from sdy.passes.common.data_flow_edges import edge_of
from sdy.passes.propagation.snapshot import UNSHARDABLE
from sdy.sharding import TensorSharding


class Nodes:
    """The properties of each node, indexed by node, and the node of each value."""

    def __init__(self) -> None:
        self.values: list[SSAValue | None] = [None]
        """The primary value of each node, whose sharding the node holds; None for function results and node 0."""
        self.attributes: list[dict[str, Attribute] | None] = [None]
        """The attribute dictionary of each node's defining operation, if its sharding attribute holds just this node's
        sharding; else None."""
        self.readers: list[list[int]] = [[]]
        """The operations whose steps read the sharding of each node, in pre-order."""
        self.initial: dict[int, TensorSharding] = {}
        """The initial shardings of nodes."""
        self.by_id: dict[int, int] = {}
        """The node of each value, by the value's `id`."""
        self.joined: list[SSAValue] = []
        """The other values in `by_id`: values that share the node of another value, or cannot have a sharding."""

    def of(self, value: SSAValue) -> int:
        """Return the node that holds the sharding of `value`, allocating it on first use."""
        node = self.by_id.get(id(value))
        if node is not None:
            return node
        edge = edge_of(value)
        if edge is not None:
            (result,), sharding = edge.results, edge.sharding
            node = self.own(result, sharding and sharding.data)
        else:
            holder = shardable_value(value)
            if holder is value:
                return self.new(value, get_sharding(value))
            node = UNSHARDABLE if holder is None else self.of(holder)
        self.by_id[id(value)] = node
        self.joined.append(value)
        return node

    def of_all(self, values: Iterable[SSAValue]) -> list[int]:
        """Return the node of each of `values`."""
        return [self.of(value) for value in values]

    def own(self, value: SSAValue, sharding: TensorSharding | None) -> int:
        """Return the node of a value that holds its own sharding, allocating it on first use."""
        node = self.by_id.get(id(value))
        return self.new(value, sharding) if node is None else node

    def new(self, value: SSAValue | None, sharding: TensorSharding | None) -> int:
        """Allocate a node for `value`; None for a function result."""
        node = len(self.values)
        self.values.append(value)
        self.readers.append([])
        self.attributes.append(None)
        if sharding is not None:
            self.initial[node] = sharding
        if value is not None:
            self.by_id[id(value)] = node
        return node
