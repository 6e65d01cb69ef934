"""Reductions as XLA for CPUs computes them: by a library, YNNPACK, or in steps.

The library computes sums of f32 and f64, and maxima and minima of floats, from 4,096 elements on. An operation is
computed together with the reduction if nothing else uses its result, and if the library has it for large floats. Other
operands are read from memory: the library cannot compute them inside of its kernel, as XLA's own kernels could.

Other reductions over more than 32 elements reduce windows of 32 first (`tree_reduction_rewriter.cc`), and read their
operands from memory as well.

Found by compiling each operation before a reduction with jax 0.10, 0.11 and 0.12: `ynn_fusion` and `reduce-window` in
the optimized HLO.
"""

from math import prod

from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type
from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import AddOp, MaxOp, MinOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduction import ReduceOp

_LARGE = 4096
"""The least elements of a value that the library computes or reduces."""

_WINDOW = 32
"""The size of the windows that are reduced first."""

_COMBINES_ANY_FLOAT = MaxOp | MinOp
"""Operations that combine elements of any type of floats in the library; it adds f32 and f64 only."""

_COMPUTED = {"chlo.erf", "chlo.square", "chlo.tan"} | {
    f"stablehlo.{name}"
    for name in """
        abs add ceil convert cosine divide exponential exponential_minus_one floor iota log log_plus_one logistic
        maximum minimum multiply negate power reshape round_nearest_even rsqrt sign sine sqrt subtract tan tanh
        transpose
    """.split()  # noqa: SIM905
}
"""Operations that the library has; it has some broadcasts and pads in addition."""


def is_library_reduction(op: Operation) -> bool:
    """Return whether XLA for CPUs gives `op` to the library."""
    if not isinstance(op, ReduceOp) or len(op.inputs) != 1 or not _is_large(op.inputs[0]):
        return False
    combine, *end = op.body.block.ops
    element_type = tensor_type(op.inputs[0]).element_type
    is_known = isinstance(combine, _COMBINES_ANY_FLOAT) or (
        isinstance(combine, AddOp) and isinstance(element_type, Float32Type | Float64Type)
    )
    return is_known and len(end) == 1


def is_in_steps(op: Operation) -> bool:
    """Return whether XLA for CPUs reduces windows first, if the library does not compute `op`."""
    if not isinstance(op, ReduceOp) or len(op.inputs) != 1:
        return False
    return any(shape_of(op.inputs[0])[dim] > _WINDOW for dim in op.dimensions.get_values())


def is_computed_by_library(op: Operation) -> bool:
    """Return whether the library can compute `op` before a reduction that reads its result alone."""
    match op:
        case BroadcastInDimOp():
            dims = op.broadcast_dimensions.get_values()
            is_known = dims == tuple(sorted(dims))
        case PadOp():
            is_known = not any(op.interior_padding.get_values())
        case _:
            is_known = op.name in _COMPUTED
    return is_known and _is_large(op.results[0])


def _is_large(value: SSAValue) -> bool:
    return isinstance(tensor_type(value).element_type, AnyFloat) and prod(shape_of(value)) >= _LARGE
