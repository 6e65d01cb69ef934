"""Kernels: the operations of a block grouped as XLA fuses them, and the values that each group reads from memory.

A value is materialized, that is written to memory by its own kernel, if a user cannot compute it inside its own kernel,
or if several kernels would compute it and that is expensive, or reads more than the value itself while one of them
depends on another. Other values are computed inside the kernels of their users. These are the rules of XLA's
`InstructionFusion` (`instruction_fusion.cc`, `cpu_instruction_fusion.cc`); the cost models of other back ends decide
similarly.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import SymbolTable

from sdy.dialect.attributes import ORDERS
from sdy.dialect.ops import DataFlowEdgeOp, PropagationBarrierOp, ReshardOp, ShardingConstraintOp
from sdy.ir.shapes import shape_of
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.cpu_reductions import is_computed_by_library, is_in_steps, is_library_reduction
from sdy.passes.spmd.value_numbers import ValueNumbers
from sdy.rules import movement
from sdy.rules.elementwise import POINTWISE
from sdy.rules.other_dialects import CHLO
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.custom_call import APPROXIMATE_TOP_K, CustomCallOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.mixed_elementwise import CompareOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp


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

_UPDATES, _GATHERS = _operations("dynamic_update_slice"), _operations("gather dynamic_gather")
_READS_FROM_MEMORY = {Backend.CPU: _UPDATES, Backend.ACCELERATOR: _UPDATES | _GATHERS}
"""Operations that read their first operand, at computed positions, from memory."""

_EXPENSIVE = _operations(
    "atan2 cbrt cosine divide dynamic_gather exponential exponential_minus_one gather log log_plus_one logistic power"
    " remainder rsqrt sine sqrt tan tanh"
) | (_CHLO - {"chlo.square"})
"""Operations that several kernels do not compute again."""

_REUSING = _operations("broadcast broadcast_in_dim dynamic_slice")
"""Operations whose kernels on CPUs do not compute expensive operands."""

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
    copies: Sequence["Copy"] = ()
    """The copies of operands that the kernel reads."""
    makes: "Copy | None" = None
    """The copy that the kernel makes for the operation, if it has no results."""

    @property
    def results(self) -> Sequence[SSAValue]:
        """The values that the kernel writes to memory."""
        return () if self.makes else self.operation.results


@dataclass(frozen=True, eq=False, slots=True)
class Copy:
    """A copy of an operand in another order of dimensions, or of a larger element type."""

    operand: SSAValue
    scale: int
    """The bytes of the copy relative to those of the operand."""


def kernels_of(operations: Sequence[Operation], backend: Backend, stored: Set[Operation] = frozenset()) -> list[Kernel]:
    """Group operations of one block into kernels, in the order of the operations that write results.

    Args:
        operations: The operations.
        backend: The back end that compiles them.
        stored: The operations that write their results because operations outside of these read them.
    """
    return _Fusion(operations, backend, stored).kernels()


class _Fusion:
    def __init__(self, operations: Sequence[Operation], backend: Backend, stored: Set[Operation]) -> None:
        self._operations = operations
        self._stored = stored
        self._backend = backend
        self._in_library = [
            backend is Backend.CPU and is_library_reduction(op) and not can_be_fused(op) for op in operations
        ]
        """For each operation, true for a reduction by a library, or an operation that is computed with one."""
        self._equal = _equal_operations(operations) if any(self._in_library) else {}
        """For each operation that XLA merges with equal ones, the first of them."""
        self._for_library: set[Operation] = set()
        """The operations that are materialized since a library reads their results, or those of equal ones."""
        self._index = {op: index for index, op in enumerate(operations)}
        self._block = operations[0].parent if operations else None
        self._is_materialized = [False] * len(operations)
        self._is_reused = [False] * len(operations)
        """For each operation, true if its users' kernels compute an operation of `_REUSING` of it on CPUs."""
        self._is_cheap = [_is_cheap(op) for op in operations]
        self._after: list[int] = [0] * len(operations)
        """For each operation, the set of bits of the kernels that depend on it, if the back end is that of CPUs."""
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
            used = [(self._merged(op, source(use)), position) for use, position in _uses(op)]
            read = [value for value, position in used if self._reads(op, value, position)]
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
        if self._backend is Backend.CPU:
            self._after[index] = self._kernels_after(op)
        if self._joins_library(op):
            self._in_library[index] = True
            self._kernels_of[index] = self._kernels_of[self._index[next(uses_of(op.results[0])).operation]]
            return
        users: dict[int, None] = {}
        is_materialized = not can_be_fused(op) or op in self._for_library or op in self._stored
        for use in (use for result in op.results for use in uses_of(result)):
            user = self._index.get(self._ancestor(use.operation))
            if user is None:
                continue
            if self._in_library[user] and op in self._equal:
                self._for_library.add(self._equal[op])
                continue
            if self._can_fuse(user, use):
                users.update(dict.fromkeys(self._kernels_of[user]))
                self._is_reused[index] |= self._reuses(user)
            elif self._kernels_of[user]:
                is_materialized = True
        if len(users) > 1 and not self._is_cheap[index]:
            is_materialized |= op.name in _EXPENSIVE or not self._are_independent(users)
        is_materialized |= self._is_reused[index] and _is_expensive_alone(op)
        self._is_materialized[index] = is_materialized
        if not is_materialized:
            self._kernels_of[index] = [*users]
        elif self._is_cheap[index]:
            self._kernels_of[index] = [index, *users]
        else:
            self._kernels_of[index] = [index]

    def _reuses(self, user: int) -> bool:
        """Return whether the kernel of an operation on CPUs computes elements of its operands repeatedly."""
        op = self._operations[user]
        is_reusing = op.name in _REUSING and value_bytes(op.operands[0]) != value_bytes(op.results[0])
        is_computed = not self._is_materialized[user] and self._is_reused[user]
        return self._backend is Backend.CPU and (is_reusing or is_computed)

    def _kernels_after(self, op: Operation) -> int:
        """Return the set of bits of the kernels that depend on `op`, after its users."""
        after = 0
        for use in (use for result in op.results for use in uses_of(result)):
            user = self._index.get(self._ancestor(use.operation))
            if user is not None:
                after |= self._after[user] | (self._is_materialized[user] << user)
        return after

    def _are_independent(self, kernels: Iterable[int]) -> bool:
        """Return whether the back end is that of CPUs, and none of `kernels` depends on another one."""
        bits = sum(1 << kernel for kernel in kernels)
        return self._backend is Backend.CPU and not any(self._after[kernel] & bits for kernel in kernels)

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
        fuses = position is not None and self._fuses(user, position)
        return self._is_materialized[index] and not (fuses and self._is_cheap[index])

    def _can_fuse(self, user: int, use: Use) -> bool:
        """Return whether the operation `user`, or one inside of it, can compute the operand of `use` in its kernel."""
        is_nested = self._operations[user] is not use.operation
        return not is_nested and self._fuses(use.operation, use.index)

    def _fuses(self, user: Operation, index: int) -> bool:
        """Return whether `user` can compute its operand `index` in its kernel."""
        is_read = not index and user.name in _READS_FROM_MEMORY[self._backend]
        is_fusing = can_be_fused(user) or user.name in _FUSING or _joins(user, index) or _knows_positions(user, index)
        return is_fusing and not is_read and not self._reads_operands(user)

    def _reads_operands(self, op: Operation) -> bool:
        """Return whether `op` reads its operands from memory, since it is not computed by a kernel of XLA's own."""
        return self._is_computed_by_library(op) or (self._backend is Backend.CPU and is_in_steps(op))

    def _is_computed_by_library(self, op: Operation) -> bool:
        return (index := self._index.get(op)) is not None and self._in_library[index]

    def _merged(self, user: Operation, value: SSAValue) -> SSAValue:
        """Return the value that `user` reads: if a library does, that of the first equal operation."""
        first = self._equal.get(value.owner) if isinstance(value.owner, Operation) else None
        return first.results[0] if first is not None and self._is_computed_by_library(user) else value

    def _joins_library(self, op: Operation) -> bool:
        """Return whether a library computes `op` together with its only user."""
        if op in self._equal or not is_computed_by_library(op):
            return False
        users = {use.operation for use in uses_of(op.results[0])}
        return len(users) == 1 and all(map(self._is_computed_by_library, users))

    def _ancestor(self, op: Operation) -> Operation:
        """Return the operation of the block in which `op` is nested."""
        while op.parent is not self._block and (parent := op.parent_op()) is not None:
            op = parent
        return op


