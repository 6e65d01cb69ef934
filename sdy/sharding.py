"""Tensor shardings: the mesh axes that split each dimension of a tensor."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Literal, TypeAlias

from sdy.axes import AxisRef, total_size
from sdy.interned import Interned
from sdy.mesh import Mesh

Reduction: TypeAlias = Literal["sum", "max", "min"]
Axis: TypeAlias = str | AxisRef
DimSpec: TypeAlias = Axis | EllipsisType | Sequence[Axis | EllipsisType] | None
"""User notation of a dimension's sharding; see `DimSharding.of`."""


@dataclass(frozen=True, slots=True, eq=False)
class DimSharding(Interned):
    """The axes that split one dimension, major to minor.

    Propagation may split an open dimension further, but not a closed one. A lower `priority` is propagated earlier;
    None means the highest priority, 0.
    """

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    priority: int | None = None

    @classmethod
    def of(cls, spec: DimSpec) -> "DimSharding":
        """Parse the sharding of a dimension.

        Args:
            spec: None for no axes, `"x"` for one axis, `("x", "y")` for several, major first. `...`, alone or at the
                end, leaves the dimension open.

        Raises:
            ValueError: `...` is not at the end.
        """
        parts = () if spec is None else (spec,) if isinstance(spec, str | AxisRef | EllipsisType) else tuple(spec)
        if ... in parts[:-1]:
            raise ValueError(
                "'...' is the last part of a dimension's sharding, where it says that more axes may follow"
            )
        axes = tuple(AxisRef(part) if isinstance(part, str) else part for part in parts if part is not ...)
        return cls(axes, is_closed=... not in parts)

    @property
    def priority_or_default(self) -> int:
        """The priority, 0 by default."""
        return self.priority or 0

    def sharded_size(self, mesh: Mesh) -> int:
        """Return the number of shards of this dimension."""
        return total_size(self.axes, mesh)

    def without_idle_priority(self) -> "DimSharding":
        """Drop the priority if the dimension is closed and has no axes, since a priority is invalid there."""
        return replace(self, priority=None) if self.is_closed and not self.axes else self


@dataclass(frozen=True, slots=True, eq=False)
class TensorSharding(Interned):
    """Sharding of a tensor over a mesh.

    An axis in no dimension replicates the tensor, and propagation may still use it.

    Attributes:
        mesh: The symbol of a mesh in the module, or the mesh itself.
        dims: The sharding of each dimension.
        replicated: Axes along which the tensor must stay replicated, in mesh order.
        unreduced: Axes along which each device holds a partial result, in mesh order.
        reduction: The reduction that combines partial results.
    """

    mesh: str | Mesh
    dims: tuple[DimSharding, ...] = ()
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: Reduction = "sum"

    @classmethod
    def of(cls, *dims: DimSpec, mesh: str | Mesh = "mesh") -> "TensorSharding":
        """Return a sharding over `mesh`, as in `TensorSharding.of("data", None, ("model", ...))`.

        Args:
            *dims: The notation of each dimension; see `DimSharding.of`.
            mesh: The symbol of a mesh in the module, or the mesh itself.
        """
        return cls(mesh, tuple(map(DimSharding.of, dims)))

    @classmethod
    def replicated_open(cls, mesh: str | Mesh, rank: int) -> "TensorSharding":
        """Return the sharding without axes and with open dimensions: the default of a tensor without a sharding."""
        return cls(mesh, (DimSharding(is_closed=False),) * rank)

    @classmethod
    def replicated_closed(cls, mesh: str | Mesh, rank: int) -> "TensorSharding":
        """Return the sharding without axes and with closed dimensions: a replicated tensor."""
        return cls(mesh, (DimSharding(is_closed=True),) * rank)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def is_fully_closed(self) -> bool:
        """True if no dimension may be split further."""
        return all(dim.is_closed for dim in self.dims)

    @property
    def is_unconstrained(self) -> bool:
        """True if all dimensions, at least one, are open and no axis is named: equivalent to no sharding."""
        return self.rank > 0 and self == TensorSharding.replicated_open(self.mesh, self.rank)

    @property
    def is_fully_replicated(self) -> bool:
        """True if no dimension is split."""
        return not any(dim.axes for dim in self.dims)

    @property
    def dim_axes(self) -> tuple[tuple[AxisRef, ...], ...]:
        """The axes of each dimension."""
        return tuple(dim.axes for dim in self.dims)

    def axes(self) -> Iterator[AxisRef]:
        """Yield every axis named: those of the dimensions, then the replicated and the unreduced ones."""
        for dim in self.dims:
            yield from dim.axes
        yield from self.replicated
        yield from self.unreduced

    def map_dims(self, change: Callable[[DimSharding], DimSharding]) -> "TensorSharding":
        """Return this sharding with `change` applied to each dimension."""
        dims = tuple(change(dim) for dim in self.dims)
        return self if dims == self.dims else replace(self, dims=dims)

    def close(self) -> "TensorSharding":
        """Return this sharding with every dimension closed."""
        return self.map_dims(lambda dim: replace(dim, is_closed=True))

    def open(self) -> "TensorSharding":
        """Return this sharding with every dimension open."""
        return self.map_dims(lambda dim: replace(dim, is_closed=False))

    def with_dim(self, index: int, dim: DimSharding) -> "TensorSharding":
        """Return this sharding with dimension `index` replaced by `dim`."""
        return replace(self, dims=(*self.dims[:index], dim, *self.dims[index + 1 :]))

    def local_shape(self, shape: Sequence[int], mesh: Mesh) -> tuple[int, ...]:
        """Return the shape of one device's shard of a tensor.

        The size of an uneven dimension is rounded up: shards of the last devices are smaller, or padded. Dynamic
        dimensions (-1) stay dynamic.

        Args:
            shape: The global shape, in elements.
            mesh: The mesh of this sharding.
        """
        if not self.dims:
            return tuple(shape)
        return tuple(
            -(-size // dim.sharded_size(mesh)) if size >= 0 else size
            for size, dim in zip(shape, self.dims, strict=True)
        )

    def global_shape(self, shape: Sequence[int], mesh: Mesh) -> tuple[int, ...]:
        """Return the shape of the full tensor, padding included, given the `shape` of one device's shard."""
        if not self.dims:
            return tuple(shape)
        return tuple(
            size * dim.sharded_size(mesh) if size >= 0 else size for size, dim in zip(shape, self.dims, strict=True)
        )


def equivalent(first: TensorSharding | None, second: TensorSharding | None) -> bool:
    """Return whether two shardings shard a tensor alike, open or closed; None, no sharding, is fully replicated."""
    return _layout(first) == _layout(second)


def _layout(sharding: TensorSharding | None) -> object:
    if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced):
        return None
    return (sharding.mesh, sharding.dim_axes, sharding.unreduced)
