"""Loops: trip counts, loop invariants, and the values that they carry."""

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.constants import constant_number
from sdy.ir.editing import erase, insert
from sdy.ir.walking import captured_values
from sdy.passes.common.properties import is_pure
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.mixed_elementwise import CompareOp


def loops_around(op: Operation) -> Iterator[WhileOp]:
    """Yield the loops around `op`, innermost first."""
    while (parent := op.parent_op()) is not None:
        if isinstance(parent, WhileOp):
            yield parent
        op = parent


def carried_unchanged(loop: WhileOp) -> dict[SSAValue, SSAValue]:
    """Return the region arguments that are equal to their initial values in every iteration, with these values."""
    terminator = loop.body.block.last_op
    assert terminator is not None
    carried = zip(loop.operands, loop.cond.block.args, loop.body.block.args, terminator.operands, strict=True)
    return {
        argument: begin for begin, *arguments, returned in carried if returned in arguments for argument in arguments
    }


class LoopInvariants:
    """The invariants of a loop: values that the same operations could compute before it.

    Args:
        loop: The loop.
        known: Values of its regions that count as invariants, such as its counters.
    """

    def __init__(self, loop: WhileOp, known: Iterable[SSAValue] = ()):
        self.initial_values = carried_unchanged(loop)
        """The region arguments that are carried unchanged, with their initial values."""
        self._loop = loop
        self._given = {*self.initial_values, *known}

    def producers(self, values: Sequence[SSAValue]) -> list[Operation] | None:
        """Return the operations in the loop that compute `values`, in topological order; None if one may vary."""
        ordered: dict[Operation, None] = {}
        pending = [*values]
        while pending:
            value = pending[-1]
            op = value.owner
            if op in ordered or value in self._given or not self._is_inside(value):
                pending.pop()
                continue
            if not isinstance(op, Operation) or not self._is_hoistable(op):
                return None
            missing = [
                operand
                for operand in op.operands
                if operand.owner not in ordered and operand not in self._given and self._is_inside(operand)
            ]
            pending += missing
            if not missing:
                pending.pop()
                ordered[op] = None
        return list(ordered)

    def operations(self) -> list[Operation]:
        """Return the operations of the body that compute nothing but invariants, in their order."""
        invariant = dict[Operation, None]()
        for op in self._loop.body.block.ops:
            if self._is_hoistable(op) and all(
                operand in self._given or operand.owner in invariant or not self._is_inside(operand)
                for operand in op.operands
            ):
                invariant[op] = None
        return [*invariant]

    def _is_inside(self, value: SSAValue) -> bool:
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        parent = block.parent_op() if block is not None else None
        return parent is self._loop or (parent is not None and self._loop in loops_around(parent))

    def _is_hoistable(self, op: Operation) -> bool:
        """Return whether an operation can be hoisted; operations in branches cannot, as they may never be executed."""
        is_unconditional = op.parent in (self._loop.cond.block, self._loop.body.block)
        return is_unconditional and not op.regions and is_pure(op) and not isinstance(op, OptimizationBarrierOp)


def carry_only(loop: WhileOp, indices: Sequence[int]) -> WhileOp:
    """Replace `loop` by one that carries the values `indices`; the arguments and results of the others have no uses."""
    body = loop.body.block
    assert body.last_op is not None
    body.last_op.operands = [body.last_op.operands[index] for index in indices]
    for region in loop.regions:
        for argument in [arg for arg in region.block.args if arg.index not in indices][::-1]:
            region.block.erase_arg(argument)
    results = [loop.results[index] for index in indices]
    return _with_operands(loop, [loop.operands[index] for index in indices], results)


