"""Tensor shardings: along which mesh axes each dimension of a tensor is split."""

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
"""How a person writes the sharding of a dimension; see `DimSharding.of`."""


@dataclass(frozen=True, slots=True, eq=False)
class DimSharding(Interned):
    """The axes that split one dimension, major to minor.

    An open dimension may be split further by propagation, a closed one may not. A lower `priority` is propagated
    earlier; None is the highest priority, 0.
    """

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    priority: int | None = None

    @classmethod
    def of(cls, spec: DimSpec) -> "DimSharding":
        """What `spec` says: None is not split, `"x"` an axis, `("x", "y")` several, major first.

        `...`, alone or at the end, leaves the dimension open. Raises ValueError where it stands elsewhere.
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
        """The priority, 0 where none is given."""
        return self.priority or 0

    def sharded_size(self, mesh: Mesh) -> int:
        """The number of parts that this dimension is split into."""
        return total_size(self.axes, mesh)

    def without_idle_priority(self) -> "DimSharding":
        """This, without the priority that a closed dimension with no axes may not have."""
        return replace(self, priority=None) if self.is_closed and not self.axes else self


@dataclass(frozen=True, slots=True, eq=False)
class TensorSharding(Interned):
    """How a tensor is laid out over a mesh.

    `mesh` is the symbol of a mesh in the module, or the mesh itself. An axis in no dimension replicates the tensor;
    axes in `replicated` must stay so, and along `unreduced` ones each device holds a partial result that is still to
    be combined by `reduction`. Both lists are in mesh order.
    """

    mesh: str | Mesh
    dims: tuple[DimSharding, ...] = ()
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: Reduction = "sum"

    @classmethod
    def of(cls, *dims: DimSpec, mesh: str | Mesh = "mesh") -> "TensorSharding":
        """The sharding whose dimensions are split so: `TensorSharding.of("data", None, ("model", ...))`."""
        return cls(mesh, tuple(map(DimSharding.of, dims)))

    @classmethod
    def replicated_open(cls, mesh: str | Mesh, rank: int) -> "TensorSharding":
        """No axis anywhere, every dimension open: what a tensor without a sharding has."""
        return cls(mesh, (DimSharding(is_closed=False),) * rank)

    @classmethod
    def replicated_closed(cls, mesh: str | Mesh, rank: int) -> "TensorSharding":
        """No axis anywhere, every dimension closed: the whole tensor on every device."""
        return cls(mesh, (DimSharding(is_closed=True),) * rank)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def is_fully_closed(self) -> bool:
        """Whether no dimension may be split further."""
        return all(dim.is_closed for dim in self.dims)

    @property
    def tells_nothing(self) -> bool:
        """Whether it has dimensions, all of them open, and no axis anywhere: as good as no sharding."""
        return self.rank > 0 and self == TensorSharding.replicated_open(self.mesh, self.rank)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no dimension is split."""
        return not any(dim.axes for dim in self.dims)

    @property
    def dim_axes(self) -> tuple[tuple[AxisRef, ...], ...]:
        """The axes of each dimension."""
        return tuple(dim.axes for dim in self.dims)

    def axes(self) -> Iterator[AxisRef]:
        """Every axis named: those of the dimensions, then the replicated and the unreduced ones."""
        for dim in self.dims:
            yield from dim.axes
        yield from self.replicated
        yield from self.unreduced

    def map_dims(self, change: Callable[[DimSharding], DimSharding]) -> "TensorSharding":
        """This sharding with `change` applied to each dimension."""
        dims = tuple(change(dim) for dim in self.dims)
        return self if dims == self.dims else replace(self, dims=dims)

    def close(self) -> "TensorSharding":
        """This sharding with every dimension closed."""
        return self.map_dims(lambda dim: replace(dim, is_closed=True))

    def open(self) -> "TensorSharding":
        """This sharding with every dimension open."""
        return self.map_dims(lambda dim: replace(dim, is_closed=False))

    def with_dim(self, index: int, dim: DimSharding) -> "TensorSharding":
        """This sharding with dimension `index` replaced."""
        return replace(self, dims=(*self.dims[:index], dim, *self.dims[index + 1 :]))

    def local_shape(self, shape: Sequence[int], mesh: Mesh) -> tuple[int, ...]:
        """The shape that one device holds of a tensor of `shape`.

        A dimension that its axes do not divide is rounded up: the last devices then hold less, or padding. Dynamic
        dimensions (-1) stay so. Shapes are in elements.
        """
        if not self.dims:
            return tuple(shape)
        return tuple(
            -(-size // dim.sharded_size(mesh)) if size >= 0 else size
            for size, dim in zip(shape, self.dims, strict=True)
        )

    def global_shape(self, shape: Sequence[int], mesh: Mesh) -> tuple[int, ...]:
        """The shape of the whole tensor, padding included, of which each device holds `shape`."""
        if not self.dims:
            return tuple(shape)
        return tuple(
            size * dim.sharded_size(mesh) if size >= 0 else size for size, dim in zip(shape, self.dims, strict=True)
        )


def equivalent(first: TensorSharding | None, second: TensorSharding | None) -> bool:
    """Whether both lay out a tensor alike, open or closed; None, no sharding, is the whole tensor on each device."""
    return _layout(first) == _layout(second)


def _layout(sharding: TensorSharding | None) -> object:
    if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced):
        return None
    return (sharding.mesh, sharding.dim_axes, sharding.unreduced)
