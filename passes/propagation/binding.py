"""The mapping from the numbers of a snapshot to the operations and values of its module."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from sdy.ir.companions import Copies


@dataclass(frozen=True, eq=False)
class Binding:
    """The operations and values of a module, by their numbers in its snapshot."""

    operations: Sequence[Operation]
    """The module operation and all nested operations."""
    values: Sequence[SSAValue | None]
    """The primary value of each node, whose sharding the node holds; None for function results and node 0."""
    attributes: Sequence[dict[str, Attribute] | None]
    """The attribute dictionary of each node's defining operation, if its sharding attribute holds just this node's
    sharding; else None."""
    joined: Sequence[SSAValue]
    """The other values in `nodes`: values that share the node of another value, or cannot have a sharding."""
    nodes: dict[int, int]
    """The node of each value, by the value's `id`: hashing a value is slow."""
    functions: Sequence[FuncOp]
    """The functions that have a body."""
    rule_owners: Sequence[Operation]
    """The operations that had a sharding rule attribute when the module was read."""

    def node_of(self, value: SSAValue) -> int | None:
        """Return the node that holds the sharding of `value`; None if the module lacked the value when it was read."""
        return self.nodes.get(id(value))

    def copied(self, copies: Copies) -> "Binding":
        """Return the binding of a copy of the module."""
        values = [None if value is None else copies.of(value) for value in self.values]
        joined = [copies.of(value) for value in self.joined]
        nodes = {id(value): node for node, value in enumerate(values) if value is not None}
        nodes |= {id(new): self.nodes[id(old)] for old, new in zip(self.joined, joined, strict=True)}
        return Binding(
            [copies.of(op) for op in self.operations],
            values,
            [_attributes(new) if old is not None else None for old, new in zip(self.attributes, values, strict=True)],
            joined,
            nodes,
            [copies.of(func) for func in self.functions],
            [copies.of(op) for op in self.rule_owners],
        )


def _attributes(result: SSAValue | None) -> dict[str, Attribute]:
    assert isinstance(result, OpResult)
    return result.op.attributes
