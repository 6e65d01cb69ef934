"""`sdy-accumulate-in-stages`: two-stage prefix sums and other scans along a sharded dimension."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import merge_sub_axes, subtract
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import has_elements, rank, shape
from sdy.ir.walking import invalidate, operations_of
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.exchange_builder import TensorEmitter
from sdy.passes.spmd.emit.operation_reshards import reshard_around
from sdy.passes.spmd.emit.resolution import layout_of
from sdy.passes.spmd.plan.reshard_cost import elements_around, shardings_of_uses
from sdy.passes.spmd.pointwise import applied, is_pointwise
from sdy.passes.spmd.reshard.collective_cost import local_elements
from sdy.passes.spmd.shards.elements import has_neutral_starts
from sdy.passes.spmd.stages import Cut, with_parts
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.windows import WindowDimension, padding_elements
from sdy.stablehlo.emitter import Emitter, with_shape
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.windows import ReduceWindowOp


@dataclass(frozen=True)
class AccumulateInStagesPass(AnalysisPreservingPass):
    """Compute a prefix sum along a sharded dimension in each shard, and combine it with the totals of earlier shards.

    A cumulative sum, product or maximum is a `reduce_window` whose windows start at the first element, or end at the
    last. The last result of a shard is its total. Before, with windows of 16 and padding of 15 in front::

        sdy.mesh @mesh = <["x"=4]>
        ... %0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}
        %1 = "stablehlo.reduce_window"(%0, %zero) ... stablehlo.add : tensor<16xf32>

    After, shortened::

        %1 = stablehlo.reshape %0 [{"x"}, {}] : tensor<4x4xf32>
        %2 = "stablehlo.reduce_window"(%1, %zero) ... stablehlo.add [{"x"}, {}] : tensor<4x4xf32>
        %3 = stablehlo.slice %2 [0:4, 3:4] [{"x"}, {}] : tensor<4x1xf32>
        %4 = stablehlo.pad %3, %zero, low = [1, 0], high = [-1, 0] [{"x"}, {}] : tensor<4x1xf32>
        %5 = stablehlo.add %4, %3 [{"x"}, {}] : tensor<4x1xf32>
        %6 = stablehlo.pad %5, %zero, low = [2, 0], high = [-2, 0] [{"x"}, {}] : tensor<4x1xf32>
        %7 = stablehlo.add %6, %4 [{"x"}, {}] : tensor<4x1xf32>
        %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] [{"x"}, {}] : tensor<4x4xf32>
        %9 = stablehlo.add %8, %2 [{"x"}, {}] : tensor<4x4xf32>
        %10 = stablehlo.reshape %9 [{"x"}] : tensor<16xf32>

    The totals are combined by recursive doubling: after shifts by 1, 2, 4, ... shards, each shard has the sum of all
    earlier totals. A device receives one total per shift, instead of the elements. An operation is unchanged if its
    initial values may not be neutral, or if its body is not elementwise.

    If fewer bytes move, the operation may run in another sharding: with the axes of the dimension on another one, in
    the sharding of a use of a result, or in that sharding with the operand's axes of the dimension. The shards of the
    dimension must then be even, and no device may hold more elements than in the stages. Stages are then needed only
    if the dimension is sharded.
    """

    name = "sdy-accumulate-in-stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for windows in operations_of(op, ReduceWindowOp):
            accumulation = _Accumulation.of(windows)
            if accumulation is None:
                continue
            accumulation = replace(accumulation, sharding=accumulation.cheapest_sharding())
            if accumulation.is_in_stages:
                accumulation.replace_by_stages()
            else:
                accumulation.reshard()


@dataclass(frozen=True)
class _Accumulation:
    """A scan along `dim`: prefix sums or, with `from_last`, suffix sums. All inputs will have `sharding`."""

    op: ReduceWindowOp
    dim: int
    from_last: bool
    sharding: TensorSharding

    @classmethod
    def of(cls, op: ReduceWindowOp) -> "_Accumulation | None":
        """Return the scan that `op` computes along a sharded dimension; None if it is not one, or not supported."""
        if not all(has_elements(value.type) for value in op.inputs):
            return None
        dims = [dim for dim, along in enumerate(op.window()) if along != WindowDimension(1)]
        splits = [layout.sharding for layout in map(layout_of, op.inputs) if len(dims) == 1 and layout.axes[dims[0]]]
        if not splits or splits[0] is None or splits[0].unreduced:
            return None
        size, window = shape(op.inputs[0].type)[dims[0]], op.window()[dims[0]]
        forward, backward = (WindowDimension(size, padding=pair) for pair in ((size - 1, 0), (0, size - 1)))
        if window not in (forward, backward) or not is_pointwise(op.body) or not has_neutral_starts(op):
            return None
        return cls(op, dims[0], window == backward, splits[0])

    @property
    def is_in_stages(self) -> bool:
        """True if `sharding` splits `dim`."""
        return bool(self.sharding.dims[self.dim].axes)

    def cheapest_sharding(self) -> TensorSharding:
        """Return the sharding that moves the fewest elements: `sharding`, or another one."""
        if not all(map(get_sharding, self.op.results)):
            return self.sharding
        mesh, sizes = mesh_of(self.sharding, self.op), shape(self.op.inputs[0].type)
        held = local_elements(self.sharding.dim_axes, sizes, mesh) + self._elements_of_total(self.sharding)
        fitting = (
            each
            for each in (*self._along_other_dims(), *self._like_uses(mesh))
            if local_elements(each.dim_axes, sizes, mesh) <= held and sizes[self.dim] % self._parts(each) == 0
        )
        return min((self.sharding, *fitting), key=self._received)

    def _along_other_dims(self) -> Iterator[TensorSharding]:
        """Yield `sharding` with the axes of `dim` moved to each other dimension."""
        mesh, whole = mesh_of(self.sharding, self.op), self.sharding.with_dim(self.dim, DimSharding())
        for dim, axes in enumerate(self.sharding.dim_axes):
            if dim != self.dim:
                yield whole.with_dim(dim, DimSharding(merge_sub_axes((*axes, *self.sharding.dim_axes[self.dim]), mesh)))

    def _like_uses(self, mesh: Mesh) -> Iterator[TensorSharding]:
        """Yield the shardings of uses, and these with the axes of `sharding` along `dim` that they leave free."""
        for used in dict.fromkeys(used for result in self.op.results for used in shardings_of_uses(result)):
            if used is not None and used.mesh == self.sharding.mesh and not used.unreduced:
                yield used
                others = [axis for dim, axes in enumerate(used.dim_axes) if dim != self.dim for axis in axes]
                own = [axis for axis in self.sharding.dims[self.dim].axes if all(map(axis.can_coexist, others))]
                yield used.with_dim(self.dim, DimSharding(subtract(own, others, mesh)))

    def _received(self, sharding: TensorSharding) -> int:
        """Return the elements that all devices receive if the operation has `sharding`."""
        stages = self._received_between(sharding) if sharding.dims[self.dim].axes else 0
        return self._received_around(sharding) + stages

    def _received_around(self, sharding: TensorSharding) -> int:
        """Return the elements received by all devices in reshards around the operation if it has `sharding`."""
        return elements_around(self.op, self._with_starts(sharding))

    def _received_between(self, sharding: TensorSharding) -> int:
        """Return the elements received by all devices to exchange the totals of the shards of `sharding`."""
        parts, num_filled = self._parts(sharding), self._num_filled(sharding)
        received = sum(num_filled - distance for distance in _distances(num_filled))
        groups = mesh_of(sharding, self.op).size // parts
        return len(self.op.inputs) * received * self._elements_of_total(sharding) * groups

    def _parts(self, sharding: TensorSharding) -> int:
        """Return the number of shards of `dim` under `sharding`."""
        return sharding.dims[self.dim].sharded_size(mesh_of(sharding, self.op))

    def _num_filled(self, sharding: TensorSharding) -> int:
        """Return the number of shards of `dim` under `sharding` that have elements."""
        size = shape(self.op.inputs[0].type)[self.dim]
        return math.ceil(size / math.ceil(size / self._parts(sharding)))

    def _elements_of_total(self, sharding: TensorSharding) -> int:
        """Return the number of elements of the total of one shard of an input under `sharding`."""
        sizes = list(shape(self.op.inputs[0].type))
        sizes[self.dim] = 1
        axes = sharding.with_dim(self.dim, DimSharding()).dim_axes
        return local_elements(axes, sizes, mesh_of(sharding, self.op))

    def reshard(self) -> None:
        """Compute the operation with `sharding`, by reshards around it."""
        invalidate(self.op)
        values = [*self.op.operands, *self.op.results]
        reshard_around(
            self.op,
            [
                None if wanted is None or equivalent(get_sharding(value), wanted) else wanted
                for value, wanted in zip(values, self._with_starts(self.sharding), strict=True)
            ],
        )

    def _with_starts(self, sharding: TensorSharding) -> list[TensorSharding | None]:
        """Return `sharding` for each input and each result, None for each initial value."""
        count = len(self.op.inputs)
        return [sharding] * count + [None] * count + [sharding] * count

    def replace_by_stages(self) -> None:
        """Replace the operation by its stages."""
        op, dim, sharding = self.op, self.dim, self.sharding
        invalidate(op)
        reshard_around(op, [None if equivalent(get_sharding(value), sharding) else sharding for value in op.inputs])
        layout = layout_of(op.inputs[0])
        cut = Cut(dim, layout.parts(dim), layout.axes[dim])
        by_part = with_parts(sharding.with_dim(dim, DimSharding()), dim, cut.axes)

        emit = Emitter(InsertPoint.before(op), op)
        inputs = [cut.apply(value, emit, init) for value, init in zip(op.inputs, op.init_values, strict=True)]
        sizes = shape(inputs[0].type)
        last = 0 if self.from_last else sizes[dim + 1] - 1

        own = self._accumulate(inputs, by_part)
        emit_by_part = TensorEmitter(InsertPoint.before(op), op, by_part)
        totals = [self._rows(value, dim + 1, slice(last, last + 1), emit_by_part) for value in own]
        beyond = self._combine_earlier(totals, emit_by_part)
        beyond = [emit_by_part.broadcast(value, range(len(sizes)), sizes) for value in beyond]
        joined = self._join(beyond, own, emit_by_part)
        results = zip(joined, op.results, strict=True)
        Rewriter.replace_op(op, [], [self._merge_parts(value, result) for value, result in results])

    def _combine_earlier(self, totals: Sequence[SSAValue], emit: TensorEmitter) -> Sequence[SSAValue]:
        """Emit, for each shard, the combination of the totals of all earlier shards; of later ones with `from_last`.

        Trailing shards without elements get initial values.
        """
        num_parts, num_filled = shape(totals[0].type)[self.dim], self._num_filled(self.sharding)
        totals = [self._rows(value, self.dim, slice(num_filled), emit) for value in totals]
        earlier = self._shift(totals, 1, emit)
        for distance in _distances(num_filled)[1:]:
            sums = self._join(earlier, totals, emit)
            earlier = self._join(self._shift(sums, distance, emit), earlier, emit)
        return self._pad(earlier, 0, num_parts - num_filled, emit)

    def _join(self, earlier: Sequence[SSAValue], later: Sequence[SSAValue], emit: TensorEmitter) -> Sequence[SSAValue]:
        """Emit the body of the scan; with `from_last`, `earlier` are the values of higher indices."""
        return applied(self.op.body, [*later, *earlier] if self.from_last else [*earlier, *later], emit)

    def _shift(self, values: Sequence[SSAValue], distance: int, emit: TensorEmitter) -> Sequence[SSAValue]:
        """Emit, for each row of `dim`, the row that is `distance` earlier, or the initial value."""
        low = -distance if self.from_last else distance
        return self._pad(values, low, -low, emit)

    def _pad(self, values: Sequence[SSAValue], low: int, high: int, emit: TensorEmitter) -> Sequence[SSAValue]:
        if not low and not high:
            return values
        lows, highs = ([0] * rank(values[0].type) for _ in range(2))
        lows[self.dim], highs[self.dim] = low, high
        starts = self.op.init_values
        return [emit.insert(PadOp(value, start, lows, highs)) for value, start in zip(values, starts, strict=True)]

    def _accumulate(self, inputs: Sequence[SSAValue], sharding: TensorSharding) -> Sequence[SSAValue]:
        """Emit the scan of each shard: along the dimension behind that of the shards."""
        op, sizes, dim = self.op, shape(inputs[0].type), self.dim + 1
        padding = [(0, 0)] * len(sizes)
        padding[dim] = (0, sizes[dim] - 1) if self.from_last else (sizes[dim] - 1, 0)
        window = [size if index == dim else 1 for index, size in enumerate(sizes)]
        windows = ReduceWindowOp.create(
            operands=[*inputs, *op.init_values],
            result_types=[with_shape(result, sizes) for result in op.results],
            properties={"window_dimensions": i64_array(*window), "padding": padding_elements(padding)},
            regions=[op.body.clone()],
        )
        Emitter(InsertPoint.before(op), op).insert(windows)
        for result in windows.results:
            set_sharding(result, sharding)
        return windows.results

    def _rows(self, value: SSAValue, dim: int, rows: slice, emit: TensorEmitter) -> SSAValue:
        sizes = shape(value.type)
        start, stop, _ = rows.indices(sizes[dim])
        if stop - start == sizes[dim]:
            return value
        starts = [start if index == dim else 0 for index in range(len(sizes))]
        limits = [stop if index == dim else size for index, size in enumerate(sizes)]
        return emit.slice(value, starts, limits)

    def _merge_parts(self, value: SSAValue, result: SSAValue) -> SSAValue:
        """Reshape `value`, with a separate dimension of parts, to the shape and sharding of `result`."""
        point, sizes = InsertPoint.before(self.op), list(shape(value.type))
        emit = TensorEmitter(point, self.op, self.sharding)
        sizes[self.dim : self.dim + 2] = [sizes[self.dim] * sizes[self.dim + 1]]
        merged = emit.reshape(value, sizes)
        if tuple(sizes) != shape(result.type):
            merged = emit.slice(merged, [0] * len(sizes), shape(result.type))
        wanted = get_sharding(result) or TensorSharding.replicated_closed(self.sharding.mesh, len(sizes))
        if equivalent(self.sharding, wanted):
            return merged
        return Emitter(point, self.op).insert(ReshardOp(merged, wanted))


def _distances(count: int) -> Sequence[int]:
    """Return the shifts of recursive doubling over `count` shards."""
    return [1 << step for step in range((count - 1).bit_length())]
