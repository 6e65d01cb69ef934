"""Projection of shardings onto the factors of an operation, and back.

A sharding assigns axes to the *dimensions* of one tensor; an operation relates *factors*, the loops of its loop nest.
Projection converts the first into the second, so that tensors of different shapes can be compared factor by factor, and
`unproject` converts back. For the reshape `([ij])->([i, j])` with factors i=4 and j=6, and axes "x" of size 2 and "y"
of size 8:

    dimension 0 of the operand split over ["x", "y"]     the 8 shards of "y" do not fit into the 2 left of factor i:
      -> factor i: ["x", "y":(1)2]                        it takes the sub-axis that fits,
         factor j: ["y":(2)4]                             and j, the minor-most factor, takes the rest.

Two cases limit the projection:

*Overflow axes.* If a factor that is not the minor-most can be split further, but the size of the next axis has no
common divisor with the size left, neither this nor any later factor can take the axis. It and all axes after it
are stored as overflow, close the factors after it, and return when the dimension is rebuilt.

*Strided views.* A factor can only be split if every factor major to it in the same dimension is split completely;
otherwise a shard would not be contiguous. Rebuilding a dimension therefore stops at the first factor that is not split
completely.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sdy.axes import Axes, AxisRef, merge_sub_axes, total_size
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule, TensorMapping
from sdy.sharding import DimSharding, Reduction, TensorSharding

_OPEN = DimSharding(is_closed=False)


@dataclass(slots=True)
class FactorSharding:
    """Sharding of one factor of one tensor: `axes`, major to minor, then the `overflow` axes that do not fit."""

    axes: Axes = ()
    is_closed: bool = False
    is_minor_most: bool = False
    overflow: Axes = ()


@dataclass(slots=True)
class TensorFactors:
    """Sharding of one tensor by factor; only factors of the tensor are present."""

    factors: dict[int, FactorSharding]
    replicated: Axes = ()
    unreduced: Axes = ()
    reduction: Reduction = "sum"


@dataclass(slots=True)
class ShardingProjection:
    """Shardings of an operation's operands and results by factor."""

    operands: list[TensorFactors]
    results: list[TensorFactors]

    @property
    def tensors(self) -> list[TensorFactors]:
        """The operands, then the results."""
        return self.operands + self.results


def project(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> ShardingProjection:
    """Project the shardings of an operation's tensors onto the factors of its rule.

    Args:
        rule: The sharding rule of the operation.
        shardings: The shardings of the operands, then of the results; None is fully open.
        mesh: The mesh of all shardings.
    """
    tensors = [
        project_tensor(mapping, sharding, rule.factor_sizes, mesh)
        for mapping, sharding in zip(rule.tensors, shardings, strict=True)
    ]
    return ShardingProjection(tensors[: len(rule.operands)], tensors[len(rule.operands) :])


def project_tensor(
    mapping: TensorMapping, sharding: TensorSharding | None, factor_sizes: Sequence[int], mesh: Mesh
) -> TensorFactors:
    """Project one tensor's sharding onto its factors; None is fully open."""
    factors: dict[int, FactorSharding] = {}
    if sharding is None:
        for dim_factors in mapping:
            _project_dim(dim_factors, _OPEN, factor_sizes, mesh, factors)
        return TensorFactors(factors)
    for dim_factors, dim in zip(mapping, sharding.dims, strict=True):
        _project_dim(dim_factors, dim, factor_sizes, mesh, factors)
    return TensorFactors(factors, sharding.replicated, sharding.unreduced, sharding.reduction)


def _project_dim(
    dim_factors: tuple[int, ...],
    dim: DimSharding,
    factor_sizes: Sequence[int],
    mesh: Mesh,
    factors: dict[int, FactorSharding],
) -> None:
    remaining: Axes = dim.axes
    for factor in dim_factors:
        minor_most = factor == dim_factors[-1]
        if minor_most:
            factors[factor] = FactorSharding(merge_sub_axes(remaining, mesh), dim.is_closed, minor_most)
            return
        axes, remaining, size_left = _take(remaining, factor_sizes[factor], mesh)
        if size_left > 1 and remaining:
            factors[factor] = FactorSharding(axes, dim.is_closed, minor_most, merge_sub_axes(remaining, mesh))
            follower = dim_factors[dim_factors.index(factor) + 1]
            factors[follower] = FactorSharding((), True, follower == dim_factors[-1])
            return
        factors[factor] = FactorSharding(axes, dim.is_closed, minor_most)


def _take(axes: Axes, size_left: int, mesh: Mesh) -> tuple[Axes, Axes, int]:
    """Split `axes` at a factor of `size_left`: returns the longest prefix that fits, the rest, and the size left."""
    fitting: list[AxisRef] = []
    while axes:
        first, rest = axes[0], axes[1:]
        size = first.size_in(mesh)
        shared = math.gcd(size_left, size)
        if shared == size:
            fitting.append(first)
            axes = rest
        elif shared > 1:
            major, minor = first.split(shared, mesh)
            fitting.append(major)
            axes = (minor, *rest)
        else:
            break
        size_left //= shared
    return tuple(fitting), axes, size_left


def unproject(
    tensor: TensorFactors, mapping: TensorMapping, factor_sizes: Sequence[int], mesh_name: str | Mesh, mesh: Mesh
) -> TensorSharding:
    """Return the sharding of a tensor, whose dimensions are the factors of `mapping`, without priorities."""
    dims = tuple(_unproject_dim(tensor, dim_factors, factor_sizes, mesh) for dim_factors in mapping)
    return TensorSharding(mesh_name, dims, tensor.replicated, tensor.unreduced, tensor.reduction)


def _unproject_dim(
    tensor: TensorFactors, dim_factors: tuple[int, ...], factor_sizes: Sequence[int], mesh: Mesh
) -> DimSharding:
    axes: list[AxisRef] = []
    is_closed = False
    for factor in dim_factors:
        sharding = tensor.factors[factor]
        is_closed |= sharding.is_closed
        axes += sharding.axes
        if sharding.overflow:
            axes += sharding.overflow
            break
        if factor != dim_factors[-1] and total_size(sharding.axes, mesh) < factor_sizes[factor]:
            break
    return DimSharding(merge_sub_axes(axes, mesh), is_closed)
