"""`sdy-scatter-in-stages`: two-stage scatters, of each shard of the updates first, where no all-reduce applies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import has_elements, shape
from sdy.ir.walking import invalidate, operations_of
from sdy.passes.common.properties import num_bytes
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.spmd.emit.exchange_builder import TensorEmitter
from sdy.passes.spmd.emit.operation_reshards import reshard_around
from sdy.passes.spmd.emit.resolution import layout_of
from sdy.passes.spmd.plan.reduction_kinds import operation_reduction
from sdy.passes.spmd.plan.rematerialize import bytes_received
from sdy.passes.spmd.pointwise import applied
from sdy.passes.spmd.shards.elements import identities_of
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.stages import Cut
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.attributes.operation_attributes import (
    ScatterDimensionNumbers,
    ScatterDimensionNumbersAttr,
    i64_array,
)
from sdy.stablehlo.checks.reducers import scalar
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.scatter import ScatterOp


@dataclass(frozen=True)
class ScatterInStagesPass(AnalysisPreservingPass):
    """Scatter each shard of the updates separately and reduce the partial results, where no all-reduce applies.

    The partial results of a scatter that adds, or takes the maximum or minimum, are combined by an all-reduce. A
    scatter that multiplies or combines bits becomes a scatter of each shard into identity elements, a reduction of the
    partial results, and an elementwise operation with the input. So does a sum into an input that is sharded along the
    axes of the updates and would have to be gathered. Before::

        sdy.mesh @mesh = <["x"=4]>
        ... %2: tensor<4096x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}
        %3 = "stablehlo.scatter"(%0, %1, %2) ({multiply}) : (tensor<512x64xf32>, tensor<4096x1xi32>, ...)

    After, shortened::

        %3 = stablehlo.reshape %1 [{"x"}, {}, {}] : tensor<4x1024x1xi32>
        %4 = stablehlo.reshape %2 [{"x"}, {}, {}] : tensor<4x1024x64xf32>
        %5 = "stablehlo.scatter"(%ones, %3, %4) ({multiply}) [{"x"}, {}, {}] : tensor<4x512x64xf32>
        %6 = stablehlo.reduce(%5 init: %one) applies stablehlo.multiply across dimensions = [0]
        %7 = stablehlo.multiply %0, %6 : tensor<512x64xf32>

    Run `sdy-reduce-in-stages` next. A scatter is unchanged if gathering the updates and indices moves fewer bytes, or
    if its update computation is not a known reduction.
    """

    name = "sdy-scatter-in-stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for scatter in operations_of(op, ScatterOp):
            _scatter_in_stages(scatter)


@dataclass(frozen=True)
class _Stages:
    """A scatter whose updates are sharded along dimension `dim`, which is dimension `indices_dim` of the indices."""

    op: ScatterOp
    identities: Sequence[float]
    updates: Layout
    dim: int
    indices_dim: int

    @classmethod
    def of(cls, op: ScatterOp) -> "_Stages | None":
        """Return the stages of `op`; None if they are not applicable or move more bytes than gathering the updates."""
        if not all(has_elements(value.type) for value in op.operands):
            return None
        identities = identities_of(op.update_computation, [tensor_type(value).element_type for value in op.inputs])
        updates = layout_of(op.updates[0])
        if identities is None or updates.sharding is None or updates.sharding.unreduced:
            return None
        split = (each for each in _batch_dims(op) if updates.axes[each[0]])
        stages = (cls(op, identities, updates, *dims) for dims in split)
        return next((each for each in stages if each._is_needed and each._receives_less), None)

    @property
    def cut(self) -> Cut:
        """The cut of the updates."""
        return Cut(self.dim, self.updates.parts(self.dim), self.updates.axes[self.dim])

    @property
    def indices_cut(self) -> Cut:
        """The same cut of the indices."""
        return replace(self.cut, dim=self.indices_dim)

    @cached_property
    def partial_sharding(self) -> TensorSharding:
        """The sharding of the partial results, whose first dimension is that of the parts.

        A dimension that the update windows span fully is sharded as in the updates.
        """
        updates, sizes = self.updates, shape(self.op.inputs[0].type)
        assert updates.sharding is not None
        dims = [DimSharding()] * len(sizes)
        for dim, window in self._full_windows():
            dims[dim] = updates.sharding.dims[window]
        return TensorSharding(updates.sharding.mesh, (DimSharding(self.cut.axes), *dims))

    def _full_windows(self) -> Iterator[tuple[int, int]]:
        """Yield the input dimensions that the update windows span fully, each with its dimension of the updates."""
        numbers, sizes = self.op.scatter_dimension_numbers.data, shape(self.op.inputs[0].type)
        outside = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        windowed = [dim for dim in range(len(sizes)) if dim not in outside]
        for dim, window in zip(windowed, numbers.update_window_dims, strict=True):
            if self.updates.shape[window] == sizes[dim]:
                yield dim, window

    @property
    def _is_needed(self) -> bool:
        """True if no all-reduce combines the partial results, or if the inputs would have to be gathered for it."""
        return operation_reduction(self.op) is None or any(map(self._bytes_of_input, self.op.inputs))

    def _bytes_of_input(self, value: SSAValue) -> float:
        """Return the bytes received by all devices to gather an input along the axes of the updates."""
        sharding = get_sharding(value)
        if sharding is None or not self._splits(value):
            return 0
        kept = [DimSharding() if self._overlaps(dim.axes) else dim for dim in sharding.dims]
        return bytes_received(value, replace(sharding, dims=tuple(kept)), self.op)

    def _splits(self, value: SSAValue) -> bool:
        return any(map(self._overlaps, layout_of(value).axes))

    def _overlaps(self, axes: Sequence[AxisRef]) -> bool:
        return any(axis.overlaps(other) for axis in axes for other in self.cut.axes)

    @property
    def _receives_less(self) -> bool:
        return self._bytes_in_stages() < self._bytes_of_updates()

    def _bytes_in_stages(self) -> float:
        """Return the bytes that a device receives to combine the partial results; half if it keeps a shard only."""
        is_kept_split = self._splits(self.op.results[0])
        partial = replace(self.partial_sharding, dims=self.partial_sharding.dims[1:])
        held = sum(local_bytes(result.type, partial, self.updates.mesh) for result in self.op.results)
        return (1 if is_kept_split else 2) * held * (self.cut.count - 1) / self.cut.count

    def _bytes_of_updates(self) -> float:
        """Return the bytes that a device receives without stages: all indices, and the updates of its input shard."""
        indices = num_bytes(self.op.scatter_indices.type) * (self.cut.count - 1) / self.cut.count
        wanted = self._sharding_by_windows()
        updates = sum(bytes_received(value, wanted, self.op) for value in self.op.updates)
        return indices + updates / self.updates.mesh.size

    def _sharding_by_windows(self) -> TensorSharding:
        """Return the sharding of the updates with windows sharded as in the first input, and `dim` replicated."""
        sharding, input_axes = self.updates.sharding, layout_of(self.op.inputs[0]).axes
        assert sharding is not None
        moved = {window: input_axes[dim] for dim, window in self._full_windows() if self._overlaps(input_axes[dim])}
        used = [axis for axes in (self.cut.axes, *moved.values()) for axis in axes]
        kept = (
            DimSharding() if any(axis.overlaps(other) for axis in dim.axes for other in used) else dim
            for dim in sharding.dims
        )
        return replace(sharding, dims=tuple(DimSharding(moved.get(dim, each.axes)) for dim, each in enumerate(kept)))

    def insert(self) -> ScatterOp:
        """Replace the scatter by its stages and return the first one."""
        op, count = self.op, len(self.op.inputs)
        invalidate(op)
        self._reshard_operands()
        emit = Emitter(InsertPoint.before(op), op)
        in_parts = TensorEmitter(InsertPoint.before(op), op, self.partial_sharding)
        parts_shape = (self.cut.count, *shape(op.inputs[0].type))
        starts: list[SSAValue] = []
        empty: list[SSAValue] = []
        for value, identity in zip(op.inputs, self.identities, strict=True):
            element_type = tensor_type(value).element_type
            starts.append(emit.filled(scalar(element_type), identity))
            empty.append(in_parts.filled(TensorType(element_type, parts_shape), identity))
        first = emit.filled(scalar(tensor_type(op.scatter_indices).element_type), 0)
        indices = self.indices_cut.apply(op.scatter_indices, emit, first)
        updates = [self.cut.apply(value, emit, start) for value, start in zip(op.updates, starts, strict=True)]
        is_even = self.updates.shape[self.dim] % self.cut.count == 0
        parts = ScatterOp.create(
            operands=[*empty, indices, *updates],
            properties={
                "scatter_dimension_numbers": ScatterDimensionNumbersAttr(self._numbers()),
                "unique_indices": BoolAttr.from_bool(is_even and bool(op.unique_indices.value.data)),
            },
            result_types=[value.type for value in empty],
            regions=[op.update_computation.clone()],
        )
        in_parts.insert(parts)
        total = ReduceOp.create(
            operands=[*parts.results, *starts],
            properties={"dimensions": i64_array(0)},
            attributes=op.attributes,
            result_types=op.result_types,
            regions=[op.update_computation.clone()],
        )
        emit.insert(total)
        wanted = get_sharding(op.results[0])
        emit_result = TensorEmitter(InsertPoint.before(op), op, wanted) if wanted else emit
        results = applied(op.update_computation, [*op.operands[:count], *total.results], emit_result)
        for result in parts.results:
            set_sharding(result, self.partial_sharding)
        Rewriter.replace_op(op, [], results)
        return parts

    def _reshard_operands(self) -> None:
        """Reshard the indices and all updates like the first updates."""
        op, count = self.op, len(self.op.inputs)
        split = self.updates.sharding
        assert split is not None
        indices = TensorSharding.replicated_closed(split.mesh, len(shape(op.scatter_indices.type)))
        indices = indices.with_dim(self.indices_dim, DimSharding(self.cut.axes))
        wanted = [None] * count + [indices] + [split] * count
        reshard_around(
            op,
            [
                None if sharding is None or equivalent(get_sharding(value), sharding) else sharding
                for value, sharding in zip(op.operands, wanted, strict=True)
            ],
        )

    def _numbers(self) -> ScatterDimensionNumbers:
        """Return the dimension numbers of the first stage, whose inputs have a leading dimension of parts."""
        numbers = self.op.scatter_dimension_numbers.data

        def behind(dims: Sequence[int]) -> tuple[int, ...]:
            return tuple(dim + 1 for dim in dims)

        return ScatterDimensionNumbers(
            update_window_dims=tuple(map(self.cut.moved, numbers.update_window_dims)),
            inserted_window_dims=behind(numbers.inserted_window_dims),
            input_batching_dims=(0, *behind(numbers.input_batching_dims)),
            scatter_indices_batching_dims=(
                self.indices_dim,
                *map(self.indices_cut.moved, numbers.scatter_indices_batching_dims),
            ),
            scatter_dims_to_operand_dims=behind(numbers.scatter_dims_to_operand_dims),
            index_vector_dim=self.indices_cut.moved(numbers.index_vector_dim),
        )


def _batch_dims(op: ScatterOp) -> Iterator[tuple[int, int]]:
    """Yield the scatter dimensions of the updates, each with its dimension of the indices, without batching ones."""
    numbers = op.scatter_dimension_numbers.data
    of_updates = (dim for dim in range(len(shape(op.updates[0].type))) if dim not in numbers.update_window_dims)
    of_indices = (dim for dim in range(len(shape(op.scatter_indices.type))) if dim != numbers.index_vector_dim)
    for dim, indices_dim in zip(of_updates, of_indices, strict=True):
        if indices_dim not in numbers.scatter_indices_batching_dims:
            yield dim, indices_dim


def _scatter_in_stages(op: ScatterOp) -> None:
    """Apply stages along each dimension of the updates where they are needed."""
    if stages := _Stages.of(op):
        _scatter_in_stages(stages.insert())
