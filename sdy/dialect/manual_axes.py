"""Manual computations around an operation, and their manual axes.

The body of `sdy.manual_computation ... manual_axes={"x"}` is a per-device program along "x": its values are shards
along "x", and no sharding in it may use "x", or a sub-axis of it, again.
"""

from collections.abc import Iterator

from xdsl.ir import Operation

from sdy.dialect.ops import ManualComputationOp


def manual_computations_around(op: Operation) -> Iterator[ManualComputationOp]:
    """Yield the manual computations whose bodies contain `op`, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ManualComputationOp):
            yield parent
        parent = parent.parent_op()


def manual_axes_around(op: Operation) -> dict[str, ManualComputationOp]:
    """Return the manual axes of the computations around `op`, with the computation of each."""
    return {axis: around for around in manual_computations_around(op) for axis in around.manual_axes.data}
