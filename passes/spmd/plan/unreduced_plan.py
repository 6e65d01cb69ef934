"""Plan the collectives that remove or add unreduced axes of a value.

Along an unreduced axis, each device holds a partial sum. Adding an unreduced axis needs no communication: if the value
is replicated along the axis, all devices but the first replace it by zeros; if the axis splits a dimension, each device
pads its shard with zeros to the full dimension.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sdy.axes import Axes, AxisRef, is_prefix, merge_sub_axes, mesh_order, subtract
from sdy.mesh import Mesh
from sdy.sharding import DimSharding, TensorSharding


@dataclass(frozen=True, slots=True)
class AllReduce:
    """All-reduce partial results over `axes`; `after` is the resulting sharding."""

    axes: Axes
    after: TensorSharding


@dataclass(frozen=True, slots=True)
class Reshard:
    """Reshard the value to `after`."""

    after: TensorSharding


@dataclass(frozen=True, slots=True)
class ReplicatedToUnreduced:
    """Make `axes` unreduced, along which the value is replicated; `after` is the resulting sharding."""

    axes: Axes
    after: TensorSharding


@dataclass(frozen=True, slots=True)
class ShardedToUnreduced:
    """Make unreduced the minor-most `axes` of each dimension; `after` is the resulting sharding."""

    axes: tuple[Axes, ...]
    after: TensorSharding


UnreductionStep = AllReduce | Reshard | ReplicatedToUnreduced | ShardedToUnreduced


def plan_reduction(source: TensorSharding, target: TensorSharding | None, mesh: Mesh) -> AllReduce | None:
    """Return the all-reduce over the unreduced axes of `source` that `target` lacks, or None if it lacks none."""
    kept = target.unreduced if target is not None else ()
    axes = subtract(source.unreduced, kept, mesh)
    if not axes:
        return None
    return AllReduce(axes, replace(source, unreduced=subtract(source.unreduced, axes, mesh)))


def plan_unreduction(source: TensorSharding, target: TensorSharding, mesh: Mesh) -> tuple[UnreductionStep, ...]:
    """Return the steps from `source` to a `target` with more unreduced axes, both on `mesh`; () if it has no more.

    First reshard the dimensions from which no unreduced axis comes, then add the unreduced axes of replicated values,
    then those that split dimensions.

    Raises:
        ValueError: If `source` has unreduced axes that `target` lacks, and vice versa.
    """
    added = subtract(target.unreduced, source.unreduced, mesh)
    if not added:
        return ()
    if subtract(source.unreduced, target.unreduced, mesh):
        raise ValueError("each sharding has unreduced axes that the other lacks")

    padded: list[Axes] = []
    dims: list[DimSharding] = []
    for old, new in zip(source.dims, target.dims, strict=True):
        dropped = subtract(old.axes, new.axes, mesh) if is_prefix(new.axes, old.axes) else ()
        padded.append(dropped if not subtract(dropped, added, mesh) else ())
        dims.append(old if padded[-1] else new)

    steps: list[UnreductionStep] = []
    if any(old.axes != dim.axes for old, dim in zip(source.dims, dims, strict=True)):
        steps.append(Reshard(replace(source, dims=tuple(dims))))
    masked = subtract(added, (axis for axes in padded for axis in axes), mesh)
    if masked:
        unreduced = in_mesh_order((*source.unreduced, *masked), mesh)
        after = TensorSharding(source.mesh, tuple(dims), target.replicated, unreduced, target.reduction)
        steps.append(ReplicatedToUnreduced(masked, after))
    if any(padded):
        steps.append(ShardedToUnreduced(tuple(padded), target))
    return tuple(steps)


def in_mesh_order(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """Return the disjoint `axes` in the order of the mesh, with adjacent sub-axes merged."""
    return merge_sub_axes(sorted(axes, key=mesh_order(mesh)), mesh)
