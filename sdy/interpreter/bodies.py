"""Vectorization of scalar regions.

Reductions, scatters, sorts and maps have a region that computes with scalars. A region of elementwise operations runs
once on entire arrays; any other region runs for each element.
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
"""A function from arrays of one shape to arrays of the same shape."""

_ELEMENTWISE = {*ELEMENTWISE, *BITS, *COMPARISON, stablehlo.ConstantOp, stablehlo.ReturnOp, FuncReturnOp}
_ELEMENTWISE.discard(stablehlo.BitcastConvertOp)


def body(interpreter: Interpreter, region: Region) -> Body:
    """Return a function that applies `region`, which maps scalars to scalars, to all elements of arrays."""
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


def tree_reduce(combine: Body, arrays: Sequence[Array]) -> list[Array]:
    """Reduce the nonempty last dimension of `arrays` with `combine`.

    Adjacent elements are combined in a binary tree: few steps, small rounding errors, and the order of the elements is
    preserved.
    """
    while (length := arrays[0].shape[-1]) > 1:
        even = length - length % 2
        pairs = combine(*(x[..., 0:even:2] for x in arrays), *(x[..., 1:even:2] for x in arrays))
        arrays = [np.concatenate([pair, x[..., even:]], axis=-1) for pair, x in zip(pairs, arrays, strict=True)]
    return [x[..., 0] for x in arrays]


def reduce_last(combine: Body, arrays: Sequence[Array], inits: Sequence[Array]) -> list[Array]:
    """Reduce the last dimension of `arrays` and the initial values with `combine`."""
    *kept, length = arrays[0].shape
    starts = [np.broadcast_to(init, kept) for init in inits]
    return combine(*starts, *tree_reduce(combine, arrays)) if length else starts
