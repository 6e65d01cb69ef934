"""Unrolling of loops with a known number of iterations, so that the operations of each iteration have blocks.

The loop of a `jax.lax.scan` reads slices of its inputs and writes slices of its outputs at the loop counter. The
counter of an unrolled iteration is constant, which makes the slices static: views of the inputs, and parts of a
concatenation that is the output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.dialect.constants import constant_elements, constant_number
from sdy.ir.editing import replace
from sdy.ir.shapes import shape_of
from sdy.passes.common.known_scalars import folded, is_foldable
from sdy.passes.common.loops import loop_trips
from sdy.stablehlo import ConstantOp, DynamicSliceOp, DynamicUpdateSliceOp, WhileOp
from sdy.stablehlo.emitter import Emitter, before

_MOST_OPERATIONS = 50_000
"""The largest number of operations that a loop becomes."""


@dataclass
class _Stack:
    """An output that each iteration writes a slice of.

    Attributes:
        update: The operation that writes a slice.
        dim: The dimension that the slices partition.
        slices: The slices written so far, by their starts.
    """

    update: DynamicUpdateSliceOp
    dim: int
    slices: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])


def unroll(op: WhileOp, size: int, limit: int) -> None:
    """Replace a loop by its iterations, if their number is known and not too large."""
    trips = loop_trips(op)
    body = op.body.block
    if trips is None or trips * len(body.ops) > _MOST_OPERATIONS:
        return
    emit = before(op)
    *inner, end = body.ops
    stacks = _stacks(op, end)
    updates = {stack.update for stack in stacks.values()}
    carried: list[SSAValue] = [*op.operands]
    for _ in range(trips):
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, carried, strict=True))
        for each in inner:
            if each not in updates:
                _add(each, values, emit)
        for stack in stacks.values():
            start = constant_number(values[stack.update.start_indices[stack.dim]])
            assert isinstance(start, int)
            last = shape_of(stack.update.operand)[stack.dim] - shape_of(stack.update.update)[stack.dim]
            update = stack.update.update
            stack.slices[min(max(start, 0), last)] = values.get(update, update)
        carried = [
            carried[index] if index in stacks else values.get(value, value) for index, value in enumerate(end.operands)
        ]
    for index, stack in stacks.items():
        carried[index] = _stacked(carried[index], stack, emit)
    replace(op, carried)


def _stacks(op: WhileOp, end: Operation) -> dict[int, _Stack]:
    """Return the carried values that a body only updates, at the loop counter along one dimension."""
    stacks: dict[int, _Stack] = {}
    for argument, value in zip(op.body.block.args, end.operands, strict=True):
        update = value.owner
        if isinstance(update, DynamicUpdateSliceOp) and update.operand is argument and update.parent is op.body.block:
            sizes = zip(shape_of(update.operand), shape_of(update.update), strict=True)
            dims = [dim for dim, (size, part) in enumerate(sizes) if size != part]
            uses = [*argument.uses, *value.uses]
            is_row = len(dims) == 1 and shape_of(update.update)[dims[0]] == 1
            if len(uses) == 2 and is_row and _is_counted(update.start_indices[dims[0]], op):
                stacks[argument.index] = _Stack(update, dims[0])
    return stacks


def _is_counted(value: SSAValue, op: WhileOp) -> bool:
    """Return whether the counter of a loop and constants determine a scalar."""
    if isinstance(value, BlockArgument):
        test = op.cond.block.last_op
        assert test is not None
        compared = test.operands[0].owner
        return (
            isinstance(compared, Operation)
            and value.owner is op.body.block
            and (isinstance(counter := compared.operands[0], BlockArgument) and counter.index == value.index)
        )
    owner = value.owner
    assert isinstance(owner, Operation)
    return constant_number(value) is not None or (
        is_foldable(owner) and all(_is_counted(operand, op) for operand in owner.operands)
    )


def _add(op: Operation, values: dict[SSAValue, SSAValue], emit: Emitter) -> None:
    """Copy an operation of the body; fold scalars of constants, and make slices at constant starts static."""
    operands = [values.get(operand, operand) for operand in op.operands]
    constants = [constant_elements(operand) for operand in operands]
    if isinstance(op, ConstantOp):
        values[op.output] = emit.insert(op.clone())
    elif is_foldable(op) and operands and all(isinstance(each, DenseIntOrFPElementsAttr) for each in constants):
        values[op.results[0]] = emit.constant(folded(op, [each for each in constants if each is not None]))
    elif isinstance(op, DynamicSliceOp) and (starts := _integers(operands[1:])) is not None:
        sizes = op.slice_sizes.get_values()
        whole = shape_of(op.operand)
        firsts = [min(max(start, 0), all_ - part) for start, all_, part in zip(starts, whole, sizes, strict=True)]
        ends = [first + part for first, part in zip(firsts, sizes, strict=True)]
        values[op.result] = emit.slice(operands[0], firsts, ends)
    else:
        copy = op.clone(values)
        emit.insert(copy)
        copy.location = op.location
        values.update(zip(op.results, copy.results, strict=True))


def _integers(values: Sequence[SSAValue]) -> list[int] | None:
    numbers = [constant_number(value) for value in values]
    integers = [number for number in numbers if isinstance(number, int)]
    return integers if len(integers) == len(numbers) else None


def _stacked(begin: SSAValue, stack: _Stack, emit: Emitter) -> SSAValue:
    """Concatenate the slices of an output, and the elements of its initial value that no slice overwrites."""
    parts: list[SSAValue] = []
    sizes, position = shape_of(begin), 0

    def keep(end: int) -> None:
        if position < end:
            firsts, ends = [0] * len(sizes), [*sizes]
            firsts[stack.dim], ends[stack.dim] = position, end
            parts.append(emit.slice(begin, firsts, ends))

    for start, part in sorted(stack.slices.items()):
        keep(start)
        parts.append(part)
        position = start + shape_of(part)[stack.dim]
    keep(sizes[stack.dim])
    return emit.concatenate(parts, stack.dim)
