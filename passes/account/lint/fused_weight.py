"""Weights whose columns are those of several projections, and the layout that gives each device a part of each."""

from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import BlockArgument

from sdy.axes import Axes
from sdy.ir.shapes import shape_of
from sdy.passes.account.lint.edits import value_dims
from sdy.passes.account.lint.wording import spec
from sdy.passes.common.argument_names import given_name


@dataclass(frozen=True)
class FusedWeight:
    """An argument whose dimension `index` is cut into chunks of `sizes`, each to be split in `parts` by `axes`."""

    argument: BlockArgument
    index: int
    sizes: tuple[int, ...]
    axes: Axes
    parts: int

    @property
    def interleaved(self) -> str | None:
        """The expression in Python that interleaves the chunks, and its layout; None where the parts do not divide."""
        if {*self.sizes} == {1}:
            return self._split_elsewhere
        if any(size % self.parts for size in self.sizes):
            return None
        if len({*self.sizes}) == 1:
            shape = self._shape_with(len(self.sizes), self.sizes[0])
            return f"`{self._name}.reshape({shape})` sharded as {self._spec_with((), self.axes)}"
        ends = [*accumulate(self.sizes[:-1])]
        chunks = f"for chunk in jnp.split({self._name}, {ends}, {self.index})"
        joined = f"jnp.concatenate([chunk.reshape({self._shape_with(self.parts, -1)}) {chunks}], {self.index + 1})"
        return f"`{joined}` sharded as {self._spec_with(self.axes, ())}"

    @property
    def _split_elsewhere(self) -> str | None:
        """The weight itself, split along the largest dimension that nothing splits, best behind that of the chunks."""
        shape, dims = shape_of(self.argument), self._dim_axes
        free = [index for index, size in enumerate(shape) if not dims[index] and size % self.parts == 0]
        if not free:
            return None
        dims[self.index] = ()
        dims[max(free, key=lambda index: (index > self.index, shape[index]))] = self.axes
        return f"`{self._name}` sharded as {spec(dims)}"

    @property
    def _name(self) -> str:
        return given_name(self.argument) or "w"

    @property
    def _dim_axes(self) -> list[Axes]:
        return [*value_dims(self.argument)]

    def _shape_with(self, *sizes: int) -> str:
        """The shape with `sizes` for the dimension of the chunks."""
        shape = shape_of(self.argument)
        return ", ".join(map(str, [*shape[: self.index], *sizes, *shape[self.index + 1 :]]))

    def _spec_with(self, *dims: Axes) -> str:
        before = self._dim_axes
        return spec([*before[: self.index], *dims, *before[self.index + 1 :]])
