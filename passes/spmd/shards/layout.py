"""Layout of one value: its unpartitioned type, its sharding and its mesh."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.diagnostics import error
from sdy.dialect.mesh_syntax import mesh_text
from sdy.dialect.meshes import mesh_of, named_meshes
from sdy.ir.shapes import tensor_of
from sdy.ir.walking import innermost_first, operations
from sdy.mesh import MOST_DEVICES, Mesh
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.common.sharding_walk import shardings_in
from sdy.sharding import DimSharding, TensorSharding

_NO_MESH = Mesh()


def mesh_of_devices(sharding: TensorSharding, anchor: Operation) -> Mesh:
    """Return the mesh of `sharding`, looked up by its symbol in the module around `anchor`.

    Raises:
        DiagnosticError: The mesh has more devices than replica groups can list, or lacks an axis of the sharding, as
            after propagation from a value on a single device into a manual computation.
    """
    mesh = mesh_of(sharding, anchor)
    if unknown := next((axis.name for axis in sharding.axes() if axis.name not in mesh.axis_names), None):
        raise error(anchor, f'a sharding over axis "{unknown}" is on a mesh without it, {mesh_text(mesh)}')
    if mesh.size > MOST_DEVICES:
        message = f"a mesh of {mesh.size} devices cannot be partitioned over; the most is {MOST_DEVICES}"
        raise error(anchor, f"{message}: the mesh is {mesh_text(mesh)}")
    return mesh


def refuse_large_meshes(module: ModuleOp) -> None:
    """Raise DiagnosticError if a sharding is on a mesh with more devices than can be listed."""
    if any(mesh.size > MOST_DEVICES for mesh in named_meshes(module).values()):
        for op in innermost_first(operations(module)):
            for sharding in shardings_in(op):
                mesh_of_devices(sharding, op)


@dataclass(frozen=True, eq=False)
class Layout:
    """The unpartitioned type of a value and its sharding over a mesh; without a sharding, it is replicated.

    Values of equal type and sharding share a layout, whose properties are cached.
    """

    type: Attribute
    sharding: TensorSharding | None = None
    mesh: Mesh = _NO_MESH
    multiples: Mapping[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """By dimension size and number of shards, the multiple to pad to, if it is not the number of shards."""

    @cached_property
    def _tensor(self) -> TensorType[Attribute] | None:
        type_: Attribute = self.type
        return cast(TensorType[Attribute], type_) if isinstance(type_, TensorType) else None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The unpartitioned shape; () if the value is not a tensor."""
        return self._tensor.get_shape() if self._tensor else ()

    @cached_property
    def axes(self) -> tuple[tuple[AxisRef, ...], ...]:
        """The axes of each dimension, without those of size 1."""
        if self.sharding is None or not self.sharding.dims:
            return ((),) * len(self.shape)
        return tuple(tuple(axis for axis in axes if axis.size_in(self.mesh) > 1) for axes in self.sharding.dim_axes)

    @cached_property
    def is_split(self) -> bool:
        """True if the value is sharded along an axis of size greater than 1."""
        return any(self.axes)

    @cached_property
    def split_dims(self) -> tuple[int, ...]:
        """The sharded dimensions."""
        return tuple(dim for dim, axes in enumerate(self.axes) if axes)

    def parts(self, dim: int) -> int:
        """Return the number of shards of dimension `dim`."""
        return total_size(self.axes[dim], self.mesh)

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """The unpartitioned shape, with each uneven dimension padded to a multiple of its number of shards."""
        return tuple(
            self._padded(size, self.parts(dim)) if dim in self.uneven_dims else size
            for dim, size in enumerate(self.shape)
        )

    def _padded(self, size: int, parts: int) -> int:
        return round_up(size, self.multiples.get((size, parts), parts))

    @cached_property
    def uneven_dims(self) -> tuple[int, ...]:
        """The dimensions whose sizes are not divisible by their numbers of shards."""
        return tuple(
            dim for dim in self.split_dims if self.shape[dim] != DYNAMIC_INDEX and self.shape[dim] % self.parts(dim)
        )

    def padded_type(self, _: object = None) -> Attribute:
        """Return the unpartitioned type with the padded shape."""
        return self._padded_type

    @cached_property
    def _padded_type(self) -> Attribute:
        if self._tensor is None or not self.uneven_dims:
            return self.type
        return tensor_of(self._tensor.element_type, self.padded_shape, self._tensor.encoding)

    def without(self, dims: Collection[int]) -> "Layout":
        """Return the layout with the dimensions `dims` replicated."""
        if self.sharding is None or not dims:
            return self
        kept = tuple(DimSharding() if dim in dims else split for dim, split in enumerate(self.sharding.dims))
        return replace(self, sharding=replace(self.sharding, dims=kept))

    def without_axes(self, axes: Sequence[AxisRef]) -> "Layout":
        """Return the layout without `axes`, nor the axes that are minor to them in a dimension."""
        if self.sharding is None:
            return self

        def is_kept(axis: AxisRef) -> bool:
            return not any(axis.overlaps(other) for other in axes)

        kept = tuple(DimSharding(tuple(takewhile(is_kept, of_dim))) for of_dim in self.sharding.dim_axes)
        return replace(self, sharding=replace(self.sharding, dims=kept))

    def local_type(self, value: SSAValue | Operation) -> Attribute:
        """Return the type of one shard.

        Args:
            value: The value or operation at which an error is reported.

        Raises:
            DiagnosticError: The axes of a dimension do not divide its size.
        """
        if self.uneven_dims and self.sharding:
            dim = self.uneven_dims[0]
            axes = ", ".join(map(str, self.sharding.dims[dim].axes))
            raise error(
                value,
                f"dimension {dim} of size {self.shape[dim]} cannot be split evenly into {self.parts(dim)} shards over "
                f"{{{axes}}}: the value has type {self.type}",
            )
        return self._local_type

    @cached_property
    def local_bytes(self) -> int:
        """The bytes of one shard, padding included."""
        return local_bytes(self.type, self.sharding, self.mesh)

    @cached_property
    def _local_type(self) -> Attribute:
        if self.sharding is None or self._tensor is None or not self.is_split:
            return self.type
        shape = self.sharding.local_shape(self.shape, self.mesh)
        return tensor_of(self._tensor.element_type, shape, self._tensor.encoding)


def round_up(size: int, multiple: int) -> int:
    """Return the least multiple of `multiple` that is at least `size`."""
    return -(-size // multiple) * multiple
