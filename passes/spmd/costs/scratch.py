"""Scratch memory: values that XLA allocates only while an operation runs."""

from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import shape_of
from sdy.stablehlo.windows import SelectAndScatterOp


def scratch_of(op: Operation) -> list[SSAValue]:
    """Return values of the sizes of the scratch buffers of `op`.

    XLA computes `select_and_scatter` as a `reduce_window` that carries an index along each dimension
    (`select_and_scatter_expander.cc`), except on TPUs.
    """
    if isinstance(op, SelectAndScatterOp):
        rank = len(shape_of(op.operand))
        return [op.operand] * rank + [op.source] * (rank + 1)
    return []
