"""Bodies that compute with scalars, for many elements at once.

Reductions, scatters, sorts and maps have a body for one element, or for two. Where it is made of elementwise operations
it is run once on whole arrays, as NumPy does not mind; any other body is run for each element.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.interpreter import Interpreter
from xdsl.ir import Region

from sdy import stablehlo
from sdy.interpreter.bits import BITS
from sdy.interpreter.comparison import COMPARISON
from sdy.interpreter.elementwise import ELEMENTWISE
from sdy.interpreter.values import Array, dtype_of

Body: TypeAlias = Callable[..., list[Array]]
"""A function of arrays of one shape to arrays of that shape."""

_ELEMENTWISE = {*ELEMENTWISE, *BITS, *COMPARISON, stablehlo.ConstantOp, stablehlo.ReturnOp, FuncReturnOp}
_ELEMENTWISE.discard(stablehlo.BitcastConvertOp)


def body(interpreter: Interpreter, region: Region) -> Body:
    """What `region`, which takes scalars and yields scalars, computes for each place of arrays."""
    if all(type(op) in _ELEMENTWISE for op in region.block.ops):

        def run_at_once(*arrays: Array) -> list[Array]:
            results = interpreter.run_ssacfg_region(region, arrays)
            return [np.broadcast_to(result, arrays[0].shape) for result in results]

        return run_at_once

    returned = region.block.last_op
    assert returned is not None
    dtypes = [dtype_of(value) for value in returned.operands]

    def run_each(*arrays: Array) -> list[Array]:
        results = [np.empty(arrays[0].shape, dtype) for dtype in dtypes]
        for place in np.ndindex(arrays[0].shape):
            values = interpreter.run_ssacfg_region(region, tuple(np.asarray(array[place]) for array in arrays))
            for result, value in zip(results, values, strict=True):
                result[place] = value
        return results

    return run_each


def folded(combine: Body, arrays: Sequence[Array]) -> list[Array]:
    """The arrays with their last dimension, which is not empty, combined into one element by `combine`.

    Neighbours are combined, then the results of neighbours, and so on, so that few steps are enough, rounding errors
    stay small, and the order of the elements is kept.
    """
    while (length := arrays[0].shape[-1]) > 1:
        even = length - length % 2
        pairs = combine(*(x[..., 0:even:2] for x in arrays), *(x[..., 1:even:2] for x in arrays))
        arrays = [np.concatenate([pair, x[..., even:]], axis=-1) for pair, x in zip(pairs, arrays, strict=True)]
    return [x[..., 0] for x in arrays]


def reduced(combine: Body, arrays: Sequence[Array], inits: Sequence[Array]) -> list[Array]:
    """The arrays with their last dimension combined, and with the init values, by `combine`."""
    *kept, length = arrays[0].shape
    starts = [np.broadcast_to(init, kept) for init in inits]
    return combine(*starts, *folded(combine, arrays)) if length else starts
