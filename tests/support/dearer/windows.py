"""Sliding windows over sharded rows, and repeated rows: pooling, convolutions, repeats, tiles, strides."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dearer.case import Case, Draft
from sdy.type_helpers import Function


def pooling(draft: Draft) -> Case:
    """Pool windows of rows by sum or maximum, or differentiate that."""
    size = draft.size(2, 17)
    draft.operand((size, 8))
    window, stride = draft.choices.of(range(1, min(size, 4) + 1)), draft.choices.of((1, 1, 2, 3))
    padding = draft.choices.of(("VALID", "SAME"))
    name, start, combine = draft.choices.of((("sum", 0.0, lax.add), ("max", -np.inf, lax.max)))

    def pooled(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, start, combine, (window, 1), (stride, 1), padding)

    return _case(draft, f"{name} of windows of {window}, stride {stride}, {padding}", pooled)


def convolution(draft: Draft) -> Case:
    """Convolve along rows, or differentiate by image or kernel. XLA's partitioner aborts on some uneven ones."""
    draft.operand((1, draft.choices.of((8, 16)), 8))
    window = draft.choices.of((2, 3, 4, 8))
    draft.operand((window, 8, 8))
    stride, dilation = draft.choices.of(((1, 1), (1, 1), (2, 1), (1, 2)))

    def convolved(image: jax.Array, kernel: jax.Array) -> jax.Array:
        dims = ("NWC", "WIO", "NWC")
        return lax.conv_general_dilated(image, kernel, (stride,), "SAME", (1,), (dilation,), dims)

    text = f"convolution of windows of {window}, stride {stride}, dilation {dilation}"
    return _case(draft, text, convolved, arguments=(0, 1))


def repeat(draft: Draft) -> Case:
    """Repeat each row, or differentiate that."""
    draft.operand((draft.size(), 8))
    count = draft.choices.of((2, 3, 4))
    return _case(draft, f"repeat {count}", lambda x: jnp.repeat(x, count, axis=0))


def tile(draft: Draft) -> Case:
    """Tile the rows, or differentiate that."""
    draft.operand((draft.size(1, 17), 8))
    count = draft.choices.of((2, 3, 4))
    return _case(draft, f"tile {count}", lambda x: jnp.tile(x, (count, 1)))


def strided_rows(draft: Draft) -> Case:
    """Take every second or third row, or reverse the rows; or differentiate that."""
    draft.operand((draft.size(2, 17), 8))
    start, stride = draft.choices.of(((0, 2), (1, 2), (0, 3), (1, 3), (None, -1)))
    return _case(draft, f"[{start}::{stride}]", lambda x: x[start::stride])


def _case(draft: Draft, name: str, function: Function[jax.Array], arguments: tuple[int, ...] = (0,)) -> Case:
    """Return the program of `function`, or of the gradient of its sum of squares by one of its arguments."""
    argument = draft.choices.of((None, *arguments))
    if argument is None:
        return draft.case(name, function)

    def loss(*operands: jax.Array) -> jax.Array:
        return (function(*operands) ** 2).sum()

    return draft.case(f"gradient by {argument} of {name}", jax.grad(loss, argument))


WINDOWS = [pooling, convolution, repeat, tile, strided_rows]
