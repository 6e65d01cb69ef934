"""Edge padding for the windows of a select-and-scatter that extend beyond the first or the last row.

Padding rows repeat the edge row: a window that selects an element of the padding could as well select it in the edge
row, to which its result is then added. So no padding value is needed that is never selected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder
from sdy.passes.spmd.shards.halo import ReadRanges
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import CommutativeElementwiseOp


@dataclass(frozen=True)
class Edges:
    """Edges of a dimension beyond which windows extend.

    Attributes:
        builder: Builder of the exchange.
        sharding: The sharding of the operand.
        dim: The dimension.
        ranges: The rows that each device has after the exchange.
        first: Whether windows begin before the first row.
        last: Whether windows end after the last row.
    """

    builder: ExchangeBuilder
    sharding: TensorSharding
    dim: int
    ranges: ReadRanges
    first: bool
    last: bool

    def repeated(self, rows: SSAValue) -> SSAValue:
        """Return `rows` with each row beyond an edge replaced by the edge row."""
        emit = self.builder.tensors(self.sharding)
        for edge, beyond in self._edges():
            place = self.builder.by_part(self._axes, [edge - start for start in self.ranges.starts])
            zero = self.builder.scalars.integers([0], ())
            starts = [place if dim == self.dim else zero for dim in range(self.sharding.rank)]
            sizes = [1 if dim == self.dim else size for dim, size in enumerate(shape_of(rows))]
            row = emit.dynamic_slice(rows, starts, sizes)
            repeated = emit.broadcast(row, range(self.sharding.rank), shape_of(rows))
            rows = emit.select(self._where(beyond, edge, rows), repeated, rows)
        return rows

    def brought_back(self, rows: SSAValue, combine: type[CommutativeElementwiseOp]) -> SSAValue:
        """Return `rows` with those beyond an edge combined into the edge row by `combine`, whose identity is zero."""
        emit = self.builder.tensors(self.sharding)
        other_dims = [dim for dim in range(self.sharding.rank) if dim != self.dim]
        without_dim = self.builder.tensors(
            replace(self.sharding, dims=tuple(self.sharding.dims[dim] for dim in other_dims))
        )
        for edge, beyond in self._edges():
            gone = emit.select(self._where(beyond, edge, rows), rows, emit.filled(tensor_type(rows), 0))
            total = without_dim.reduce(gone, [self.dim], combine, 0)
            combined = emit.binary(combine, rows, emit.broadcast(total, other_dims, shape_of(rows)))
            rows = emit.select(self._where(ComparisonDirection.EQ, edge, rows), combined, rows)
        return rows

    @property
    def _axes(self) -> Sequence[AxisRef]:
        return self.sharding.dims[self.dim].axes

    def _edges(self) -> list[tuple[int, ComparisonDirection]]:
        """Return the index of each edge row, and the comparison that holds for rows beyond it."""
        edges = [(self.first, 0, ComparisonDirection.LT), (self.last, self.ranges.size - 1, ComparisonDirection.GT)]
        return [(edge, beyond) for is_left, edge, beyond in edges if is_left]

    def _where(self, direction: ComparisonDirection, row: int, like: SSAValue) -> SSAValue:
        """Return a mask in the shape of `like`: whether an element's row compares to `row` in this direction."""
        places = self.builder.places(self._axes, self.ranges.starts, self.ranges.length)
        bound = self.builder.scalars.integers([row], (self.ranges.length,))
        mask = self.builder.scalars.compare(direction, places, bound)
        return self.builder.tensors(self.sharding).broadcast(mask, (self.dim,), shape_of(like))
