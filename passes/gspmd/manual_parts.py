"""Detection of manual parts: the operations between `SPMDFullToShardShape` and `SPMDShardToFullShape`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, OpResult, SSAValue

from sdy.diagnostics import error
from sdy.ir.walking import captured_values
from sdy.passes.gspmd.sharding_texts import FULL_TO_SHARD, SHARD_TO_FULL, is_call
from sdy.stablehlo.custom_call import CustomCallOp

_MANUAL_PART_RULES = (
    f"a manual part takes its inputs from {FULL_TO_SHARD}, passes its outputs to {SHARD_TO_FULL}, and is in a single "
    "block. With Shardy, jax.shard_map lowers to sdy.manual_computation, which needs none of these"
)


@dataclass
class ManualPart:
    """The operations of a manual part, in order.

    Attributes:
        begins: The `SPMDFullToShardShape` calls.
        free: Operations that depend on nothing outside, such as constants, and that may have other uses.
        inner: The operations between the calls.
        ends: The `SPMDShardToFullShape` calls.
    """

    begins: dict[CustomCallOp, None] = field(default_factory=dict[CustomCallOp, None])
    free: dict[Operation, None] = field(default_factory=dict[Operation, None])
    inner: list[Operation] = field(default_factory=list[Operation])
    ends: list[CustomCallOp] = field(default_factory=list[CustomCallOp])

    @property
    def last(self) -> Operation:
        """The last operation, the insertion point of the manual computation."""
        return max([*self.inner, *self.ends], key=lambda op: op_index(op))


def op_index(op: Operation) -> int:
    """Return the index of `op` in its block."""
    assert op.parent is not None
    return op.parent.get_operation_index(op)


def manual_parts(block: Block) -> list[ManualPart]:
    """Return the connected manual parts of `block`.

    Raises:
        DiagnosticError: If a manual part uses a value from outside.
    """
    begins = [op for op in block.ops if is_call(op, FULL_TO_SHARD)]
    ends = [op for op in block.ops if is_call(op, SHARD_TO_FULL)]
    if not begins and not ends:
        return []
    inner = _inner_operations(block, begins)
    part_of: dict[Operation, ManualPart] = {}
    for op in [op for op in block.ops if op in inner or op in ends]:
        part = ManualPart()
        sources = [owner for value in values_used(op) if isinstance(owner := value.owner, Operation)]
        for joined in {id(part_of[source]): part_of[source] for source in sources if source in inner}.values():
            part = _joined(joined, part)
        part.begins.update({source: None for source in sources if is_call(source, FULL_TO_SHARD)})
        part.free.update(_free_operations(op, inner))
        if is_call(op, SHARD_TO_FULL):
            part.ends.append(op)
        else:
            part.inner.append(op)
        for member in (*part.inner, *part.ends):
            part_of[member] = part
    return list({id(part): part for part in part_of.values()}.values())


def values_used(op: Operation) -> Sequence[SSAValue]:
    """Return the operands of `op` and the values that its regions capture."""
    return (*op.operands, *captured_values(op)) if op.regions else op.operands


def _inner_operations(block: Block, begins: Sequence[CustomCallOp]) -> set[Operation]:
    """Return the operations of `block` that depend on `begins`, up to those that end a manual part."""
    manual = set[SSAValue](begin.results[0] for begin in begins)
    inner: set[Operation] = set()
    for op in block.ops:
        if not is_call(op, SHARD_TO_FULL) and any(value in manual for value in values_used(op)):
            if op is block.last_op:
                raise error(op, f"uses the local shard of a tensor outside of a manual part: {_MANUAL_PART_RULES}")
            inner.add(op)
            manual.update(op.results)
    return inner


def _joined(first: ManualPart, second: ManualPart) -> ManualPart:
    return ManualPart(
        first.begins | second.begins, first.free | second.free, first.inner + second.inner, first.ends + second.ends
    )


def _free_operations(op: Operation, inner: set[Operation]) -> dict[Operation, None]:
    """Return the operations outside the manual part that `op` depends on, in order."""
    found: dict[Operation, None] = {}
    pending = list(_outside_values(op, inner))
    while pending:
        value = pending.pop()
        source = value.owner
        if not isinstance(value, OpResult) or not isinstance(source, Operation):
            raise error(op, f"uses a value from outside of its manual part: {_MANUAL_PART_RULES}")
        if is_call(source, SHARD_TO_FULL):
            raise error(op, f"uses an unpartitioned tensor, the result of {SHARD_TO_FULL}: {_MANUAL_PART_RULES}")
        if source not in found:
            found[source] = None
            pending += _outside_values(source, inner)
    return dict.fromkeys(sorted(found, key=op_index))


def _outside_values(op: Operation, inner: set[Operation]) -> Iterator[SSAValue]:
    for value in values_used(op):
        if value.owner not in inner and not is_call(value.owner, FULL_TO_SHARD):
            yield value
