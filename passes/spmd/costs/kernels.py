"""Kernels: the operations of a block grouped as XLA fuses them, and the values that each group reads from memory.

A value is materialized, that is written to memory by its own kernel, if a user cannot compute it inside its own kernel,
or if several kernels would compute it and that is expensive or reads more than the value itself. Other values are
computed inside the kernels of their users. These are the rules of XLA's `InstructionFusion` (`instruction_fusion.cc`,
`cpu_instruction_fusion.cc`); the cost models of other back ends decide similarly.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Block, Operation, SSAValue, Use

from sdy.dialect.attributes import ORDERS
from sdy.dialect.ops import DataFlowEdgeOp, PropagationBarrierOp, ReshardOp, ShardingConstraintOp
from sdy.ir.shapes import shape_of
from sdy.rules import movement
from sdy.rules.elementwise import POINTWISE
from sdy.rules.other_dialects import CHLO
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.shape import ConcatenateOp


def _operations(names: str, dialect: str = "stablehlo") -> frozenset[str]:
    return frozenset(f"{dialect}.{name}" for name in names.split())


_CHLO = _operations(CHLO, "chlo")
ELEMENTWISE = _operations(POINTWISE) | _operations("bitcast_convert clamp select") | _CHLO
"""Operations that can overwrite an operand of the type of the result."""

_MOVING = _operations(
    "broadcast concatenate constant dynamic_gather dynamic_slice gather iota pad real_dynamic_slice reshape slice"
)
_FUSED = ELEMENTWISE | _MOVING
"""Operations that a kernel of a user can compute, in addition to those that only move elements."""

_FUSING = _operations("dynamic_update_slice reduce")
"""Other operations whose kernels can compute operands."""

_READS_FROM_MEMORY = {"stablehlo.dynamic_update_slice": {0}, "stablehlo.gather": {0}, "stablehlo.dynamic_gather": {0}}
"""Operands that these operations read at computed positions, by index."""

_EXPENSIVE = _operations(
    "atan2 cbrt cosine divide dynamic_gather exponential exponential_minus_one gather log log_plus_one logistic power"
    " remainder rsqrt sine sqrt tan tanh"
) | (_CHLO - {"chlo.square"})
"""Operations that several kernels do not compute again."""

_FREE = _operations("broadcast broadcast_in_dim constant iota")
"""Operations that every kernel computes for itself."""

_LONG = 128
"""The least size of the last dimension along which a concatenation is a kernel of its own."""

_IDENTITIES = {DataFlowEdgeOp, OptimizationBarrierOp, PropagationBarrierOp, ReshardOp, ShardingConstraintOp}
"""Operations that XLA removes before it fuses."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An operation that writes its results to memory, together with the operations that are fused into it."""

    operation: Operation
    reads: Sequence[SSAValue]
    """The values that the kernel reads from memory, without constants."""
    elementwise: Sequence[SSAValue]
    """The values in `reads` from which elementwise operations alone compute the result."""
    follows: Sequence[SSAValue] = ()
    """The values that are computed before the kernel starts, because of the barriers that it reads through."""


def kernels_of(operations: Sequence[Operation]) -> list[Kernel]:
    """Group the operations of one block into kernels, in the order of the operations that write results."""
    return _Fusion(operations).kernels()


class _Fusion:
    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._index = {op: index for index, op in enumerate(operations)}
        self._block = operations[0].parent if operations else None
        self._is_materialized = [False] * len(operations)
        self._is_cheap = [_is_cheap(op) for op in operations]
        self._kernels_of: list[Sequence[int]] = [()] * len(operations)
        """For each operation, the indices of the operations in whose kernels it is computed."""
        self._elementwise: set[tuple[int, int]] = set()
        """The operations that lead to the result of a kernel by elementwise operations only."""

    def kernels(self) -> list[Kernel]:
        for index in reversed(range(len(self._operations))):
            self._fuse(index)
        reads: dict[int, dict[SSAValue, bool]] = {
            index: {} for index, is_materialized in enumerate(self._is_materialized) if is_materialized
        }
        follows: dict[int, list[SSAValue]] = {index: [] for index in reads}
        for index in reversed(range(len(self._operations))):
            if not (kernels := self._kernels_of[index]):
                continue
            op = self._operations[index]
            read = [value for use, position in _uses(op) if self._reads(op, value := source(use), position)]
            barred = [value for use, _ in _uses(op) for value in _barred(use)]
            for kernel in kernels:
                follows[kernel] += barred
                is_elementwise = self._is_elementwise_in(index, kernel)
                for value in read:
                    reads[kernel][value] = is_elementwise and reads[kernel].get(value, True)
        return [
            Kernel(
                self._operations[index],
                [*values],
                [value for value, is_elementwise in values.items() if is_elementwise],
                follows[index],
            )
            for index, values in reads.items()
        ]

    def _is_elementwise_in(self, index: int, kernel: int) -> bool:
        """Return whether all operations from `index` to the result of a kernel are elementwise, after its users."""
        op = self._operations[index]
        is_elementwise = op.name in ELEMENTWISE and (
            index == kernel
            or all(
                (user, kernel) in self._elementwise
                for use in uses_of(op.results[0])
                if (user := self._index.get(use.operation)) is not None and kernel in self._kernels_of[user]
            )
        )
        if is_elementwise:
            self._elementwise.add((index, kernel))
        return is_elementwise

    def _fuse(self, index: int) -> None:
        """Decide where an operation is computed, after its users."""
        op = self._operations[index]
        if op.name == "stablehlo.constant" or is_identity(op):
            return
        users: dict[int, None] = {}
        is_materialized = not can_be_fused(op)
        for use in (use for result in op.results for use in uses_of(result)):
            user = self._index.get(self._ancestor(use.operation))
            if user is None:
                continue
            if _can_fuse(use.operation, use.index) and self._operations[user] is use.operation:
                users.update(dict.fromkeys(self._kernels_of[user]))
            elif self._kernels_of[user]:
                is_materialized = True
        is_materialized |= len(users) > 1 and not self._is_cheap[index]
        self._is_materialized[index] = is_materialized
        if not is_materialized:
            self._kernels_of[index] = [*users]
        elif self._is_cheap[index]:
            self._kernels_of[index] = [index, *users]
        else:
            self._kernels_of[index] = [index]

    def _reads(self, user: Operation, value: SSAValue, position: int | None) -> bool:
        """Return whether `user` reads its operand `value` from memory."""
        owner = value.owner
        if isinstance(owner, Block):
            return True
        if owner.name == "stablehlo.constant":
            return False
        index = self._index.get(owner)
        if index is None:
            return owner.parent is not self._block
        fuses = position is not None and _can_fuse(user, position)
        return self._is_materialized[index] and not (fuses and self._is_cheap[index])

    def _ancestor(self, op: Operation) -> Operation:
        """Return the operation of the block in which `op` is nested."""
        while op.parent is not self._block and (parent := op.parent_op()) is not None:
            op = parent
        return op