def _equal_operations(operations: Sequence[Operation]) -> dict[Operation, Operation]:
    """Return the first equal operation of each one that can be fused and has equal ones, those included."""
    numbers = ValueNumbers()
    equal: defaultdict[Hashable, list[Operation]] = defaultdict(list)
    for op in operations:
        numbers.number(op)
        if op.results and can_be_fused(op):
            equal[numbers.number_of(op.results[0])].append(op)
    return {op: group[0] for group in equal.values() if len(group) > 1 for op in group}


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


def _is_cheap(op: Operation) -> bool:
    """Return whether several kernels may compute `op`: each reads no more than one array of the result's rank."""
    if not can_be_fused(op) or op.name in _EXPENSIVE:
        return False
    rank = _rank(op.results[0])
    return (
        op.name in _FREE
        or _is_taken_apart(op)
        or sum(_rank(operand) >= rank for operand in {*op.operands} if not _is_free_value(operand)) <= 1
    )


def _is_expensive_alone(op: Operation) -> bool:
    """Return whether one kernel does not compute `op` repeatedly; XLA multiplies by the inverse of a constant."""
    is_product = op.name == "stablehlo.divide" and _is_constant(op.operands[1])
    return op.name in _EXPENSIVE - _GATHERS and not is_product


def _is_constant(value: SSAValue) -> bool:
    """Return whether `value` is a constant, or a broadcast one."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in _REUSING:
        return _is_constant(owner.operands[0])
    return isinstance(owner, Operation) and owner.name == "stablehlo.constant"


def _is_free_value(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_free(value.owner)


def is_free(op: Operation) -> bool:
    """Return whether every kernel computes `op` for itself."""
    return op.name in _FREE


def _rank(value: SSAValue) -> int:
    """Return the number of dimensions with more than one element."""
    return sum(size > 1 for size in shape_of(value))


def can_be_computed_again(op: Operation) -> bool:
    """Return whether several kernels may compute `op` element by element."""
    return op.name in ELEMENTWISE - _EXPENSIVE


def can_be_fused(op: Operation) -> bool:
    """Return whether a kernel of a user can compute `op`.

    A reduction of dimensions of size 1 is a reshape, and a product that sums over one element is elementwise. A
    concatenation of rows is not fused, as it would branch for each element, unless another one joins its parts.
    """
    fused_if = _FUSED_IF.get(type(op))
    return fused_if(op) if fused_if else op.name in _FUSED or movement(op.name) is not None


def _reduces_nothing(op: ReduceOp) -> bool:
    return all(shape_of(op.inputs[0])[dim] == 1 for dim in op.dimensions.get_values())


def _is_fused_concatenation(op: ConcatenateOp) -> bool:
    sizes = shape_of(op.result)
    is_along_rows = op.dimension.value.data == len(sizes) - 1 > 0 and sizes[-1] >= _LONG
    return not is_along_rows or _is_taken_apart(op)


def _is_taken_apart(op: Operation) -> bool:
    """Return whether `op` is a concatenation, and XLA lets its users read the operands instead."""
    return isinstance(op, ConcatenateOp) and all(
        _joins(use.operation, use.index) or _reads_one_part(use.operation, op) for use in uses_of(op.result)
    )


def _knows_positions(op: Operation, index: int) -> bool:
    """Return whether `op` knows the positions that its operand holds: XLA makes a top-k of values alone of it."""
    is_approximate = isinstance(op, CustomCallOp) and op.call_target_name.data == APPROXIMATE_TOP_K
    return is_approximate and isinstance(op.operands[index].owner, IotaOp) and not sorts_all(op)


def sorts_all(op: Operation) -> bool:
    """Return whether XLA sorts all values for an approximate top-k `op`: it has a top-k of the greatest values only."""
    if not isinstance(op, CustomCallOp) or op.call_target_name.data != APPROXIMATE_TOP_K:
        return False
    names = [name for name in op.called_computations.data if isinstance(name, SymbolRefAttr)]
    functions = [function for name in names if (function := SymbolTable.lookup_symbol(op, name)) is not None]
    compared = [each for function in functions for each in function.walk() if isinstance(each, CompareOp)]
    return bool(compared) and all(each.comparison_direction.data is not ComparisonDirection.GT for each in compared)


def _reads_one_part(op: Operation, concatenation: ConcatenateOp) -> bool:
    """Return whether `op` slices a single operand of the concatenation: XLA reads the operand instead."""
    if not isinstance(op, SliceOp):
        return False
    dim = concatenation.dimension.value.data
    begin, limit = op.start_indices.get_values()[dim], op.limit_indices.get_values()[dim]
    ends = [*accumulate(shape_of(operand)[dim] for operand in concatenation.operands)]
    return any(end <= begin and limit <= next_ for end, next_ in pairwise([0, *ends]))


def _joins(op: Operation, index: int) -> bool:
    """Return whether `op` joins the parts of its operand, too: one concatenation along the same dimension does both."""
    part = source(op.operands[index]).owner
    return isinstance(op, ConcatenateOp) and isinstance(part, ConcatenateOp) and part.dimension == op.dimension


def _sums_nothing(op: DotGeneralOp) -> bool:
    """Return whether a product is one of elements, such as the outer product of two vectors."""
    numbers = op.dot_dimension_numbers.data
    return all(shape_of(op.lhs)[dim] == 1 for dim in numbers.lhs_contracting_dimensions)


_FUSED_IF: Mapping[type[Operation], Callable[[Any], bool]] = {
    ConcatenateOp: _is_fused_concatenation,
    DotGeneralOp: _sums_nothing,
    ReduceOp: _reduces_nothing,
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
