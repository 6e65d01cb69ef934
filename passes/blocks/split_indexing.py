"""Gathers, scatters and dynamic slices in parts of a dimension that start indices select.

A part has the elements from `first` on. A gather of a part finds the right elements for the start indices within it,
and a comparison masks the others::

    gather(%table, %i)  ->  select(%i >= first, gather(%table[first:end], %i - first), <the parts before>)

A scatter ignores the updates outside of its part, so that the parts of a result need no mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Block, Region, SSAValue

from sdy.ir.editing import replace as replace_op
from sdy.ir.shapes import shape_of
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.shards.elements import bounds
from sdy.stablehlo import DynamicSliceOp, DynamicUpdateSliceOp, GatherOp, ScatterOp
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.attributes.operation_attributes import (
    GatherDimensionNumbers,
    GatherDimensionNumbersAttr,
    ScatterDimensionNumbers,
    ScatterDimensionNumbersAttr,
    i64_array,
)
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.elementwise import AndOp
from sdy.stablehlo.emitter import Emitter, before, with_shape


@dataclass(frozen=True)
class _Starts:
    """Start indices of type i64, whose last dimension is that of the index vectors."""

    value: SSAValue
    emit: Emitter

    @classmethod
    def of(cls, indices: SSAValue, vector_dim: int, emit: Emitter) -> "_Starts":
        sizes = shape_of(indices)
        if vector_dim == len(sizes):
            indices = emit.reshape(indices, (*sizes, 1))
        order = [dim for dim in range(len(shape_of(indices))) if dim != vector_dim]
        return cls(emit.convert(_bounded(emit, emit.transpose(indices, [*order, vector_dim])), i64), emit)

    @property
    def batch(self) -> tuple[int, ...]:
        """The sizes of all dimensions but the last."""
        return shape_of(self.value)[:-1]

    def component(self, number: int) -> SSAValue:
        """Return one component of all index vectors, of shape `batch`."""
        limits = [*self.batch, number + 1]
        part = self.emit.slice(self.value, [0] * len(self.batch) + [number], limits)
        return self.emit.reshape(part, self.batch)

    def minus(self, number: int, first: int) -> "_Starts":
        """Subtract `first` from one component."""
        count = shape_of(self.value)[-1]
        shift = self.emit.integers([-first * (place == number) for place in range(count)], [count])
        sizes = shape_of(self.value)
        return replace(self, value=self.emit.add(self.value, self.emit.broadcast(shift, [len(sizes) - 1], sizes)))

    def with_component(self, number: int, component: SSAValue) -> "_Starts":
        """Replace one component by `component`, which may have more batch dimensions than the others."""
        count = shape_of(self.value)[-1]
        sizes = (*shape_of(component), 1)
        parts = [
            self.emit.reshape(component if place == number else self.component(place), sizes) for place in range(count)
        ]
        return replace(self, value=self.emit.concatenate(parts, len(sizes) - 1))

    def compare(self, direction: ComparisonDirection, value: SSAValue, number: int) -> SSAValue:
        """Compare `value` of type i64 with a number."""
        return self.emit.compare(direction, value, self.constant(value, number))

    def constant(self, like: SSAValue, number: int) -> SSAValue:
        """Return a tensor of the shape of `like`, filled with a number."""
        return self.emit.filled(tensor_type(like), number)

    def widened(self, number: int, place: int, size: int, last: int) -> "_Starts":
        """Return the index vectors of the single elements of windows of `size` along one component.

        Args:
            number: The component.
            place: The position of the new batch dimension.
            size: The number of elements of a window.
            last: The last valid start; windows of other starts get the invalid index -1.
        """
        sizes = [*self.batch]
        sizes.insert(place, size)
        kept = [dim for dim in range(len(sizes)) if dim != place]
        spread = replace(
            self, value=self.emit.broadcast(self.value, [*kept, len(sizes)], [*sizes, shape_of(self.value)[-1]])
        )
        start = spread.component(number)
        inside = self.emit.binary(
            AndOp,
            self.compare(ComparisonDirection.GE, start, 0),
            self.compare(ComparisonDirection.LE, start, last),
        )
        offsets = self.emit.insert(IotaOp(0, with_shape(start, [size])))
        element = self.emit.add(start, self.emit.broadcast(offsets, [place], sizes))
        return spread.with_component(number, self.emit.select(inside, element, self.constant(element, -1)))


def split_gather(op: GatherOp, size: int, limit: int) -> None:
    """Gather from parts of the longest indexed dimension; a longer window becomes single elements first."""
    numbers = op.dimension_numbers.data
    operand, slices = shape_of(op.operand), op.slice_sizes.get_values()
    dims = [dim for dim in numbers.start_index_map if slices[dim] < operand[dim]]
    if not dims:
        return
    dim = max(dims, key=operand.__getitem__)
    emit = before(op)
    starts = _Starts.of(op.start_indices, numbers.index_vector_dim, emit)
    component = numbers.start_index_map.index(dim)
    starts = starts.with_component(component, _clamped(starts, component, operand[dim] - slices[dim]))
    numbers = replace(
        numbers,
        start_indices_batching_dims=_without(numbers.start_indices_batching_dims, numbers.index_vector_dim),
        index_vector_dim=len(starts.batch),
    )
    if dim not in numbers.collapsed_slice_dims:
        replace_op(op, [_gather_elements(op, starts, numbers, dim, component)])
        return
    batch = [place for place in range(len(shape_of(op.result))) if place not in numbers.offset_dims]
    index = starts.component(component)
    result: SSAValue | None = None
    for first, end in pairwise(_bounds(operand[dim], size, limit)):
        part = _slice(emit, op.operand, dim, first, end)
        found = _gather(op, part, starts.minus(component, first), numbers, slices)
        if result is not None:
            mask = starts.compare(ComparisonDirection.GE, index, first)
            found = emit.select(emit.broadcast(mask, batch, shape_of(found)), found, result)
        result = found
    assert result is not None
    replace_op(op, [result])


def _gather_elements(
    op: GatherOp, starts: _Starts, numbers: GatherDimensionNumbers, dim: int, component: int
) -> SSAValue:
    """Gather single elements along `dim`: the dimension of a window becomes a batch dimension."""
    slices = list(op.slice_sizes.get_values())
    windows = [each for each in range(len(slices)) if each not in _outside_window(numbers)]
    place = numbers.offset_dims[windows.index(dim)]
    before_it = sum(1 for each in range(place) if each not in numbers.offset_dims)
    last = shape_of(op.operand)[dim] - slices[dim]
    starts = starts.widened(component, before_it, slices[dim], last)
    slices[dim] = 1
    numbers = replace(
        numbers,
        offset_dims=tuple(each for each in numbers.offset_dims if each != place),
        collapsed_slice_dims=tuple(sorted((*numbers.collapsed_slice_dims, dim))),
        start_indices_batching_dims=_with(numbers.start_indices_batching_dims, before_it),
        index_vector_dim=numbers.index_vector_dim + 1,
    )
    return _gather(op, op.operand, starts, numbers, slices)


def _outside_window(numbers: GatherDimensionNumbers) -> set[int]:
    return {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}


def _gather(
    op: GatherOp, operand: SSAValue, starts: _Starts, numbers: GatherDimensionNumbers, slices: Sequence[int]
) -> SSAValue:
    return starts.emit.insert(
        GatherOp.create(
            operands=[operand, starts.value],
            properties={
                "dimension_numbers": GatherDimensionNumbersAttr(numbers),
                "slice_sizes": i64_array(*slices),
            },
            result_types=op.result_types,
        )
    )


def gather_slice(op: DynamicSliceOp, size: int, limit: int) -> None:
    """Turn a dynamic slice into a gather of one window."""
    emit = before(op)
    rank = len(shape_of(op.operand))
    numbers = GatherDimensionNumbers(offset_dims=tuple(range(rank)), start_index_map=tuple(range(rank)))
    gather = GatherOp.create(
        operands=[op.operand, _vector(emit, op.start_indices)],
        properties={"dimension_numbers": GatherDimensionNumbersAttr(numbers), "slice_sizes": op.slice_sizes},
        result_types=op.result_types,
    )
    replace_op(op, [emit.insert(gather)])


def scatter_slice(op: DynamicUpdateSliceOp, size: int, limit: int) -> None:
    """Turn a dynamic update slice into a scatter of one window, which starts where the window fits."""
    emit = before(op)
    rank = len(shape_of(op.operand))
    starts = _Starts.of(_vector(emit, op.start_indices), 0, emit)
    sizes = zip(shape_of(op.operand), shape_of(op.update), strict=True)
    lasts = emit.integers([whole - part for whole, part in sizes], [rank])
    vector = emit.clamp(starts.constant(starts.value, 0), starts.value, lasts)
    dims = tuple(range(rank))
    numbers = ScatterDimensionNumbers(update_window_dims=dims, scatter_dims_to_operand_dims=dims)
    scatter = ScatterOp.create(
        operands=[op.operand, vector, op.update],
        properties={"scatter_dimension_numbers": ScatterDimensionNumbersAttr(numbers)},
        result_types=op.result_types,
        regions=[_replacing_body(op.update)],
    )
    replace_op(op, [emit.insert(scatter)])


def _replacing_body(update: SSAValue) -> Region:
    """Return the body of a scatter that replaces elements."""
    type_ = TensorType(tensor_type(update).element_type, ())
    block = Block(arg_types=(type_, type_))
    block.add_op(ReturnOp(block.args[1]))
    return Region(block)


def split_scatter(op: ScatterOp, size: int, limit: int) -> None:
    """Scatter into parts of the longest indexed dimension, or in turn from parts of the updates if these take more."""
    numbers = op.scatter_dimension_numbers.data
    emit = before(op)
    starts = _Starts.of(op.scatter_indices, numbers.index_vector_dim, emit)
    numbers = replace(
        numbers,
        scatter_indices_batching_dims=_without(numbers.scatter_indices_batching_dims, numbers.index_vector_dim),
        index_vector_dim=len(starts.batch),
    )
    operand, update = shape_of(op.inputs[0]), shape_of(op.updates[0])
    outside = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    windows = dict(
        zip((dim for dim in range(len(operand)) if dim not in outside), numbers.update_window_dims, strict=True)
    )
    longer = [dim for dim, place in windows.items() if update[place] < operand[dim]]
    indexed = [dim for dim in numbers.scatter_dims_to_operand_dims if operand[dim] > 1 and dim not in windows]
    batch = [dim for dim in range(len(update)) if dim not in numbers.update_window_dims]
    rows = [
        dim for dim in range(len(batch)) if dim not in numbers.scatter_indices_batching_dims and update[batch[dim]] > 1
    ]
    longest_row = max(rows, key=lambda dim: update[batch[dim]], default=None)
    written, read = (sum(map(value_bytes, values)) for values in (op.results, (starts.value, *op.updates)))
    longest = max((*indexed, *longer), key=operand.__getitem__, default=None)
    if longest is not None and longest in longer:
        replace_op(op, _scatter_elements(op, starts, numbers, longest, windows[longest]))
    elif longest_row is not None and (longest is None or read > 2 * written):
        replace_op(op, _scatter_in_turn(op, starts, numbers, (longest_row, batch[longest_row]), size, limit))
    elif longest is not None:
        replace_op(op, _scatter_into_parts(op, starts, numbers, longest, size, limit))


def _scatter_elements(
    op: ScatterOp, starts: _Starts, numbers: ScatterDimensionNumbers, dim: int, place: int
) -> Sequence[SSAValue]:
    """Scatter single elements along `dim`: dimension `place` of a window becomes a batch dimension."""
    before_it = sum(1 for each in range(place) if each not in numbers.update_window_dims)
    size = shape_of(op.updates[0])[place]
    components = numbers.scatter_dims_to_operand_dims
    if dim not in components:
        components = (*components, dim)
        zero = starts.constant(starts.component(0), 0)
        zeros = starts.emit.reshape(zero, (*starts.batch, 1))
        starts = replace(starts, value=starts.emit.concatenate([starts.value, zeros], len(starts.batch)))
    component = components.index(dim)
    starts = starts.widened(component, before_it, size, shape_of(op.inputs[0])[dim] - size)
    numbers = replace(
        numbers,
        update_window_dims=tuple(each for each in numbers.update_window_dims if each != place),
        inserted_window_dims=tuple(sorted((*numbers.inserted_window_dims, dim))),
        scatter_indices_batching_dims=_with(numbers.scatter_indices_batching_dims, before_it),
        scatter_dims_to_operand_dims=components,
        index_vector_dim=numbers.index_vector_dim + 1,
    )
    return _scatter(op, op.inputs, starts, op.updates, numbers)


def _scatter_into_parts(
    op: ScatterOp, starts: _Starts, numbers: ScatterDimensionNumbers, dim: int, size: int, limit: int
) -> Sequence[SSAValue]:
    component = numbers.scatter_dims_to_operand_dims.index(dim)
    parts: list[Sequence[SSAValue]] = []
    for first, end in pairwise(_bounds(shape_of(op.inputs[0])[dim], size, limit)):
        inputs = [_slice(starts.emit, value, dim, first, end) for value in op.inputs]
        parts.append(_scatter(op, inputs, starts.minus(component, first), op.updates, numbers))
    return [starts.emit.concatenate(values, dim) for values in zip(*parts, strict=True)]


def _scatter_in_turn(
    op: ScatterOp,
    starts: _Starts,
    numbers: ScatterDimensionNumbers,
    dims: tuple[int, int],
    size: int,
    limit: int,
) -> Sequence[SSAValue]:
    """Scatter the updates in parts, one after the other; `dims` is their dimension in indices and updates."""
    row, place = dims
    results: Sequence[SSAValue] = op.inputs
    for first, end in pairwise(_bounds(shape_of(op.updates[0])[place], size, limit)):
        part = replace(starts, value=_slice(starts.emit, starts.value, row, first, end))
        updates = [_slice(starts.emit, value, place, first, end) for value in op.updates]
        results = _scatter(op, results, part, updates, numbers)
    return results


def _scatter(
    op: ScatterOp,
    inputs: Sequence[SSAValue],
    starts: _Starts,
    updates: Sequence[SSAValue],
    numbers: ScatterDimensionNumbers,
) -> Sequence[SSAValue]:
    scatter = ScatterOp.create(
        operands=[*inputs, starts.value, *updates],
        properties={**op.properties, "scatter_dimension_numbers": ScatterDimensionNumbersAttr(numbers)},
        result_types=[value.type for value in inputs],
        regions=[op.update_computation.clone()],
    )
    scatter.properties.pop("indices_are_sorted", None)
    starts.emit.insert(scatter)
    return scatter.results


def _clamped(starts: _Starts, number: int, last: int) -> SSAValue:
    value = starts.component(number)
    return starts.emit.clamp(starts.constant(value, 0), value, starts.constant(value, last))


def _vector(emit: Emitter, scalars: Sequence[SSAValue]) -> SSAValue:
    """Return start indices as a vector of i64; unsigned 64-bit ones beyond its range are the greatest."""
    return emit.concatenate([emit.reshape(emit.convert(_bounded(emit, value), i64), [1]) for value in scalars], 0)


def _bounded(emit: Emitter, value: SSAValue) -> SSAValue:
    """Limit an integer to those of i64."""
    low, high = bounds(tensor_type(value).element_type)
    if high < 2**63:
        return value
    type_ = tensor_type(value)
    return emit.clamp(emit.filled(type_, low), value, emit.filled(type_, 2**63 - 1))


def _slice(emit: Emitter, value: SSAValue, dim: int, first: int, end: int) -> SSAValue:
    starts, limits = [0] * len(shape_of(value)), [*shape_of(value)]
    starts[dim], limits[dim] = first, end
    return emit.slice(value, starts, limits)


def _bounds(length: int, size: int, limit: int) -> list[int]:
    """Return the bounds of equal parts of a dimension, whose blocks take about half of `limit` bytes instead of `size`.

    The last part is shorter if the parts do not divide the dimension.
    """
    parts = min(max(-(-2 * size // limit), 2), length)
    return [*range(0, length, -(-length // parts)), length]


def _without(dims: Sequence[int], vector_dim: int) -> tuple[int, ...]:
    """Return the dimensions of indices after their vectors have become the last dimension."""
    return tuple(dim - (dim > vector_dim) for dim in dims)


def _with(dims: Sequence[int], place: int) -> tuple[int, ...]:
    """Return the dimensions of indices with a new one at `place`."""
    return tuple(dim + (dim >= place) for dim in dims)
