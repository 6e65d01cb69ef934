"""What the numbers of a snapshot stand for in the module that it was read from."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from sdy.ir.companions import Copies


@dataclass(frozen=True, eq=False)
class Binding:
    """The operations and values of a module, by the numbers that they have in its snapshot."""

    operations: Sequence[Operation]
    """The module, and all that was in it."""
    values: Sequence[SSAValue | None]
    """The value that each node holds the sharding of, first of all; None for a function's result, and node 0."""
    attributes: Sequence[dict[str, Attribute] | None]
    """The attributes in which an operation keeps the sharding of each node, and no other; None where none does."""
    joined: Sequence[SSAValue]
    """The other values in `nodes`, whose sharding is held with that of another value, or not at all."""
    nodes: dict[int, int]
    """The node that holds the sharding of each value, by the value's `id`, as to hash a value is slow."""
    functions: Sequence[FuncOp]
    """The functions that have a body."""
    given_rules: Sequence[Operation]
    """The operations that had a sharding rule."""

    def node_of(self, value: SSAValue) -> int | None:
        """The node that holds the sharding of `value`, None where the module had no such value when it was read."""
        return self.nodes.get(id(value))

    def copied(self, copies: Copies) -> "Binding":
        """The same in a copy of the module."""
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
            [copies.of(op) for op in self.given_rules],
        )


def _attributes(result: SSAValue | None) -> dict[str, Attribute]:
    assert isinstance(result, OpResult)
    return result.op.attributes
