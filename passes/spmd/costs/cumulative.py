"""Cumulative sums, and other cumulative reductions, as XLA computes them: from those of parts.

It reduces parts of 16 elements, then the last elements of the parts, and adds both (`reduce_window_rewriter.cc`). The
parts have a shape of their own.
"""

from xdsl.ir import Operation

from sdy.ir.shapes import shape_of
from sdy.passes.spmd.costs.kernels import can_be_fused, uses_of
from sdy.stablehlo.windows import ReduceWindowOp


def is_cumulative(op: Operation) -> bool:
    """Return whether `op` reduces all elements up to each one."""
    if not isinstance(op, ReduceWindowOp) or shape_of(op.results[0]) != shape_of(op.operands[0]):
        return False
    windows = zip(op.window_dimensions.get_values(), shape_of(op.results[0]), strict=True)
    return any(window == size > 1 for window, size in windows)


def adds_parts(op: Operation) -> bool:
    """Return whether a kernel of its own adds the parts of `op`: not if the kernels of all its users do."""
    users = [use.operation for result in op.results for use in uses_of(result)]
    return is_cumulative(op) and not (users and all(map(can_be_fused, users)))
