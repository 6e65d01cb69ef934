"""Legality of partitioning: why an operation must be replicated, and along which axes."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from xdsl.ir import Operation

from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion
from sdy.passes.spmd.emit.replicate import IllegalSplit, axes_of
from sdy.passes.spmd.ops import partitioning_of
from sdy.passes.spmd.shards.layout import Layout


def find_illegal_split(conversion: OpConversion[Any]) -> IllegalSplit | None:
    """Return why an operation with unpartitioned types must be replicated, and along which axes; None if it need not.

    The axes are a smallest set that is enough.
    """
    illegality = illegality_of(conversion.op, conversion.operands, conversion.results)
    if illegality is None:
        return None
    axes = axes_of(conversion)
    for count in range(1, len(axes)):
        for some in combinations(axes, count):
            operands, results = (
                [layout.without_axes(some) for layout in layouts]
                for layouts in (conversion.operands, conversion.results)
            )
            if illegality_of(conversion.op, operands, results) is None:
                return IllegalSplit(illegality, some)
    return IllegalSplit(illegality, axes)


def illegality_of(op: Operation, operands: Sequence[Layout], results: Sequence[Layout]) -> Illegality | None:
    """Return why `op`, with unpartitioned types, cannot be partitioned; None if it can.

    It can if no device needs data of other devices and collectives combine its partial results.
    """
    if not any(layout.is_split for layout in (*operands, *results)):
        return None
    return partitioning_of(op).illegality(op, operands, results)
