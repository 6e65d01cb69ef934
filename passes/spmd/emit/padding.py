"""Padding of uneven dimensions: adding, removing and masking it.

A dimension of size n with p shards is padded at its end to the next multiple of p. The padding has arbitrary elements,
for example after an elementwise operation, and is filled in front of operations that read it.
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
from sdy.passes.spmd.shards.elements import bounds
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.elementwise import AndOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp


class Insertion(NamedTuple):
    """An insertion point, and the operation whose location the inserted operations get."""

    point: InsertPoint
    source: Operation

    @classmethod
    def before(cls, op: Operation) -> "Insertion":
        """Return the insertion point in front of `op`."""
        return cls(InsertPoint.before(op), op)

    @classmethod
    def after(cls, op: Operation) -> "Insertion":
        """Return the insertion point behind `op`."""
        return cls(InsertPoint.after(op), op)


class ShardedEmitter(Emitter):
    """Emitter that sets a sharding on each result of the same rank, and records the inserted operations."""

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
    """Adds and removes padding in one module, and memoizes it, so that no padding is removed and added again."""

    def __init__(self) -> None:
        self._put_on: dict[SSAValue, SSAValue] = {}
        """By padded value, the unpadded value that it was computed from."""
        self._taken_off: dict[tuple[SSAValue, Block | None], SSAValue] = {}
        """By padded value and block, the unpadded value."""
        self._filled: dict[SSAValue, float | SSAValue] = {}
        """By padded value, the element of its padding, if known."""
        self._inserted: list[Operation] = []

    def resize(self, at: Insertion, value: SSAValue, layout: Layout, shape: Sequence[int]) -> SSAValue:
        """Slice or zero-pad the end of `value` to `shape`; `layout` must not shard a dimension that changes."""
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
        """All-gather the dimensions `dims` of `value`, padding included."""
        if not dims or layout.sharding is None:
            return value
        axes = [axes if dim in dims else () for dim, axes in enumerate(layout.sharding.dim_axes)]
        after = sharding_without_partials(layout.without(dims))
        assert after is not None
        return self.emitter(at, layout).insert(AllGatherOp(value, axes, after))

    def split(self, at: Insertion, value: SSAValue, layout: Layout, dims: Collection[int]) -> SSAValue:
        """Shard the replicated, padded dimensions `dims` of `value` as in `layout`: the inverse of `gather`."""
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
        """Replicate the uneven dimensions of `value` and remove their padding."""
        dims = layout.uneven_dims
        block = at.source.parent
        if value in self._put_on:
            return self._put_on[value]
        if (value, block) not in self._taken_off:
            gathered = self.gather(at, value, layout, dims)
            self._taken_off[value, block] = self.resize(at, gathered, layout.without(dims), layout.shape)
        return self._taken_off[value, block]

    def put_on(self, at: Insertion, value: SSAValue, layout: Layout) -> SSAValue:
        """Pad the replicated, uneven dimensions of `value` and shard them as in `layout`: the inverse of `take_off`."""
        dims = layout.uneven_dims
        padded = self.resize(at, value, layout.without(dims), layout.padded_shape)
        part = self.split(at, padded, layout, dims)
        self._put_on[part] = value
        return part

    def fill(
        self, at: Insertion, value: SSAValue, layout: Layout, dims: Collection[int], element: float | SSAValue
    ) -> SSAValue:
        """Fill the padding of `value` along `dims` with `element`, a number or a scalar value."""
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
        """Return whether the padding of `value` is known to be filled with `element`."""
        return value in self._filled and self._filled[value] == element

    def mark_filled(self, result: SSAValue, like: SSAValue) -> None:
        """Record that the padding of `result` has the same elements as the padding of `like`."""
        if like in self._filled:
            self._filled[result] = self._filled[like]

    def erase_unused(self) -> None:
        """Erase the inserted operations without uses."""
        for op in reversed(self._inserted):
            if not any(result.uses for result in op.results):
                op.detach()
                op.erase()

    def emitter(self, at: Insertion, layout: Layout) -> ShardedEmitter:
        """Return an emitter of operations whose results have the sharding of `layout`."""
        return ShardedEmitter(at, sharding_without_partials(layout), self._inserted)


def sharding_without_partials(layout: Layout) -> TensorSharding | None:
    """Return the sharding of `layout` without replicated and unreduced axes."""
    return layout.sharding and replace(layout.sharding, replicated=(), unreduced=())
