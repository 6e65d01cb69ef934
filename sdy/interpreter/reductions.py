"""Reductions along dimensions or in windows, and maps."""

import math
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.bodies import body, reduce_last
from sdy.interpreter.shaping import padded
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, moved_to_end
from sdy.stablehlo.checks.windows import WindowDimension, padding_pairs, window_dimensions


def _reduce(interpreter: Interpreter, op: stablehlo.ReduceOp, args: PythonValues) -> PythonValues:
    count, dims = len(op.inputs), op.dimensions.get_values()
    arrays = [moved_to_end(array, dims) for array in args[:count]]
    kept = arrays[0].shape[: arrays[0].ndim - len(dims)]
    size = math.prod(arrays[0].shape[len(kept) :])
    return tuple(
        reduce_last(body(interpreter, op.body), [array.reshape(*kept, size) for array in arrays], args[count:])
    )


Window = Sequence[WindowDimension]


def steps(window: Window) -> Iterator[tuple[int, ...]]:
    """Yield the offset of each element of a window from its first element, along each dimension."""
    sizes = [cast(int, dim.size) for dim in window]
    for place in np.ndindex(*sizes):
        yield tuple(step * dim.window_dilation for step, dim in zip(place, window, strict=True))


def at_step(array: Array, step: Sequence[int], places: Sequence[int], window: Window) -> Array:
    """Return the element at offset `step` in each window of a padded array."""
    return array[
        tuple(
            slice(start, start + (count - 1) * dim.stride + 1, dim.stride) if count else slice(0)
            for start, count, dim in zip(step, places, window, strict=True)
        )
    ]


def pad_for(array: Array, value: Array, window: Window) -> Array:
    """Pad `array` for a window: edge padding, and interior padding for the base dilation."""
    low, high = zip(*(dim.padding for dim in window), strict=True) if window else ((), ())
    return padded(array, value, low, high, [dim.base_dilation - 1 for dim in window])


def places_in(shape: Sequence[int], window: Window) -> list[int]:
    """Return the number of windows in an array of this shape along each dimension."""
    return [cast(int, dim.places(size)) for size, dim in zip(shape, window, strict=True)]


def _reduce_window(interpreter: Interpreter, op: stablehlo.ReduceWindowOp, args: PythonValues) -> PythonValues:
    count = len(op.inputs)
    window = window_dimensions(
        op.window_dimensions.get_values(),
        op.window_strides,
        padding_pairs(op.padding),
        op.base_dilations,
        op.window_dilations,
    )
    inits = args[count:]
    places = places_in(args[0].shape, window)
    arrays = [pad_for(array, init, window) for array, init in zip(args[:count], inits, strict=True)]
    combine = body(interpreter, op.body)
    results = [np.broadcast_to(init, places) for init in inits]
    for step in steps(window):
        results = combine(*results, *(at_step(array, step, places, window) for array in arrays))
    return tuple(results)


def _select_and_scatter(interpreter: Interpreter, op: stablehlo.SelectAndScatterOp, args: PythonValues) -> PythonValues:
    """Select an element in each window, and combine the source element of the window with it."""
    operand, source, init = args
    sizes = [1] * operand.ndim if op.window_dimensions is None else op.window_dimensions.get_values()
    window = window_dimensions(sizes, op.window_strides, padding_pairs(op.padding))
    select, scatter = body(interpreter, op.select), body(interpreter, op.scatter)
    places = source.shape
    inside = pad_for(np.ones(operand.shape, np.bool_), np.array(False), window)
    array = pad_for(operand, np.zeros((), operand.dtype), window)
    selected = np.zeros(places, operand.dtype)
    selected_step = np.full(places, -1)
    for number, step in enumerate(steps(window)):
        candidate = at_step(array, step, places, window)
        better = (selected_step < 0) | ~select(selected, candidate)[0]
        better &= at_step(inside, step, places, window)
        selected, selected_step = np.where(better, candidate, selected), np.where(better, number, selected_step)
    # The padding is removed at the end.
    result = np.full(array.shape, init)
    for number, step in enumerate(steps(window)):
        target = at_step(result, step, places, window)
        (combined,) = scatter(target, source)
        np.copyto(target, combined, where=selected_step == number)
    removed = [(-low, -high) for low, high in (dim.padding for dim in window)]
    low, high = zip(*removed, strict=True) if removed else ((), ())
    return (padded(result, init, low, high, [0] * operand.ndim),)


def _map(interpreter: Interpreter, op: stablehlo.MapOp, args: PythonValues) -> PythonValues:
    return tuple(body(interpreter, op.computation)(*args))


REDUCTIONS: dict[type[Operation], Implementation] = {
    stablehlo.MapOp: _map,
    stablehlo.ReduceOp: _reduce,
    stablehlo.ReduceWindowOp: _reduce_window,
    stablehlo.SelectAndScatterOp: _select_and_scatter,
}
