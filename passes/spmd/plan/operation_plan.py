"""Plan the reshards around one operation, such that its operands and results split each factor over the same axes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sdy.axes import Axes, AxisRef, common_prefix, merge_sub_axes, total_size
from sdy.factors import FactorSharding, ShardingProjection, TensorFactors, project, unproject
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.common_sharding import common_axes, factor_axes_if_equal
from sdy.rule import OpShardingRule, TensorMapping
from sdy.sharding import TensorSharding, equivalent

Meshes = Mapping[str | Mesh, Mesh]
"""The mesh that each mesh reference of a sharding, a name or an inlined mesh, stands for."""


@dataclass(frozen=True, slots=True)
class Tensors:
    """Sharding rule of an operation, with the shardings and sizes of its operands and results.

    Attributes:
        rule: The sharding rule.
        shardings: The sharding of each operand, then of each result; None for a tensor without a sharding.
        sizes: The number of elements of each operand, then of each result; 0 for a dynamic shape.
    """

    rule: OpShardingRule
    shardings: tuple[TensorSharding | None, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperationShardings:
    """Planned shardings of one operation.

    Attributes:
        shardings: The sharding of each operand, then of each result, in which the operation is to run. Operands are
            resharded to it, results from it. None for a tensor that keeps its sharding.
        axes_per_factor: The axes that split each factor.
        reduction_axes: The axes of the reduction factors, over which the results are partial sums.
    """

    shardings: tuple[TensorSharding | None, ...]
    axes_per_factor: tuple[Axes, ...]
    reduction_axes: Axes

    def num_parts(self, mesh: Mesh) -> int:
        """Return the number of shards that the computation is split into."""
        return total_size((axis for axes in self.axes_per_factor for axis in axes), mesh)


def plan_operation(
    tensors: Tensors, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool, moves_axes: bool = True
) -> OperationShardings:
    """Plan shardings with which an operation runs on one mesh without communication, except for reductions.

    Args:
        tensors: The operation's sharding rule, shardings and sizes.
        mesh_name: The mesh of the planned shardings.
        meshes: All meshes that the shardings refer to.
        reshapes: Whether the operation is a reshape, in which axes may move between the factors of a dimension.
        moves_axes: Whether to move the axes of need-replication factors to other factors. Otherwise devices that
            differ only along these axes do the same computation.
    """
    mesh = meshes[mesh_name]
    elsewhere = frozenset(name for name, other in meshes.items() if other.device_ids != mesh.device_ids)
    return _plan_operation(tensors, mesh_name, mesh, elsewhere, reshapes, moves_axes)


@lru_cache(maxsize=2**12)
def _plan_operation(
    tensors: Tensors,
    mesh_name: str | Mesh,
    mesh: Mesh,
    elsewhere: frozenset[str | Mesh],
    reshapes: bool,
    moves_axes: bool,
) -> OperationShardings:
    """Memoized part of `plan_operation`; `elsewhere` are the meshes with another order of devices than `mesh`."""
    rule = tensors.rule
    projection = project(rule, closed_if_missing(tensors, mesh_name), mesh)
    overflows = [any(factor.overflow for factor in tensor.factors.values()) for tensor in projection.tensors]
    redistributes = reshapes and any(overflows)
    if redistributes:
        axes_per_factor = _axes_of_reshape(tensors, projection, mesh_name, mesh)
    else:
        axes_per_factor = common_axes(_axes_per_tensor(projection), rule, tensors.sizes, mesh, moves_axes)

    planned: list[TensorSharding | None] = []
    for tensor, mapping, sharding, overflow in zip(
        projection.tensors, rule.tensors, tensors.shardings, overflows, strict=True
    ):
        new = unproject(
            with_axes(tensor, mapping, dict(enumerate(axes_per_factor))), mapping, rule.factor_sizes, mesh_name, mesh
        )
        if redistributes:
            changes = not equivalent(new, sharding)
        else:
            changes = overflow or any(part.axes != axes_per_factor[f] for f, part in tensor.factors.items())
        other_devices = sharding is not None and sharding.mesh in elsewhere and not sharding.is_fully_replicated
        planned.append(new if changes or other_devices else None)
    reduction_axes = tuple(axis for factor in rule.reduction for axis in axes_per_factor[factor])
    return OperationShardings(tuple(planned), axes_per_factor, reduction_axes)


def plan_with_axes(
    tensors: Tensors, axes_per_factor: tuple[Axes, ...], mesh_name: str | Mesh, mesh: Mesh
) -> OperationShardings:
    """Return the plan that splits each factor over `axes_per_factor`."""
    rule = tensors.rule
    projection = project(rule, closed_if_missing(tensors, mesh_name), mesh)
    planned = [
        unproject(
            with_axes(tensor, mapping, dict(enumerate(axes_per_factor))), mapping, rule.factor_sizes, mesh_name, mesh
        )
        for tensor, mapping in zip(projection.tensors, rule.tensors, strict=True)
    ]
    shardings = (None if equivalent(new, old) else new for new, old in zip(planned, tensors.shardings, strict=True))
    reduction_axes = tuple(axis for factor in rule.reduction for axis in axes_per_factor[factor])
    return OperationShardings(tuple(shardings), axes_per_factor, reduction_axes)


def summed_axes(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> Axes | None:
    """Return the axes of the reduction factors if nothing is resharded, or None if the operands disagree on them."""
    projection = project(tensors.rule, closed_if_missing(tensors, mesh_name), mesh)
    axes: list[AxisRef] = []
    for factor in tensors.rule.reduction:
        shared = factor_axes_if_equal(_axes_per_tensor(projection), factor)
        if shared is None:
            return None
        axes += shared
    return tuple(axes)


def _axes_per_tensor(projection: ShardingProjection) -> list[dict[int, Axes]]:
    return [{factor: part.axes for factor, part in tensor.factors.items()} for tensor in projection.tensors]


def closed_if_missing(tensors: Tensors, mesh_name: str | Mesh) -> list[TensorSharding]:
    """Return the shardings of `tensors`, with a closed replicated sharding in place of each missing one."""
    return [
        sharding or TensorSharding.replicated_closed(mesh_name, len(mapping))
        for sharding, mapping in zip(tensors.shardings, tensors.rule.tensors, strict=True)
    ]


def with_axes(tensor: TensorFactors, mapping: TensorMapping, axes_per_factor: Mapping[int, Axes]) -> TensorFactors:
    """Return `tensor` with every factor of `mapping` split over exactly these axes, also factors without an entry."""
    factors = {
        factor: replace(tensor.factors.get(factor, FactorSharding()), axes=axes_per_factor.get(factor, ()), overflow=())
        for dim in mapping
        for factor in dim
    }
    return replace(tensor, factors=factors)


def choose_mesh(shardings: Sequence[TensorSharding | None], meshes: Meshes) -> str | Mesh | None:
    """Choose the mesh on which an operation runs: the most common mesh of its split tensors.

    If no tensor is split, prefer a mesh with the default device order.

    Returns:
        The mesh reference, or None if no tensor has a sharding, if a tensor is on a single device, or if the meshes
        differ in more than the order of their devices.
    """
    candidates = [sharding for sharding in shardings if sharding is not None and not meshes[sharding.mesh].is_empty]
    if (
        not candidates
        or len({meshes[sharding.mesh].axes for sharding in candidates}) > 1
        or not meshes[candidates[0].mesh].axes
    ):
        return None
    if len(meshes) == 1:
        return candidates[0].mesh
    uses: Counter[str | Mesh | None] = Counter()
    most_common: str | Mesh | None = None
    for sharding in candidates:
        if not sharding.is_fully_replicated:
            uses[sharding.mesh] += 1
            if uses[sharding.mesh] > uses[most_common]:
                most_common = sharding.mesh
    if most_common is not None:
        return most_common
    natural = [sharding.mesh for sharding in candidates if not meshes[sharding.mesh].device_ids]
    return natural[-1] if natural else candidates[0].mesh


def _axes_of_reshape(
    tensors: Tensors, projection: ShardingProjection, mesh_name: str | Mesh, mesh: Mesh
) -> tuple[Axes, ...]:
    """Return the axes of each factor of a reshape in which some axes overflow their factor.

    The axes of the side with more shards are redistributed over the factors of each side, in the order of its
    dimensions. Each factor keeps the common prefix of its axes on both sides.
    """
    rule = tensors.rule
    operand, result = projection.tensors
    kept = operand if _splits(operand, mesh) >= _splits(result, mesh) else result
    axes = [axis for factor in sorted(kept.factors) for axis in _all_axes(kept.factors[factor])]
    redistributed = [
        unproject(_distribute(axes, tensor, mapping, rule, mesh), mapping, rule.factor_sizes, mesh_name, mesh)
        for tensor, mapping in zip(projection.tensors, rule.tensors, strict=True)
    ]
    first, second = (tensor.factors for tensor in project(rule, redistributed, mesh).tensors)
    axes_per_factor: list[Axes] = []
    for factor in range(rule.num_factors):
        sides = [side[factor].axes for side in (first, second) if factor in side]
        axes_per_factor.append(common_prefix(sides[0], sides[-1]) if sides else ())
    return tuple(axes_per_factor)


def _all_axes(factor: FactorSharding) -> Axes:
    return factor.axes + factor.overflow


def _splits(tensor: TensorFactors, mesh: Mesh) -> int:
    return math.prod(total_size(_all_axes(factor), mesh) for factor in tensor.factors.values())


def _distribute(
    axes: Sequence[AxisRef], tensor: TensorFactors, mapping: TensorMapping, rule: OpShardingRule, mesh: Mesh
) -> TensorFactors:
    """Return `tensor` with `axes` distributed over its factors: each axis, or its sub-axes, to the first that fit.

    From the first axis that does not fit, the rest overflows the last factor.
    """
    factors = [factor for dim in mapping for factor in dim if factor in tensor.factors]
    sizes_left = {factor: rule.factor_sizes[factor] for factor in factors}
    redistributed: dict[int, list[AxisRef]] = {factor: [] for factor in factors}
    overflow: Axes = ()
    for index, axis in enumerate(axes):
        rest: AxisRef | None = axis
        for factor in factors:
            shared = math.gcd(sizes_left[factor], rest.size_in(mesh))
            if sizes_left[factor] == 1 or (shared == 1 and rest.size_in(mesh) != 1):
                continue
            piece, rest = rest.split(shared, mesh) if shared < rest.size_in(mesh) else (rest, None)
            redistributed[factor].append(piece)
            sizes_left[factor] //= shared
            if rest is None:
                break
        if rest is not None:
            overflow = merge_sub_axes((rest, *axes[index + 1 :]), mesh)
            break
    merged = {factor: merge_sub_axes(axes, mesh) for factor, axes in redistributed.items()}
    new = with_axes(tensor, mapping, merged).factors
    if factors and overflow:
        new[factors[-1]].overflow = overflow
    return replace(tensor, factors=new)
