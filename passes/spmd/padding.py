"""Padded tensors: giving them their padding and taking it off, and filling it where what it holds would matter.

A dimension of size n that is split into p parts has, padded, the next multiple of p as its size. The padding is at the
end and may hold anything, as it does after an elementwise operation; it is filled where something reads it.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.collectives import AllGatherOp, AllSliceOp, CollectiveOp
from sdy.dialect.shardings import set_sharding
from sdy.ir.shapes import rank
from sdy.passes.spmd.elements import bounds
from sdy.passes.spmd.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.elementwise import AndOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp


class Insertion(NamedTuple):
    """Where to insert operations, and the operation because of which that is done."""

    point: InsertPoint
    source: Operation

    @classmethod
    def before(cls, op: Operation) -> "Insertion":
        """In front of `op`."""
        return cls(InsertPoint.before(op), op)

    @classmethod
    def after(cls, op: Operation) -> "Insertion":
        """Behind `op`."""
        return cls(InsertPoint.after(op), op)


class ShardedEmitter(Emitter):
    """Inserts operations, and gives each result of the rank of a sharding that sharding; notes what it inserted."""

    def __init__(self, at: Insertion, sharding: TensorSharding | None, inserted: list[Operation]):
        super().__init__(at.point, at.source)
        self._sharding = sharding
        self._inserted = inserted

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op` and return its first result."""
        self._inserted.append(op)
        result = super().insert(op)
        if isinstance(op, CollectiveOp):
            return result
        if self._sharding is not None and rank(result.type) == self._sharding.rank:
            set_sharding(result, self._sharding)
        return result


class Padding:
    """Makes and removes padding in one module, and remembers what it did, to not undo and do it again."""

    def __init__(self) -> None:
        self._put_on: dict[SSAValue, SSAValue] = {}
        self._taken_off: dict[tuple[SSAValue, Block | None], SSAValue] = {}
        self._filled: dict[SSAValue, float | SSAValue] = {}
        self._inserted: list[Operation] = []

    def resize(self, at: Insertion, value: SSAValue, layout: Layout, shape: Sequence[int]) -> SSAValue:
        """`value`, whose layout splits no dimension of another size, with its end cut off or zeros added there."""
        old = tensor_type(value).get_shape()
        emit = self.emitter(at, layout)
        smaller = tuple(map(min, old, shape))
        if smaller != old:
            cut = emit.slice(value, [0] * len(old), smaller)
            self.mark_filled(cut, value)
            value = cut
        if smaller != tuple(shape):
            zero = emit.filled(TensorType(tensor_type(value).element_type, ()), 0)
            high = [size - before for size, before in zip(shape, smaller, strict=True)]
            padded = emit.insert(PadOp(value, zero, [0] * len(old), high))
            if smaller == layout.shape or self.holds(value, 0):
                self._filled[padded] = 0
            value = padded
        return value

    def gather(self, at: Insertion, value: SSAValue, layout: Layout, dims: Collection[int]) -> SSAValue:
        """`value` with the dimensions `dims` whole on each device, in their padded size."""
        if not dims or layout.sharding is None:
            return value
        axes = [axes if dim in dims else () for dim, axes in enumerate(layout.sharding.dim_axes)]
        after = sharding_without_partials(layout.without(dims))
        assert after is not None
        return self.emitter(at, layout).insert(AllGatherOp(value, axes, after))

    def split(self, at: Insertion, value: SSAValue, layout: Layout, dims: Collection[int]) -> SSAValue:
        """The inverse: `value`, whole along `dims` and of padded size there, laid out as `layout` says."""
        if not dims or layout.sharding is None:
            return value
        axes = [axes if dim in dims else () for dim, axes in enumerate(layout.sharding.dim_axes)]
        sharding = sharding_without_partials(layout)
        assert sharding is not None
        part = self.emitter(at, layout).insert(AllSliceOp(value, axes, sharding))
        if value in self._filled:
            self._filled[part] = self._filled[value]
        return part

    def take_off(self, at: Insertion, value: SSAValue, layout: Layout) -> SSAValue:
        """`value` without padding, its uneven dimensions whole on each device."""
        dims = layout.uneven_dims
        block = at.source.parent
        if value in self._put_on:
            return self._put_on[value]
        if (value, block) not in self._taken_off:
            gathered = self.gather(at, value, layout, dims)
            self._taken_off[value, block] = self.resize(at, gathered, layout.without(dims), layout.shape)
        return self._taken_off[value, block]

    def put_on(self, at: Insertion, value: SSAValue, layout: Layout) -> SSAValue:
        """The inverse: `value`, without padding and whole along the uneven dimensions, laid out as `layout` says."""
        dims = layout.uneven_dims
        padded = self.resize(at, value, layout.without(dims), layout.padded_shape)
        part = self.split(at, padded, layout, dims)
        self._put_on[part] = value
        return part

    def fill(
        self, at: Insertion, value: SSAValue, layout: Layout, dims: Collection[int], element: float | SSAValue
    ) -> SSAValue:
        """The padded `value` with its padding along `dims` filled with `element`, a number or a scalar."""
        dims = [dim for dim in dims if dim in layout.uneven_dims]
        if not dims or self.holds(value, element):
            return value
        emit = self.emitter(at, layout)
        if not isinstance(element, SSAValue):
            filler = emit.filled(TensorType(tensor_type(value).element_type, ()), element)
        else:
            filler = element
        shape = layout.padded_shape
        inside: SSAValue | None = None
        for dim in dims:
            counted = i32 if shape[dim] <= bounds(i32)[1] else i64
            index = emit.insert(IotaOp(dim, TensorType(counted, shape)))
            end = emit.broadcast(emit.integers([layout.shape[dim]], (), counted), (), shape)
            before_end = emit.compare(ComparisonDirection.LT, index, end)
            inside = before_end if inside is None else emit.binary(AndOp, inside, before_end)
        assert inside is not None
        filled = emit.select(inside, value, emit.broadcast(filler, (), shape))
        if set(dims) == set(layout.uneven_dims):
            self._filled[filled] = element
        return filled

    def holds(self, value: SSAValue, element: float | SSAValue) -> bool:
        """Whether the padding of `value` is known to hold `element`."""
        return value in self._filled and self._filled[value] == element

    def mark_filled(self, result: SSAValue, like: SSAValue) -> None:
        """Say that the padding of `result` holds what that of `like` does."""
        if like in self._filled:
            self._filled[result] = self._filled[like]

    def erase_unused(self) -> None:
        """Erase what was inserted and is not used after all."""
        for op in reversed(self._inserted):
            if not any(result.uses for result in op.results):
                op.detach()
                op.erase()

    def emitter(self, at: Insertion, layout: Layout) -> ShardedEmitter:
        """Inserts operations whose results are laid out as `layout` says."""
        return ShardedEmitter(at, sharding_without_partials(layout), self._inserted)


def sharding_without_partials(layout: Layout) -> TensorSharding | None:
    """The sharding of a layout, as a result may have it that is no partial one."""
    return layout.sharding and replace(layout.sharding, replicated=(), unreduced=())
