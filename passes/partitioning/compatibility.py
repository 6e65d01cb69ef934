"""Whether an operation can be computed in parts, each device using its own parts of the operands only."""

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult

from sdy.axes import AxisRef
from sdy.dialect import AllReduceOp, ReduceScatterOp
from sdy.passes.exporting.common_sharding import agreed_axes
from sdy.passes.partitioning.layout import Layout
from sdy.passes.propagation.factors import project
from sdy.rules import sharding_rule
from sdy.sharding import DimSharding, TensorSharding


def why_not_in_parts(op: Operation, operands: Sequence[Layout], results: Sequence[Layout]) -> str | None:
    """Why `op`, whose values still have the types of the whole, cannot be computed in parts; None if it can.

    It can where all its tensors split each factor of its sharding rule alike, factors that are needed whole or whose
    parts need data of other devices are not split, and what is partial as a consequence is combined.
    """
    layouts = (*operands, *results)
    split = [layout for layout in layouts if layout.is_split]
    if not split:
        return None
    mesh = split[0].mesh
    if any(layout.mesh != mesh for layout in split):
        return "its tensors are split over different meshes"
    rule = sharding_rule(op)
    if rule is None:
        return "it has no sharding rule"
    tensors = project(
        rule, [TensorSharding(mesh, tuple(map(DimSharding, layout.axes))) for layout in layouts], mesh
    ).tensors
    if any(factor.overflow for tensor in tensors for factor in tensor.factors.values()):
        return "a dimension is split where the operation does not allow it"
    axes = agreed_axes([{index: part.axes for index, part in tensor.factors.items()} for tensor in tensors], rule)
    if axes is None:
        return "its tensors are split in ways that do not fit together"
    if any(axes[factor] for factor in rule.permutation):
        return "a device would need data of others"
    partial = [axis for factor in rule.reduction for axis in axes[factor]]
    if partial and not all(
        _is_combined(result, layout, partial) for result, layout in zip(op.results, results, strict=True)
    ):
        return "nothing combines the partial results"
    return None


def _is_combined(result: OpResult, layout: Layout, axes: Sequence[AxisRef]) -> bool:
    if layout.sharding is not None and all(axis in layout.sharding.unreduced for axis in axes):
        return True
    return all(isinstance(use.operation, (AllReduceOp, ReduceScatterOp)) for use in result.uses)
