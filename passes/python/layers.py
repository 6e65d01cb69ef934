"""Detection of repeated layers of a program, to be printed as calls of one function."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from sdy.ir.walking import captured_values
from sdy.passes.common.properties import is_pure
from sdy.passes.common.repeats import Repeat, repeats
from sdy.passes.python.device_axes import DeviceAxes
from sdy.passes.python.device_index import entry_of_device, is_part_of_entry
from sdy.passes.python.literals import known_elements

_LEAST = 8
"""The fewest operations of a layer that becomes a function."""


@dataclass(frozen=True)
class Layers:
    """Equal consecutive layers: the operations of each, and the values that each takes and returns, in one order.

    The values that the layer number `example` takes are different ones: its operations show which of them each uses.
    """

    operations: Sequence[Sequence[Operation]]
    parameters: Sequence[Sequence[SSAValue]]
    results: Sequence[Sequence[SSAValue]]
    example: int


def layers_of(block: Block, axes: DeviceAxes) -> list[Layers]:
    """Return the repeated layers of `block`, in order."""
    ops = [op for op in block.ops if op is not block.last_op and not _is_left_out(op, axes)]
    numbers: dict[object, int] = {}
    sequence = [numbers.setdefault(_signature(op), len(numbers)) for op in ops]
    found = (_layers(ops, repeat, axes) for repeat in repeats(sequence, _LEAST))
    return [layers for layers in found if layers is not None]


def _is_left_out(op: Operation, axes: DeviceAxes) -> bool:
    """Return whether `op` is not written, so that it belongs to no layer."""
    if len(op.results) == 1 and (is_part_of_entry(op, axes) or _known(op.results[0], axes) is not None):
        return True
    return is_pure(op) and not any(result.uses for result in op.results)


def _signature(op: Operation) -> object:
    """Return what is equal for operations that differ only in their operands and channels."""
    if captured_values(op):
        return op
    properties = frozenset((name, value) for name, value in op.properties.items() if name != "channel_handle")
    regions = tuple(_region_signature(region) for region in op.regions)
    return type(op), tuple(op.operand_types), tuple(op.result_types), properties, regions


def _region_signature(region: Region) -> object:
    values: dict[SSAValue, int] = {}
    entries: list[object] = []
    for block in region.blocks:
        for argument in block.args:
            values[argument] = len(values)
        for op in block.ops:
            entries.append((_signature(op), tuple(values.get(operand, operand) for operand in op.operands)))
            for result in op.results:
                values[result] = len(values)
    return tuple(entries)


def _layers(ops: Sequence[Operation], repeat: Repeat, axes: DeviceAxes) -> Layers | None:
    """Return the layers of a repetition; None if they do not have the same data flow and constants, or no example.

    An operation may be printed otherwise for a known constant: those of the first layer have to be those of all. Calls
    with more arguments and results than operations, such as updates of parameters, would be longer than these.
    """
    starts = range(repeat.start, repeat.end, repeat.period)
    layers = [ops[start : start + repeat.period] for start in starts]
    inside = [{op: number for number, op in enumerate(layer)} for layer in layers]
    if len({tuple(_data_flow(layer, numbers)) for layer, numbers in zip(layers, inside, strict=True)}) > 1:
        return None
    external = [_external(layer, numbers) for layer, numbers in zip(layers, inside, strict=True)]
    taken: list[Sequence[SSAValue]] = []
    for values in dict.fromkeys(zip(*external, strict=True)):
        known = {_known(value, axes) for value in values}
        if known == {None}:
            taken.append(values)
        elif len(known) > 1:
            return None
    returned = [
        values
        for values in zip(*([result for op in layer for result in op.results] for layer in layers), strict=True)
        if any(_is_used_outside(value, numbers) for value, numbers in zip(values, inside, strict=True))
    ]
    if len(taken) + len(returned) > repeat.period:
        return None
    parameters: list[Sequence[SSAValue]] = [*zip(*taken, strict=True)] or [()] * len(layers)
    examples = [number for number, values in enumerate(parameters) if len({*values}) == len(values)]
    return Layers(layers, parameters, [*zip(*returned, strict=True)], examples[0]) if examples else None


def _data_flow(layer: Sequence[Operation], inside: dict[Operation, int]) -> Iterator[object]:
    """Yield, for each operand, the operation of the layer that computes it, and which of its results it is."""
    for op in layer:
        for operand in op.operands:
            yield (
                (inside[operand.op], operand.index) if isinstance(operand, OpResult) and operand.op in inside else None
            )


def _external(layer: Sequence[Operation], inside: dict[Operation, int]) -> list[SSAValue]:
    """Return the operands that the layer does not compute."""
    return [operand for op in layer for operand in op.operands if operand.owner not in inside]


def _known(value: SSAValue, axes: DeviceAxes) -> object:
    """Return what is known of `value` when the program is printed: its elements, or its expression; None otherwise."""
    array = known_elements(value)
    return entry_of_device(value, axes) if array is None else (array.tobytes(), array.shape)


def _is_used_outside(value: SSAValue, inside: dict[Operation, int]) -> bool:
    return any(_outermost(use.operation, value) not in inside for use in value.uses)


def _outermost(op: Operation, value: SSAValue) -> Operation:
    """Return the operation around `op`, or `op` itself, in the block where `value` is defined."""
    block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    while op.parent is not block and (parent := op.parent_op()) is not None:
        op = parent
    return op
