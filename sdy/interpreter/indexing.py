"""Gather and scatter."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.bodies import body
from sdy.interpreter.shaping import iota
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, numbers, widened
from sdy.stablehlo.checks.slice_dimensions import GATHER, SCATTER, SliceDimensions


def _starts(dimensions: SliceDimensions, indices: Array, rank: int) -> list[Array]:
    """Return the start indices of the slices along each operand dimension, as arrays with the batch dimensions."""
    indices = widened(indices).astype(np.int64)
    if dimensions.vector == indices.ndim:
        indices = indices[..., np.newaxis]
    vectors = np.moveaxis(indices, dimensions.vector, -1)
    shape = vectors.shape[:-1]
    starts = [np.zeros(shape, np.int64) for _ in range(rank)]
    for place, dim in enumerate(dimensions.index_map.dims):
        starts[dim] = vectors[..., place]
    for dim, indices_dim in zip(dimensions.batching.dims, dimensions.indices_batching.dims, strict=True):
        starts[dim] = iota(shape, indices_dim - (indices_dim > dimensions.vector))
    return starts


def _places(dimensions: SliceDimensions, starts: Sequence[Array], shape: Sequence[int]) -> list[Array]:
    """Return the operand index of each element of the slices along each operand dimension, as arrays of `shape`."""
    window = dimensions.window.dims
    batch = [dim for dim in range(len(shape)) if dim not in window]
    kept = [
        dim for dim in range(len(starts)) if dim not in dimensions.dropped.dims and dim not in dimensions.batching.dims
    ]
    places: list[Array] = []
    for dim, start in enumerate(starts):
        sizes = [1] * len(shape)
        for batch_dim, size in zip(batch, start.shape, strict=True):
            sizes[batch_dim] = size
        place = start.reshape(sizes)
        if dim in kept:
            place = place + iota(shape, window[kept.index(dim)])
        places.append(np.broadcast_to(place, shape))
    return places


def gathered(dimensions: SliceDimensions, operand: Array, indices: Array, sizes: Sequence[int]) -> Array:
    """Gather the slices of these sizes; start indices are clamped so that slices are in bounds."""
    starts = [
        np.clip(start, 0, size - slice_size)
        for start, size, slice_size in zip(
            _starts(dimensions, indices, operand.ndim), operand.shape, sizes, strict=True
        )
    ]
    batch, slices = iter(starts[0].shape if starts else ()), iter(dimensions.slice_sizes(sizes))
    if not starts:
        batch = iter(dimensions.batch_sizes(indices.shape))
    rank = len(dimensions.batch_sizes(indices.shape)) + len(dimensions.window.dims)
    shape = [next(slices) if dim in dimensions.window.dims else next(batch) for dim in range(rank)]
    if not starts:
        return np.broadcast_to(operand, shape)
    return operand[tuple(_places(dimensions, starts, shape))]


def _gather(interpreter: Interpreter, op: stablehlo.GatherOp, args: PythonValues) -> PythonValues:
    dimensions = SliceDimensions.of(GATHER, op.dimension_numbers.data)
    return (gathered(dimensions, args[0], args[1], op.slice_sizes.get_values()),)


def _dynamic_gather(interpreter: Interpreter, op: stablehlo.DynamicGatherOp, args: PythonValues) -> PythonValues:
    operand, indices, sizes = args
    return (gathered(SliceDimensions.of(GATHER, op.dimension_numbers.data), operand, indices, numbers(sizes)),)


def _scatter(interpreter: Interpreter, op: stablehlo.ScatterOp, args: PythonValues) -> PythonValues:
    """Scatter; an update slice that is partly out of bounds is skipped, as in XLA.

    StableHLO's specification would skip only its out-of-bounds elements.
    """
    count = len(op.inputs)
    inputs, indices, updates = args[:count], args[count], args[count + 1 :]
    dimensions = SliceDimensions.of(SCATTER, op.scatter_dimension_numbers.data)
    shape = inputs[0].shape
    places = _places(dimensions, _starts(dimensions, indices, len(shape)), updates[0].shape)
    inside = np.ones(updates[0].shape, np.bool_)
    target = np.zeros(updates[0].shape, np.int64)
    for place, size in zip(places, shape, strict=True):
        inside &= ((place >= 0) & (place < size)).all(dimensions.window.dims, keepdims=True)
        target = target * size + place
    combine = body(interpreter, op.update_computation)
    results = [array.reshape(math.prod(shape)).copy() for array in inputs]
    values, targets = [update[inside] for update in updates], target[inside]
    # Updates of the same element are applied one after the other, those of different elements at once.
    for turn in _turns(targets):
        place = targets[turn]
        combined = combine(*(result[place] for result in results), *(value[turn] for value in values))
        for result, value in zip(results, combined, strict=True):
            result[place] = value
    return tuple(result.reshape(shape) for result in results)


def _turns(targets: Array) -> list[Array]:
    """Return the positions in `targets` of the first occurrences of all numbers, then of the second ones, and so on."""
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    is_first = np.concatenate([np.ones(min(1, len(ordered)), np.bool_), ordered[1:] != ordered[:-1]])
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(ordered)), 0))
    occurrence = np.arange(len(ordered)) - first
    by_turn = np.argsort(occurrence, kind="stable")
    ends = np.cumsum(np.bincount(occurrence))
    return np.split(order[by_turn], ends[:-1]) if len(ends) else []


INDEXING: dict[type[Operation], Implementation] = {
    stablehlo.DynamicGatherOp: _dynamic_gather,
    stablehlo.GatherOp: _gather,
    stablehlo.ScatterOp: _scatter,
}
