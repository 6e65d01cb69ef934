"""Loops and conditionals: an axis is a dimension along which all operations of the regions are independent.

The rows of `x` are independent in `while(%x) do { return tanh(%x) @ %w }`: a block of rows runs the whole loop. The
dimensions of the values in the regions are merged into classes, from the projections of each operation: those that an
axis of the operation moves along together. A class that an operation needs in full is not an axis.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from sdy.blocks.builder import BlockBuilder, operands_of
from sdy.blocks.operation import Access, BlockOperation
from sdy.blocks.registry import NoBlocks, block_operation, register
from sdy.ir.elements import splat
from sdy.ir.shapes import shape_of
from sdy.rule import FactorKind
from sdy.stablehlo import CaseOp, ConstantOp, IfOp, IotaOp, WhileOp

_Dim = tuple[SSAValue, int]


@dataclass(frozen=True)
class RegionAxes:
    """The axes of an operation with regions: their sizes, and the axis of each dimension that has one."""

    sizes: Sequence[int]
    of_value: Mapping[SSAValue, Mapping[int, int]]


@register("stablehlo.case", "stablehlo.if", "stablehlo.while")
def by_regions(op: Operation, block: BlockBuilder) -> float:
    """Add an axis per class of independent dimensions; a step runs the regions."""
    axes = region_axes(op)
    if not axes.sizes:
        raise NoBlocks
    for axis, size in enumerate(axes.sizes):
        sides = [
            {
                number: dim
                for number, value in enumerate(values)
                for dim, of_dim in axes.of_value.get(value, {}).items()
                if of_dim == axis
            }
            for values in (operands_of(op), op.results)
        ]
        block.add(size, sides[0], sides[1])
    return sum(len(region.block.ops) - 1 for region in op.regions)  # without the terminators


def region_axes(op: Operation) -> RegionAxes:
    """Return the axes of a loop or conditional, along which all of its results that are used move."""
    classes = _Classes()
    classes.visit(op)
    sizes: list[int] = []
    of_value: defaultdict[SSAValue, dict[int, int]] = defaultdict(dict)
    used = [result for result in op.results if result.first_use is not None]
    for dims in classes.independent():
        values = [value for value, _ in dims]
        if len({*values}) == len(values) and used and {*values}.issuperset(used):
            for value, dim in dims:
                of_value[value][dim] = len(sizes)
            sizes.append(shape_of(values[0])[dims[0][1]])
    return RegionAxes(sizes, of_value)


def independent_axes(blocks: BlockOperation) -> Iterator[tuple[int, Mapping[int, int]]]:
    """Yield the axes along which a block of steps is a block of each tensor, with the dimension of each tensor.

    Tensors are numbered from the operands to the results.
    """
    for number, axis in enumerate(blocks.axes):
        places = [
            (tensor, int(dim))
            for tensor, access in enumerate(blocks.accesses)
            for dim in access.projection.matrix[number].nonzero()[0]
        ]
        dims = dict(places)
        if (
            axis.kind in (None, FactorKind.PASS_THROUGH)
            and len(dims) == len(places)
            and any(tensor >= len(blocks.operands) for tensor in dims)
            and all(_is_enumerated(blocks.accesses[tensor], dim, number, axis.extent) for tensor, dim in places)
        ):
            yield number, dims


def _is_enumerated(access: Access, dim: int, axis: int, extent: int) -> bool:
    """Return whether the steps of an axis are the elements of a dimension, in order."""
    projection = access.projection
    return (
        access.axes_of(dim) == [axis]
        and projection.matrix[axis, dim] == projection.shape[dim] == access.spacing[dim] == 1
        and projection.offset[dim] + projection.start[dim] == 0
        and access.shape[dim] == extent
    )


class _Classes:
    """Disjoint sets of dimensions that are split together, and the dimensions that an operation needs in full."""

    def __init__(self) -> None:
        self._parents: dict[_Dim, _Dim] = {}
        self._full: list[_Dim] = []

    def independent(self) -> Iterator[list[_Dim]]:
        """Yield the classes without a dimension that is needed in full, in the order of the program."""
        full = {self._root(dim) for dim in self._full}
        classes: defaultdict[_Dim, list[_Dim]] = defaultdict(list)
        for dim in self._parents:
            classes[self._root(dim)].append(dim)
        return (dims for root, dims in classes.items() if root not in full)

    def visit(self, op: Operation) -> None:
        """Merge the dimensions of an operation's values, and of those in its regions."""
        match op:
            case WhileOp():
                body = op.body.block
                assert body.last_op is not None
                for same in zip(op.res, op.operand, op.cond.block.args, body.args, body.last_op.operands, strict=True):
                    self._merge_values(same)
            case CaseOp() | IfOp():
                for number, result in enumerate(op.results):
                    ends = [region.block.last_op for region in op.regions]
                    self._merge_values([result, *(end.operands[number] for end in ends if end is not None)])
            case ConstantOp():
                self._need_full(op.output, range(len(shape_of(op.output))) if splat(op.value) is None else ())
                return
            case IotaOp():
                self._need_full(op.output, [op.iota_dimension.value.data])
                return
            case _:
                self._visit_other(op)
                return
        for region in op.regions:
            for inner in region.block.ops:
                if inner is not region.block.last_op:
                    self.visit(inner)

    def _visit_other(self, op: Operation) -> None:
        values = [*operands_of(op), *op.results]
        blocks = block_operation(op)
        # By tensor: a product of a value with itself moves along its rows, and needs all of its columns and rows, too.
        independent: set[tuple[int, int]] = set()
        for _, dims in independent_axes(blocks) if blocks is not None else ():
            independent.update(dims.items())
            self._merge([(values[tensor], dim) for tensor, dim in dims.items()])
        for tensor, value in enumerate(values):
            self._need_full(value, [dim for dim in range(len(shape_of(value))) if (tensor, dim) not in independent])

    def _merge_values(self, values: Sequence[SSAValue]) -> None:
        for dim in range(len(shape_of(values[0]))):
            self._merge([(value, dim) for value in values])

    def _need_full(self, value: SSAValue, dims: Sequence[int]) -> None:
        for dim in range(len(shape_of(value))):
            self._parents.setdefault((value, dim), (value, dim))
        self._full += [(value, dim) for dim in dims]

    def _merge(self, dims: Sequence[_Dim]) -> None:
        first = self._root(dims[0])
        for dim in dims[1:]:
            self._parents[self._root(dim)] = first

    def _root(self, dim: _Dim) -> _Dim:
        parent = self._parents.setdefault(dim, dim)
        while parent != self._parents[parent]:
            parent = self._parents[parent]
        return parent
