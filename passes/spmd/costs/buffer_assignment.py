"""Buffer assignment: the values that share memory, as XLA assigns them to buffers (`buffer_assignment.cc`).

Time is the sequence of the kernels that run, those of loops, branches and called functions included, each once. A
buffer may hold several values after each other, and is free in between:

- a loop keeps a carried value in one buffer: the next value is written there once nothing reads the last one;
- operations that do not depend on the iteration run before a loop, and their results are kept until it ends;
- branches and called functions write the results of their operation;
- an elementwise operation, `dynamic_update_slice` or scatter overwrites an operand that nothing reads afterwards;
- a reshape or a transpose is a view of its operand;
- a result of the main function that aliases a donated argument is written to the argument's buffer.

A value that cannot be computed in the buffer where it has to be is copied there, as by XLA's `CopyInsertion`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.dialect.ops import ManualComputationOp, NamedComputationOp
from sdy.ir.shapes import shape_of
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.donations import aliases
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.buffers import Allocation, Buffer
from sdy.passes.spmd.costs.copy_kernels import with_copies
from sdy.passes.spmd.costs.cumulative import adds_parts
from sdy.passes.spmd.costs.hoisting import first_of_equal, hoisted_operations
from sdy.passes.spmd.costs.in_place import in_place, overwritable, passed_on, returned_by_branches, views
from sdy.passes.spmd.costs.kernel_dependences import Dependences, inputs_of
from sdy.passes.spmd.costs.kernel_order import has_ordering_barriers, scheduled
from sdy.passes.spmd.costs.kernels import Copy, Kernel, kernels_of, sorts_all, source
from sdy.passes.spmd.costs.layout_copies import layout_copies
from sdy.passes.spmd.costs.widening import width
from sdy.stablehlo.control_flow import CaseOp, IfOp, WhileOp
from sdy.stablehlo.windows import SelectAndScatterOp

_WITH_BLOCKS = WhileOp | IfOp | CaseOp | CallOp | NamedComputationOp | ManualComputationOp
"""Operations that run kernels of other blocks."""


def allocate(
    module: ModuleOp,
    host: Set[SSAValue],
    backend: Backend,
    runs: Callable[[Operation], bool] = lambda op: True,
    *,
    in_order: bool = False,
    copies: bool = True,
) -> Allocation:
    """Return the buffers of a program.

    Args:
        module: The module.
        host: The values in host memory; all values of a buffer are in one memory.
        backend: The back end that compiles the program; one with ordering barriers is compiled as for accelerators.
        runs: Returns whether an operation is part of the program.
        in_order: Run the kernels of the main function in their order in the module, not in XLA's order.
        copies: Whether operands and results are copied where an operation requires another order of dimensions.
    """
    return _Allocator(module, host, backend, runs, in_order, copies).allocation()


class _Allocator:
    def __init__(
        self,
        module: ModuleOp,
        host: Set[SSAValue],
        backend: Backend,
        runs: Callable[[Operation], bool],
        in_order: bool,
        copies: bool,
    ) -> None:
        self._backend = Backend.ACCELERATOR if has_ordering_barriers(module) else backend
        self._main = main_function(module)
        self._in_order = self._main.body.block if in_order else None
        self._symbols = Symbols(module)
        self._host = host
        self._runs = runs
        self._copies: Callable[[Operation], Iterable[SSAValue]] = (
            partial(layout_copies, backend=self._backend) if copies else lambda op: ()
        )
        self._copies_early = copies and self._backend is Backend.CPU
        self._copy_buffers: dict[Copy, Buffer] = {}
        self._kernels: dict[Block, Sequence[Kernel]] = {}
        self._buffer_of: dict[SSAValue, Buffer] = {}
        self._donated: Mapping[Buffer, SSAValue] = {}
        """The donated arguments of the main function that results alias, by their buffers."""
        self._hoisted = set[Operation]()
        """The operations that XLA computes before the loops around them."""
        self._operations: list[Operation] = []
        self._begins: list[int] = []
        self._temporaries: list[Buffer] = []

    def allocation(self) -> Allocation:
        block = self._main.body.block
        arguments = [Buffer(argument) for argument in block.args]
        for buffer in arguments:
            buffer.write(buffer.value, 0)
        self._buffer_of.update(zip(block.args, arguments, strict=True))
        alias = {result: arguments[argument] for argument, result in aliases(self._main).items()}
        returned = block.last_op.operands if block.last_op is not None else ()
        targets = [alias.get(index) or Buffer(value) for index, value in enumerate(returned)]
        self._donated = {buffer: buffer.value for buffer in alias.values()}
        self._run(block, {*self._donated.values()}, targets)
        results = [target for index, target in enumerate(targets) if index not in alias]
        kernels = self._scheduled(block)
        return Allocation(
            self._operations, kernels, self._begins, arguments, [*alias.values()], results, self._temporaries
        )

    @property
    def _now(self) -> int:
        return len(self._operations) - 1

    def _run(self, block: Block, owned: Set[SSAValue], targets: Sequence[Buffer]) -> None:
        """Allocate the values of a block.

        Args:
            block: The block.
            owned: The arguments that the block may overwrite.
            targets: The buffers of the returned values.
        """
        kernels = self._scheduled(block)
        if not kernels:
            return
        owned = {*owned, *(result for kernel in kernels for result in kernel.results)}
        last_read = _last_reads(kernels)
        goals, copied = self._goals(block, kernels, last_read, targets)
        for index, kernel in enumerate(kernels):
            self._operations.append(kernel.operation)
            if block is self._main.body.block:
                self._begins.append(self._now)
            for argument in copied.intersection(kernel.reads):
                self._copy(argument)
                copied.remove(argument)
            expiring = {value for value in kernel.reads if value in owned and last_read[value] == index}
            self._read(kernel, _passed_on_by(kernel.operation))
            self._allocate(kernel, expiring, goals)
            if isinstance(kernel.operation, _WITH_BLOCKS):
                self._read(kernel, self._only_hoisted(kernel.operation))
        for value, target in zip(kernels[-1].operation.operands, targets, strict=False):
            if self._buffer_of.get(source(value)) is not target:
                target.write(value, self._now)

    def _copy(self, argument: SSAValue) -> None:
        """Copy an argument to another buffer, which is read from now on."""
        self._buffer_of[argument].read(self._now)
        self._buffer_of[argument] = self._temporary(argument)
        self._buffer_of[argument].write(argument, self._now)

    def _read(self, kernel: Kernel, done: Set[SSAValue] = frozenset()) -> None:
        """Keep the values that a kernel reads, without those in `done`, until now.

        A kernel reads them until it begins, and until the loops inside of it end.
        """
        for value in kernel.reads:
            if value not in done:
                self._buffer_of[value].read(self._now)

    def _only_hoisted(self, op: Operation) -> Set[SSAValue]:
        """Return the operands that a loop needs for nothing but what is computed before it."""
        if not isinstance(op, WhileOp):
            return frozenset()
        done = self._read_by_hoisted(op)
        operands = [*map(source, op.operands)]
        return {operands[index] for index in done} - {each for index, each in enumerate(operands) if index not in done}

    def _read_by_hoisted(self, loop: WhileOp) -> Set[int]:
        """Return the indices of the carried values that nothing reads but what is computed before a loop."""
        arguments = zip(loop.cond.block.args, loop.body.block.args, passed_on(loop), strict=True)
        return {
            index
            for index, (*values, is_passed_on) in enumerate(arguments)
            if is_passed_on
            and all(
                use.operation in self._hoisted or use.operation is loop.body.block.last_op
                for value in values
                for use in value.uses
            )
        }

    def _scheduled(self, block: Block) -> Sequence[Kernel]:
        if block not in self._kernels:
            operations = [op for op in block.ops if self._runs(op) and op not in self._hoisted]
            kernels = self._compiled(operations)
            self._kernels[block] = kernels if block is self._in_order else scheduled(kernels, self._backend)
        return self._kernels[block]

    def _compiled(self, operations: Sequence[Operation], stored: Set[Operation] = frozenset()) -> Sequence[Kernel]:
        kernels = kernels_of(operations, self._backend, stored)
        return [*with_copies(kernels)] if self._copies_early else kernels

    def _goals(
        self, block: Block, kernels: Sequence[Kernel], last_read: Mapping[SSAValue, int], targets: Sequence[Buffer]
    ) -> tuple[dict[SSAValue, Buffer], set[SSAValue]]:
        """Return the values that are computed in the buffers where they have to be in the end.

        These are the returned values, and the values that are changed in place to become returned values.

        Returns:
            Values with the buffers, and the arguments, donated ones or those of a loop, that are copied because some
            kernel may read them when their buffer is overwritten: XLA decides this before it orders the kernels
            (`copy_insertion.cc`).
        """
        copied: set[SSAValue] = set()
        is_main = block is self._main.body.block
        replaced: Mapping[Buffer, SSAValue] = self._donated
        if not is_main:
            replaced = {self._buffer_of[each]: each for each in block.args if self._buffer_of[each] in targets}
        readers = _readers(kernels, replaced.values())
        selected = {index for each in readers.values() for index in each}
        dependences = Dependences(selected, inputs_of(kernels) if selected else ())
        goals: dict[SSAValue, Buffer] = {}
        for value, target in zip(kernels[-1].operation.operands, targets, strict=False):
            goals.setdefault(source(value), target)
        occupied: dict[Buffer, int] = {}
        computed = {result for kernel in kernels for result in kernel.results}
        for value in (*block.args, *(each for each in last_read if each not in computed)):
            buffer = self._buffer_of.get(value)
            if buffer is not None:
                occupied[buffer] = max(occupied.get(buffer, -1), last_read.get(value, -1))
        for index in reversed(range(len(kernels))):
            kernel = kernels[index]
            if kernel.makes:
                continue
            op = kernel.operation
            for result in op.results:
                goal = goals.get(result)
                if goal is None:
                    continue
                until = occupied.get(goal, -1)
                overwritten = [operand for operand, other in (*in_place(op), *overwritable(kernel)) if other is result]
                overwrites = adds_parts(op) or any(
                    self._buffer_of.get(source(value)) is goal for value in (*overwritten, *self._copies(op))
                )
                argument = replaced.get(goal)
                others = [reader for reader in readers.get(argument, ()) if reader != index] if argument else ()
                is_last = block is self._in_order or dependences.follows_all(index, dependences.bits(others))
                if until > index or (until == index and not overwrites) or not is_last:
                    if argument is None or (is_last and not is_main):
                        del goals[result]
                    else:
                        copied.add(argument)
            viewed = {result for _, result in views(kernel)}
            for operand, result in (*views(kernel), *in_place(op), *returned_by_branches(op)):
                value = source(operand)
                until = max(index, last_read.get(result, -1)) if result in viewed else index
                if (
                    result in goals
                    and self._are_in_one_memory(value, result)
                    and value in kernel.reads
                    and last_read[value] <= until
                ):
                    goals.setdefault(value, goals[result])
        return goals, copied

    def _allocate(self, kernel: Kernel, expiring: Set[SSAValue], goals: Mapping[SSAValue, Buffer]) -> None:
        """Allocate the results of a kernel and run the blocks inside of it.

        Args:
            kernel: The kernel.
            expiring: The values that it may overwrite, as nothing reads them afterwards.
            goals: Buffers for some values.
        """
        op = kernel.operation
        if kernel.makes:
            self._make(kernel.makes)
            return
        for copy in kernel.copies:
            self._copy_buffers[copy].read(self._now)
        self._allocate_scratch(op)
        begin = self._now
        viewed = {result: self._buffer_of[value] for value, result in views(kernel)}
        overwritten = self._overwritten(kernel, expiring)
        aliased = {
            result
            for operand, result in (*in_place(op), *returned_by_branches(op))
            if self._are_in_one_memory(source(operand), result)
        }
        buffers: list[Buffer] = []
        for result in op.results:
            scale = self._scale(result)
            overwrites = overwritten.get(result)
            can_overwrite = overwrites if result in aliased or (overwrites and not overwrites.is_aliased) else None
            buffer = viewed.get(result) or goals.get(result) or can_overwrite or self._temporary(result, scale)
            buffer.is_aliased |= result in aliased
            if buffer.scale < scale:
                self._temporary(result, scale).write(result, begin)
            if overwrites and overwrites is not buffer:
                overwrites.successor = buffer
            if result not in viewed and not isinstance(op, IfOp | CaseOp):
                buffer.write(result, begin)
            self._buffer_of[result] = buffer
            buffers.append(buffer)
        match op:
            case WhileOp():
                self._loop(op, buffers)
            case IfOp() | CaseOp():
                for region in op.regions:
                    self._run(region.block, frozenset(), buffers)
            case CallOp():
                self._call(callee(op, self._symbols).body.block, op.operands, buffers)
            case NamedComputationOp() | ManualComputationOp():
                self._call(op.regions[0].block, op.operands, buffers)
            case _:
                return
        for result, buffer in zip(op.results, buffers, strict=True):
            if result not in viewed:
                buffer.write(result, self._now)

    def _allocate_scratch(self, op: Operation) -> None:
        """Allocate the copies of operands in other layouts, and what a second kernel makes the results of."""
        begin = self._now
        copied = [value for value in self._copies(op) if value.owner is op or not self._copies_early]
        before = [*(value for value in copied if value.owner is op), *(op.results if adds_parts(op) else ())]
        results = [*map(self._temporary, before)]
        for buffer in (*results, *map(self._temporary, (value for value in copied if value.owner is not op))):
            buffer.write(buffer.value, begin)
        if results:
            self._operations.append(op)
            for buffer in results:
                buffer.read(self._now)
        for value in _scratch_of(op):
            self._temporary(value).write(value, self._now)

    def _are_in_one_memory(self, one: SSAValue, other: SSAValue) -> bool:
        return (one in self._host) is (other in self._host)

    def _scale(self, value: SSAValue) -> int:
        return width(value) if self._backend is Backend.CPU else 1

    def _make(self, copy: Copy) -> None:
        buffer = self._copy_buffers[copy] = self._temporary(copy.operand, copy.scale)
        buffer.write(copy.operand, self._now)

    def _temporary(self, value: SSAValue, scale: int = 1) -> Buffer:
        buffer = Buffer(value, scale)
        self._temporaries.append(buffer)
        return buffer

    def _overwritten(self, kernel: Kernel, expiring: Set[SSAValue]) -> dict[SSAValue, Buffer]:
        """Return the buffers that results of a kernel take over from values that expire, by result."""
        if not expiring and not kernel.copies:
            return {}  # as `overwritable` looks at all users of the values
        overwritten: dict[SSAValue, Buffer] = {}
        left = {*expiring}
        op = kernel.operation
        for operand, result in (*in_place(op), *overwritable(kernel), *returned_by_branches(op)):
            value = source(operand)
            if (
                value in left
                and result not in overwritten
                and self._are_in_one_memory(value, result)
                and self._buffer_of[value].scale == self._scale(result)
            ):
                left.discard(value)
                overwritten[result] = self._buffer_of[value]
        copies = {copy.operand: self._copy_buffers[copy] for copy in kernel.copies}
        return overwritten | {result: copies[operand] for operand, result in in_place(op) if operand in copies}

    def _loop(self, loop: WhileOp, buffers: Sequence[Buffer]) -> None:
        for region in loop.regions:
            self._buffer_of.update(zip(region.block.args, buffers, strict=True))
        hoisted = self._hoist(loop)
        done = self._read_by_hoisted(loop)
        buffers = [Buffer(result) if index in done else buffers[index] for index, result in enumerate(loop.results)]
        for region in loop.regions:
            self._buffer_of.update(zip(region.block.args, buffers, strict=True))
        self._run(loop.cond.block, frozenset(), ())
        arguments = zip(loop.body.block.args, passed_on(loop), strict=True)
        self._run(loop.body.block, {argument for argument, is_passed_on in arguments if not is_passed_on}, buffers)
        for buffer in hoisted:
            buffer.read(self._now)

    def _hoist(self, loop: WhileOp) -> Sequence[Buffer]:
        """Compute the invariant operations of the body of a loop; return the buffers that the loop reads."""
        hoisted = hoisted_operations(loop)
        self._hoisted |= hoisted.operations - hoisted.repeated
        first_of = first_of_equal(op for op in loop.body.block.ops if op in hoisted.operations and self._runs(op))
        read = {first_of[op] for op in hoisted.read if op in first_of}
        kernels = self._compiled([op for op, first in first_of.items() if op is first], read)
        owned = {result for kernel in kernels if kernel.operation not in read for result in kernel.results}
        last_read = _last_reads(kernels)
        for index, kernel in enumerate(kernels):
            self._operations.append(kernel.operation)
            self._read(kernel)
            self._allocate(kernel, {each for each in kernel.reads if last_read[each] == index} & owned, {})
        return [self._buffer_of[result] for op in read for result in op.results]

    def _call(self, block: Block, operands: Sequence[SSAValue], buffers: Sequence[Buffer]) -> None:
        for argument, operand in zip(block.args, operands, strict=True):
            if (buffer := self._buffer_of.get(source(operand))) is None:  # of a constant
                buffer = self._temporary(argument)
                buffer.write(argument, self._now)
            self._buffer_of[argument] = buffer
        self._run(block, frozenset(), buffers)


def _passed_on_by(op: Operation) -> Set[SSAValue]:
    """Return the arguments of a loop that its terminator returns unchanged: they are needed as long as the loop is."""
    loop = op.parent_op()
    if not isinstance(loop, WhileOp) or op is not loop.body.block.last_op:
        return frozenset()
    arguments = zip(loop.body.block.args, passed_on(loop), strict=True)
    return {argument for argument, is_passed_on in arguments if is_passed_on}


def _readers(kernels: Sequence[Kernel], values: Iterable[SSAValue]) -> dict[SSAValue, list[int]]:
    """Return the indices of the kernels that read each of `values` or a view of it."""
    readers: dict[SSAValue, list[int]] = {value: [] for value in values}
    viewed = {value: value for value in readers}
    for index, kernel in enumerate(kernels if readers else ()):
        for value in kernel.reads:
            if value in viewed:
                readers[viewed[value]].append(index)
        viewed |= {result: viewed[value] for value, result in views(kernel) if value in viewed}
    return readers


def _last_reads(kernels: Sequence[Kernel]) -> dict[SSAValue, int]:
    """Return the index of the last kernel that reads each value or a view of it."""
    last_read = {value: index for index, kernel in enumerate(kernels) for value in kernel.reads}
    for kernel in reversed(kernels):
        for value, result in views(kernel):
            last_read[value] = max(last_read[value], last_read.get(result, -1))
    return last_read


def _scratch_of(op: Operation) -> Sequence[SSAValue]:
    """Return values of the sizes of the scratch buffers of `op`.

    XLA computes `select_and_scatter` as a `reduce_window` that carries an index along each dimension
    (`select_and_scatter_expander.cc`), except on TPUs.
    """
    if isinstance(op, SelectAndScatterOp):
        rank = len(shape_of(op.operand))
        return [op.operand] * rank + [op.source] * (rank + 1)
    return op.operands[:1] if sorts_all(op) else ()
