"""How the dimensions of three tensors belong together where slices are read or written at indices that are data.

    gather      operand   start_indices     result         the slices are read into the result
    scatter     inputs    scatter_indices   updates        the slices, the updates, are combined into the inputs

Both say it with the same six numbers. These are the ones of a gather:

    offset_dims                    the dimensions of the result that run over a slice
    collapsed_slice_dims           the dimensions of the operand in which a slice has size one, which it drops
    operand_batching_dims          the dimensions of the operand and of the indices that run together
    start_indices_batching_dims
    start_index_map                the dimensions of the operand that the numbers of an index vector are places in
    index_vector_dim               the dimension of the indices that an index vector lies along
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from sdy.stablehlo.attributes.struct_attribute import dims_text
from sdy.stablehlo.checks.dimension_checks import verify_distinct, verify_each_in_range, verify_in_range
from sdy.stablehlo.checks.shape_checks import compatible_shapes

SizeT = TypeVar("SizeT")


class ListedDims(NamedTuple):
    """One of the lists, by its name in the attribute."""

    name: str
    dims: tuple[int, ...]


class Style(NamedTuple):
    """In what the messages about gathers and about scatters differ."""

    indices: str
    expects: str
    got: str
    stop: str


GATHER = Style("start_indices", "expects", ", got", "")
SCATTER = Style("scatter_indices", "Expects", "; got", ".")


@dataclass(frozen=True, slots=True)
class SliceDimensions:
    """The dimension numbers of a gather or scatter under one set of names, with what can be checked about both.

    The checks raise VerifyException.
    """

    style: Style
    window: ListedDims
    dropped: ListedDims
    batching: ListedDims
    indices_batching: ListedDims
    index_map: ListedDims
    vector: int

    @classmethod
    def of(cls, style: Style, numbers: GatherDimensionNumbers | ScatterDimensionNumbers) -> "SliceDimensions":
        """The fields of both kinds of numbers have different names and the same order."""
        *names, vector = (field.name for field in fields(numbers))
        return cls(
            style, *(ListedDims(name, getattr(numbers, name)) for name in names), vector=getattr(numbers, vector)
        )

    def slice_sizes(self, sizes: Sequence[int]) -> list[int]:
        """Those of the sizes along the operand's dimensions that a slice keeps."""
        left_out = {*self.dropped.dims, *self.batching.dims}
        return [size for dim, size in enumerate(sizes) if dim not in left_out]

    def batch_sizes(self, indices: Sequence[SizeT]) -> list[SizeT]:
        """The sizes of the indices along the dimensions other than the index vector's: how many slices there are."""
        return [size for dim, size in enumerate(indices) if dim != self.vector]

    def with_vector(self, indices: Sequence[int]) -> Sequence[int]:
        """The sizes of the indices with one along the index vector, which has size one where they do not have it."""
        return indices if self.vector < len(indices) else (*indices, 1)

    def verify_vector(self, indices: Sequence[int]) -> None:
        """Refuse an index vector along no dimension of the indices; the one after their last is allowed."""
        verify_in_range("index_vector_dim", self.vector, len(indices), f"rank-of('{self.style.indices}')")

    def verify_window(self) -> None:
        """Refuse dimensions of the slices that are not sorted or repeat."""
        self._verify_sorted(self.window)
        self._verify_unique(self.window)

    def verify_batching(self, operand: Sequence[int], indices: Sequence[int]) -> None:
        """Refuse dimensions, dropped or batching, that the operand or the indices do not have, or have twice."""
        style = self.style
        verify_distinct(*self.dropped, *self.batching)
        for dims in (self.dropped, self.batching):
            self._verify_sorted(dims)
            verify_each_in_range(*dims, len(operand), "rank-of('operand')")
        names = (self.batching.name, self.indices_batching.name)
        self._verify_unique(self.indices_batching)
        verify_each_in_range(*self.indices_batching, len(indices), f"rank-of('{style.indices}')")
        if self.vector in self.indices_batching.dims:
            raise VerifyException(f"expects {names[1]} not to include index_vector_dim {self.vector}{style.stop}")
        if len(self.batching.dims) != len(self.indices_batching.dims):
            raise VerifyException(f"{names[0]} and {names[1]} should have the same size{style.stop}")
        pairs = zip(self.batching.dims, self.indices_batching.dims, strict=True)
        for number, (dim, indices_dim) in enumerate(pairs):
            size, indices_size = operand[dim], indices[indices_dim]
            if not compatible_shapes((size,), (indices_size,)):
                raise VerifyException(
                    f"{names[0]}[{number}] and {names[1]}[{number}] must have compatible sizes, but got "
                    f"{size} and {indices_size}{style.stop}"
                )

    def verify_index_map(self, operand_rank: int) -> None:
        """Refuse indices into dimensions that the operand does not have, has twice, or that are batching."""
        verify_distinct(*self.index_map, *self.batching)
        verify_each_in_range(*self.index_map, operand_rank, "rank-of('operand')")

    def _verify_sorted(self, dims: ListedDims) -> None:
        if list(dims.dims) != sorted(dims.dims):
            raise self._wrong("be sorted", dims)

    def _verify_unique(self, dims: ListedDims) -> None:
        if len(set(dims.dims)) != len(dims.dims):
            raise self._wrong("not repeat", dims)

    def _wrong(self, demand: str, dims: ListedDims) -> VerifyException:
        style = self.style
        return VerifyException(
            f"{style.expects} {dims.name} to {demand}{style.got}: {dims_text(dims.dims)}{style.stop}"
        )