def carry_too(loop: WhileOp, begins: Sequence[SSAValue], nexts: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Replace `loop` by one that carries further values, given their initial and next values.

    Returns:
        The arguments of the body that are these values.
    """
    body, count = loop.body.block, len(loop.operands)
    assert body.last_op is not None
    body.last_op.operands = [*body.last_op.operands, *nexts]
    for block in (loop.cond.block, body):
        for value in begins:
            block.insert_arg(value.type, len(block.args))
    _with_operands(loop, [*loop.operands, *begins], loop.results)
    return body.args[count:]


def _with_operands(loop: WhileOp, operands: Sequence[SSAValue], results: Sequence[SSAValue]) -> WhileOp:
    """Replace `loop` by one with other operands, and its first `results` by those of the new one."""
    other = WhileOp.create(
        operands=operands,
        result_types=[value.type for value in operands],
        attributes=loop.attributes,
        regions=[loop.detach_region(region) for region in list(loop.regions)],
    )
    other.location = loop.location
    insert(other, InsertPoint.before(loop))
    for old, new in zip(results, other.results, strict=False):
        old.replace_all_uses_with(new)
    erase(loop)
    return other


def loop_trips(op: WhileOp) -> int | None:
    """Return the trip count of a loop that counts between constants in constant steps; None for any other loop."""
    test = op.cond.block.last_op
    condition = test.operands[0].owner if test is not None else None
    if not isinstance(condition, CompareOp) or condition.comparison_direction.data is not ComparisonDirection.LT:
        return None
    counter, end = condition.operands[0], _constant(condition.operands[1], op)
    if not isinstance(counter, BlockArgument) or counter.owner is not op.cond.block:
        return None
    begin, step = _constant(op.operands[counter.index], op), _step(op, counter.index)
    if begin is None or end is None or not step:
        return None
    return max(0, -(-(end - begin) // step))


def loop_counters(op: WhileOp) -> set[SSAValue]:
    """Return the arguments of the body of a loop that count from constants in constant steps."""
    return {
        argument
        for argument, begin in zip(op.body.block.args, op.operands, strict=True)
        if _constant(begin, op) is not None and _step(op, argument.index) is not None
    }


def _step(op: WhileOp, index: int) -> int | None:
    """Return the increment of the carried value `index` per iteration."""
    body = op.body.block
    terminator = body.last_op
    following = terminator.operands[index].owner if terminator is not None else None
    if not isinstance(following, AddOp) or body.args[index] not in following.operands:
        return None
    left, right = following.operands
    return _constant(right if left is body.args[index] else left, op)


def _constant(value: SSAValue, loop: WhileOp) -> int | None:
    """Return the integer that a value is known to be, looking through arguments that the loop carries unchanged."""
    if isinstance(value, BlockArgument) and value.owner in (loop.cond.block, loop.body.block):
        terminator = loop.body.block.last_op
        if terminator is None or terminator.operands[value.index] is not loop.body.block.args[value.index]:
            return None
        return _constant(loop.operands[value.index], loop)
    number = constant_number(value)
    return number if isinstance(number, int) else None


def carry_less(loop: WhileOp) -> None:
    """Capture values that `loop` carries unchanged, and drop those that neither a result nor the condition needs."""
    for argument, begin in carried_unchanged(loop).items():
        assert isinstance(argument, BlockArgument)
        argument.replace_all_uses_with(begin)
        loop.results[argument.index].replace_all_uses_with(begin)
    body, test = loop.body.block, loop.cond.block.last_op
    assert body.last_op is not None
    assert test is not None
    needed = {result.index for result in loop.results if result.first_use is not None}
    needed |= arguments_behind(test.operands, loop.cond.block)
    while more := arguments_behind([body.last_op.operands[index] for index in needed], body) - needed:
        needed |= more
    if len(needed) < len(loop.results):
        for index in {*range(len(loop.results))} - needed:
            body.args[index].replace_all_uses_with(loop.operands[index])  # in operations that compute unused values
        carry_only(loop, sorted(needed))


def arguments_behind(values: Iterable[SSAValue], block: Block) -> set[int]:
    """Return the numbers of the arguments of `block` that `values`, which it computes, depend on."""
    behind = values_behind(values, block)
    return {value.index for value in behind if isinstance(value, BlockArgument) and value.owner is block}


def values_behind(values: Iterable[SSAValue], block: Block) -> set[SSAValue]:
    """Return `values`, and the values that they depend on, back to those that `block` does not compute."""
    seen: set[SSAValue] = set()
    pending = [*values]
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            if isinstance(value.owner, Operation) and value.owner.parent is block:
                pending += [*value.owner.operands, *captured_values(value.owner)]
    return seen
