"""How a value lies on the devices: the type of the whole, and the axes that split it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.diagnostics import error
from sdy.dialect.mesh_syntax import mesh_text
from sdy.dialect.meshes import mesh_of
from sdy.ir.shapes import tensor_of
from sdy.mesh import MOST_DEVICES, Mesh
from sdy.passes.common.replication_cost import local_bytes
from sdy.sharding import DimSharding, TensorSharding

_NO_MESH = Mesh()


def mesh_of_devices(sharding: TensorSharding, anchor: Operation) -> Mesh:
    """The mesh of `sharding`, its symbol looked up in the module around `anchor`.

    Raises DiagnosticError where it has more devices than a program can list wherever they send to each other.
    """
    mesh = mesh_of(sharding, anchor)
    if mesh.size > MOST_DEVICES:
        message = f"a program cannot be made for each of {mesh.size} devices, only for up to {MOST_DEVICES}"
        raise error(anchor, f"{message}: the mesh is {mesh_text(mesh)}")
    return mesh


@dataclass(frozen=True, eq=False)
class Layout:
    """The type of a whole value, and its sharding over a mesh; no sharding means that every device has all of it.

    Values of one type and sharding share a layout, of which each property is found once.
    """

    type: Attribute
    sharding: TensorSharding | None = None
    mesh: Mesh = _NO_MESH
    multiples: Mapping[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """For a size and a number of uneven parts, what the padded size is a multiple of, if not of that number only."""

    @cached_property
    def _tensor(self) -> TensorType[Attribute] | None:
        type_: Attribute = self.type
        return cast(TensorType[Attribute], type_) if isinstance(type_, TensorType) else None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole; () where the value is no tensor."""
        return self._tensor.get_shape() if self._tensor else ()

    @cached_property
    def axes(self) -> tuple[tuple[AxisRef, ...], ...]:
        """The axes that split each dimension, without those that make one part only."""
        if self.sharding is None or not self.sharding.dims:
            return ((),) * len(self.shape)
        return tuple(tuple(axis for axis in axes if axis.size_in(self.mesh) > 1) for axes in self.sharding.dim_axes)

    @cached_property
    def is_split(self) -> bool:
        """Whether a device has less than the whole."""
        return any(self.axes)

    @cached_property
    def split_dims(self) -> tuple[int, ...]:
        """The dimensions that are split."""
        return tuple(dim for dim, axes in enumerate(self.axes) if axes)

    def parts(self, dim: int) -> int:
        """The number of parts that dimension `dim` is split into."""
        return total_size(self.axes[dim], self.mesh)

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """The shape of the whole, each dimension rounded up to a multiple of the number of its parts."""
        return tuple(
            self._padded(size, self.parts(dim)) if dim in self.uneven_dims else size
            for dim, size in enumerate(self.shape)
        )

    def _padded(self, size: int, parts: int) -> int:
        return round_up(size, self.multiples.get((size, parts), parts))

    @cached_property
    def uneven_dims(self) -> tuple[int, ...]:
        """The dimensions whose parts would not all be of one size."""
        return tuple(
            dim for dim in self.split_dims if self.shape[dim] != DYNAMIC_INDEX and self.shape[dim] % self.parts(dim)
        )

    def padded_type(self, _: object = None) -> Attribute:
        """The type of the whole in its padded shape."""
        return self._padded_type

    @cached_property
    def _padded_type(self) -> Attribute:
        if self._tensor is None or not self.uneven_dims:
            return self.type
        return tensor_of(self._tensor.element_type, self.padded_shape, self._tensor.encoding)

    def without(self, dims: Collection[int]) -> "Layout":
        """The layout in which the dimensions `dims` are not split."""
        if self.sharding is None or not dims:
            return self
        kept = tuple(DimSharding() if dim in dims else split for dim, split in enumerate(self.sharding.dims))
        return replace(self, sharding=replace(self.sharding, dims=kept))

    def without_axes(self, axes: Sequence[AxisRef]) -> "Layout":
        """The layout in which nothing is split over `axes`, nor over axes that are minor to them in a dimension."""
        if self.sharding is None:
            return self

        def is_kept(axis: AxisRef) -> bool:
            return not any(axis.overlaps(other) for other in axes)

        kept = tuple(DimSharding(tuple(takewhile(is_kept, of_dim))) for of_dim in self.sharding.dim_axes)
        return replace(self, sharding=replace(self.sharding, dims=kept))

    def local_type(self, value: SSAValue | Operation) -> Attribute:
        """The type that one device has of the value.

        Raises DiagnosticError at `value` where the parts would not all be of one size.
        """
        if self.uneven_dims and self.sharding:
            dim = self.uneven_dims[0]
            axes = ", ".join(map(str, self.sharding.dims[dim].axes))
            raise error(
                value,
                f"dimension {dim} of size {self.shape[dim]} cannot be split evenly into {self.parts(dim)} parts over "
                f"{{{axes}}}: the value has type {self.type}",
            )
        return self._local_type

    @cached_property
    def local_bytes(self) -> int:
        """The bytes that one device has of the value, padding included."""
        return local_bytes(self.type, self.sharding, self.mesh)

    @cached_property
    def _local_type(self) -> Attribute:
        if self.sharding is None or self._tensor is None or not self.is_split:
            return self.type
        shape = self.sharding.local_shape(self.shape, self.mesh)
        return tensor_of(self._tensor.element_type, shape, self._tensor.encoding)


def round_up(size: int, multiple: int) -> int:
    """The least multiple that is no less than `size`."""
    return -(-size // multiple) * multiple
