"""Planning how a value comes to be unreduced along more axes, or reduced along some.

Along an unreduced axis each device holds a partial result. A value becomes unreduced along an axis without any data
being sent: where it is replicated, all devices but one take zeros for theirs; where a dimension is split over the axis,
each device pads its part with zeros to the whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sdy.axes import AxisRef, is_prefix, merge_sub_axes, mesh_order, subtract
from sdy.mesh import Mesh
from sdy.sharding import DimSharding, TensorSharding

Axes = tuple[AxisRef, ...]


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Combine partial results along `axes`, which gives `after`."""

    axes: Axes
    after: TensorSharding


@dataclass(frozen=True, slots=True)
class Reshard:
    """Lay the value out as `after`."""

    after: TensorSharding


@dataclass(frozen=True, slots=True)
class ReplicatedToUnreduced:
    """Take the value for partial along `axes`, along which it is replicated, which gives `after`."""

    axes: Axes
    after: TensorSharding


@dataclass(frozen=True, slots=True)
class ShardedToUnreduced:
    """Take the value for partial along the `axes` that end each dimension, which gives `after`."""

    axes: tuple[Axes, ...]
    after: TensorSharding


UnreductionStep = AllReduce | Reshard | ReplicatedToUnreduced | ShardedToUnreduced


def plan_reduction(source: TensorSharding, target: TensorSharding | None, mesh: Mesh) -> AllReduce | None:
    """The all-reduce over the unreduced axes of `source` that are not unreduced in `target`; None if there are none."""
    kept = target.unreduced if target is not None else ()
    axes = subtract(source.unreduced, kept, mesh)
    if not axes:
        return None
    return AllReduce(axes, replace(source, unreduced=subtract(source.unreduced, axes, mesh)))


def plan_unreduction(source: TensorSharding, target: TensorSharding, mesh: Mesh) -> tuple[UnreductionStep, ...]:
    """The steps from `source` to `target`, both on `mesh`, which has more unreduced axes; () if it has not.

    An axis that ends a dimension of `source` and becomes unreduced leaves that dimension last of all. The axes of other
    dimensions are brought to where `target` has them first. ValueError if `source` is unreduced along other axes.
    """
    added = subtract(target.unreduced, source.unreduced, mesh)
    if not added:
        return ()
    if subtract(source.unreduced, target.unreduced, mesh):
        raise ValueError("both shardings have unreduced axes that the other one has not")

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
    """`axes`, none of which overlap, in the order of the mesh, neighbours that continue each other made one."""
    return merge_sub_axes(sorted(axes, key=mesh_order(mesh)), mesh)
