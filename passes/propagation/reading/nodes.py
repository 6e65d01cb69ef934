"""The nodes of a snapshot, numbered as their values are met: which of them holds the sharding of a value."""

from collections.abc import Iterable

from xdsl.ir import Attribute, SSAValue

from sdy.dialect.shardings import get_sharding, shardable_value
from sdy.passes.common.data_flow_edges import edge_of
from sdy.passes.propagation.snapshot import UNSHARDABLE
from sdy.sharding import TensorSharding


class Nodes:
    """What is known of each node, by its number, and the number of each value's."""

    def __init__(self) -> None:
        self.values: list[SSAValue | None] = [None]
        """The value that each node holds the sharding of, first of all; None for a function's result, and node 0."""
        self.attributes: list[dict[str, Attribute] | None] = [None]
        """The attributes in which an operation keeps the sharding of each node, and no other; None where none does."""
        self.readers: list[list[int]] = [[]]
        """The operations that the sharding of each node matters to, in the order of the text."""
        self.given: dict[int, TensorSharding] = {}
        """The shardings that nodes have to begin with."""
        self.by_id: dict[int, int] = {}
        """The node of each value, by the value's `id`."""
        self.joined: list[SSAValue] = []
        """The other values in `by_id`, whose sharding is held with that of another value, or not at all."""

    def of(self, value: SSAValue) -> int:
        """The node that holds the sharding of `value`."""
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
        """The node that holds the sharding of each of `values`."""
        return [self.of(value) for value in values]

    def own(self, value: SSAValue, sharding: TensorSharding | None) -> int:
        """The node of a value that is known to hold its sharding itself."""
        node = self.by_id.get(id(value))
        return self.new(value, sharding) if node is None else node

    def new(self, value: SSAValue | None, sharding: TensorSharding | None) -> int:
        """A new node that holds the sharding of `value`, if of any."""
        node = len(self.values)
        self.values.append(value)
        self.readers.append([])
        self.attributes.append(None)
        if sharding is not None:
            self.given[node] = sharding
        if value is not None:
            self.by_id[id(value)] = node
        return node
