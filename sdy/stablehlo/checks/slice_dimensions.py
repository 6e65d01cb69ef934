"""Verification of dimension numbers: their range and uniqueness, and those of gather and scatter.

    gather      operand   start_indices     result         slices of the operand are read into the result
    scatter     inputs    scatter_indices   updates        the updates are combined into slices of the inputs

Both have six fields with corresponding meanings. A gather has:

    offset_dims                    the dimensions of the result that index into a slice
    collapsed_slice_dims           the dimensions of the operand with slice size 1, absent from the result
    operand_batching_dims          the batching dimensions of the operand ...
    start_indices_batching_dims    ... and the corresponding ones of the indices
    start_index_map                the operand dimension for each component of an index vector
    index_vector_dim               the dimension of the indices that holds the index vectors
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from sdy.stablehlo.attributes.struct_attribute import dims_text
from sdy.stablehlo.checks.shape_checks import compatible_shapes

SizeT = TypeVar("SizeT")


class ListedDims(NamedTuple):
    """A list of dimensions in an attribute, with its name there."""

    name: str
    dims: tuple[int, ...]


class Style(NamedTuple):
    """The wording of MLIR's messages, which differs between gather and scatter."""

    indices: str
    expects: str
    got: str
    stop: str


GATHER = Style("start_indices", "expects", ", got", "")
SCATTER = Style("scatter_indices", "Expects", "; got", ".")


@dataclass(frozen=True, slots=True)
class SliceDimensions:
    """The dimension numbers of a gather or scatter, with the checks that both share.

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
        """Convert the dimension numbers of either operation; corresponding fields have the same order."""
        *names, vector = (field.name for field in fields(numbers))
        return cls(
            style, *(ListedDims(name, getattr(numbers, name)) for name in names), vector=getattr(numbers, vector)
        )

    def slice_sizes(self, sizes: Sequence[int]) -> list[int]:
        """Return the sizes of the operand's dimensions that are neither collapsed nor batching."""
        absent = {*self.dropped.dims, *self.batching.dims}
        return [size for dim, size in enumerate(sizes) if dim not in absent]

    def batch_sizes(self, indices: Sequence[SizeT]) -> list[SizeT]:
        """Return the sizes of the indices without the index vector's dimension: one slice per index vector."""
        return [size for dim, size in enumerate(indices) if dim != self.vector]

    def with_vector(self, indices: Sequence[int]) -> Sequence[int]:
        """Return the sizes of the indices with the index vector's dimension, of size 1 if implicit."""
        return indices if self.vector < len(indices) else (*indices, 1)

    def verify_vector(self, indices: Sequence[int]) -> None:
        """Check that the index vector's dimension is one of the indices', or the implicit one after the last."""
        verify_in_range("index_vector_dim", self.vector, len(indices), f"rank-of('{self.style.indices}')")

    def verify_window(self) -> None:
        """Check that the window dimensions are sorted and unique."""
        self._verify_sorted(self.window)
        self._verify_unique(self.window)

    def verify_batching(self, operand: Sequence[int], indices: Sequence[int]) -> None:
        """Check that collapsed and batching dimensions are sorted, unique, in range and of matching sizes."""
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
        """Check that the index map's dimensions are unique, in range and not batching."""
        verify_distinct(*self.index_map, *self.batching)
        verify_each_in_range(*self.index_map, operand_rank, "rank-of('operand')")

    def _verify_sorted(self, dims: ListedDims) -> None:
        if list(dims.dims) != sorted(dims.dims):
            raise self._error("be sorted", dims)

    def _verify_unique(self, dims: ListedDims) -> None:
        if len(set(dims.dims)) != len(dims.dims):
            raise self._error("not repeat", dims)

    def _error(self, demand: str, dims: ListedDims) -> VerifyException:
        style = self.style
        return VerifyException(
            f"{style.expects} {dims.name} to {demand}{style.got}: {dims_text(dims.dims)}{style.stop}"
        )


def verify_in_range(name: str, dim: int, last: int, last_name: str) -> None:
    """Raise VerifyException unless `dim` is in [0, last]; `last_name` is the text of `last` in the message."""
    if not 0 <= dim <= last:
        raise VerifyException(f"Expects {name} to be in range [0, {last_name}] i.e. [0, {last}]. got: {dim}.")


def verify_each_in_range(name: str, dims: Sequence[int], end: int, end_name: str) -> None:
    """Raise VerifyException unless all `dims` are in [0, end); `end_name` is the text of `end` in the message."""
    for dim in dims:
        if not 0 <= dim < end:
            raise VerifyException(
                f"Expects each element of {name} to be in range [0, {end_name}) i.e. [0, {end}). got: {dim}."
            )


def verify_distinct(name: str, dims: Sequence[int], other_name: str, others: Sequence[int]) -> None:
    """Raise VerifyException if a dimension occurs twice in the two lists together."""
    seen: set[int] = set()
    for dim in (*dims, *others):
        if dim in seen:
            raise VerifyException(f"has duplicated dimension from {name} and {other_name}: {dim}")
        seen.add(dim)
