"""Sort with an arbitrary comparator, by a vectorized merge sort, and top-k."""

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.bodies import Body, body
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, of_type, widened
from sdy.stablehlo.chlo.creation import TopKOp


def _sort(interpreter: Interpreter, op: stablehlo.SortOp, args: PythonValues) -> PythonValues:
    dim = op.dimension.value.data
    arrays = [np.moveaxis(array, dim, -1) for array in args] if args[0].ndim else list(args)
    if arrays[0].ndim and arrays[0].shape[-1] > 1:
        order = _sorted(arrays, body(interpreter, op.comparator))
        arrays = [np.moveaxis(np.take_along_axis(array, order, -1), -1, dim) for array in arrays]
        return tuple(arrays)
    return args


def _sorted(arrays: list[Array], before: Body) -> Array:
    """Return the permutation that sorts `arrays` stably along the last dimension.

    Sorted runs of one element, then of two, four and so on are merged in pairs. The position of an element in the
    merged run is its position in its own run plus the number of elements of the other run that come before it, which a
    binary search finds for all elements at once.
    """
    shape, length = arrays[0].shape, arrays[0].shape[-1]
    places: Array = np.broadcast_to(np.arange(int(length)), shape)
    order = places.copy()
    width = 1
    while width < length:
        pair = places // (2 * width) * (2 * width)
        is_left = places - pair < width
        other = np.where(is_left, pair + width, pair)
        low, high = np.minimum(other, length), np.minimum(other + width, length)
        start = low
        own = [np.take_along_axis(array, order, -1) for array in arrays]
        for _ in range(width.bit_length()):
            middle = np.minimum((low + high) // 2, length - 1)
            probed = [np.take_along_axis(array, middle, -1) for array in own]
            # Equal elements of the left run come first.
            comes_first = np.where(is_left, _before(before, probed, own), ~_before(before, own, probed))
            searching = low < high
            low, high = (
                np.where(searching & comes_first, middle + 1, low),
                np.where(searching & ~comes_first, middle, high),
            )
        in_run = places - np.where(is_left, pair, pair + width)
        target = pair + in_run + (low - start)
        merged = np.empty_like(order)
        np.put_along_axis(merged, target, order, -1)
        order, width = merged, 2 * width
    return order


def _before(before: Body, lhs: list[Array], rhs: list[Array]) -> Array:
    (result,) = before(*(array for pair in zip(lhs, rhs, strict=True) for array in pair))
    return result


def _top_k(interpreter: Interpreter, op: TopKOp, args: PythonValues) -> PythonValues:
    """Return the k largest elements in descending order; NaN is the largest, and ties keep their order."""
    operand: Array = args[0]
    rising = np.argsort(np.flip(widened(operand), -1), axis=-1, kind="stable")
    order = operand.shape[-1] - 1 - np.flip(rising, -1)[..., : op.k.value.data]
    return np.take_along_axis(operand, order, -1), of_type(order, op.indices)


SORTING: dict[type[Operation], Implementation] = {stablehlo.SortOp: _sort, TopKOp: _top_k}