def _uses(op: Operation) -> list[tuple[SSAValue, int | None]]:
    """Return the operands with their indices, and the values that nested operations use, without an index."""
    own: list[tuple[SSAValue, int | None]] = [(operand, index) for index, operand in enumerate(op.operands)]
    if not op.regions:
        return own
    nested = [operand for inner in op.walk() if inner is not op for operand in inner.operands]
    return own + [(value, None) for value in nested if not _is_inside(value, op)]


def _is_inside(value: SSAValue, op: Operation) -> bool:
    around = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return around is not None and op.is_ancestor(around)


def _can_fuse(user: Operation, index: int) -> bool:
    return (can_be_fused(user) or user.name in _FUSING) and index not in _READS_FROM_MEMORY.get(user.name, ())


def _is_cheap(op: Operation) -> bool:
    """Return whether several kernels may compute `op`: each reads no more than one array of the result's rank."""
    if not can_be_fused(op) or op.name in _EXPENSIVE:
        return False
    rank = _rank(op.results[0])
    return op.name in _FREE or sum(_rank(operand) >= rank for operand in {*op.operands} if not _is_free(operand)) <= 1


def _is_free(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name in _FREE


def _rank(value: SSAValue) -> int:
    """Return the number of dimensions with more than one element."""
    return sum(size > 1 for size in shape_of(value))


def can_be_fused(op: Operation) -> bool:
    """Return whether a kernel of a user can compute `op`.

    A reduction of dimensions of size 1 is a reshape. A concatenation of rows is not fused, as it would branch for each
    element.
    """
    fused_if = _FUSED_IF.get(type(op))
    return fused_if(op) if fused_if else op.name in _FUSED or movement(op.name) is not None


def _reduces_nothing(op: ReduceOp) -> bool:
    return all(shape_of(op.inputs[0])[dim] == 1 for dim in op.dimensions.get_values())


def _joins_short_rows(op: ConcatenateOp) -> bool:
    sizes = shape_of(op.result)
    return op.dimension.value.data < len(sizes) - 1 or len(sizes) == 1 or sizes[-1] < _LONG


_FUSED_IF: Mapping[type[Operation], Callable[[Any], bool]] = {
    ReduceOp: _reduces_nothing,
    ConcatenateOp: _joins_short_rows,
}
"""Operations that a kernel of a user computes under a condition."""


def is_identity(op: Operation) -> bool:
    """Return whether each result of `op` is the operand at the same position."""
    return type(op) in _IDENTITIES


def source(value: SSAValue) -> SSAValue:
    """Return the value that `value` is, before identities."""
    while isinstance(owner := value.owner, Operation) and is_identity(owner):
        value = owner.operands[owner.results.index(value)]
    return value


def _barred(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that XLA computes before `value`, because they pass through the same ordering barrier."""
    while isinstance(owner := value.owner, Operation) and is_identity(owner):
        if ORDERS in owner.attributes:
            yield from map(source, owner.operands)
        value = owner.operands[owner.results.index(value)]


def uses_of(value: SSAValue) -> Iterator[Use]:
    """Yield the uses of a value, those of its identities included, without the uses by identities."""
    for use in value.uses:
        if is_identity(use.operation):
            yield from uses_of(use.operation.results[use.index])
        else:
            yield use
