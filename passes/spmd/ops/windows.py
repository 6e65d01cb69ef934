"""Sliding windows along split dimensions: reduce-window and convolution.

Each device computes the windows of its shard of the result, or the partial sums of its shard of the kernel. A halo
exchange first gathers the rows that these cover, with padding and dilation materialized, so that the local windows
have neither.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import I64, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from sdy.axes import subtract
from sdy.diagnostics import op_error
from sdy.dialect.attributes import SHARDING, AxisRefListAttr
from sdy.dialect.collectives import AllReduceOp
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank
from sdy.mesh import Mesh
from sdy.passes.spmd.emit.compatibility import created_factors, illegality_by_dims, illegality_by_rule
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import DimExchange, Filler
from sdy.passes.spmd.emit.exchange_builder import ExchangeBuilder, Tensor
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion, carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.padding import Insertion
from sdy.passes.spmd.emit.replicated_factors import permuting_rule, replicate_factors, replicate_permuted
from sdy.passes.spmd.emit.resolution import (
    Resolution,
    filler_of,
    layout_of,
    pad_to,
    padded_along,
    unpad,
    zero_filler,
)
from sdy.passes.spmd.plan.reshard_cost import before_reshards, is_on_all_devices, shardings_of_copies
from sdy.passes.spmd.plan.special_rules import rule_of_convolution
from sdy.passes.spmd.shards.halo import Exchange
from sdy.passes.spmd.shards.layout import Layout
from sdy.passes.spmd.shards.sliding_window import (
    SlidingWindow,
    halo_exchanges,
    local_windows,
    windowed_dims,
    windows_stay,
)
from sdy.rule import FactorKind, OpShardingRule
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.windows import WindowDimension, padding_elements
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.emitter import before, with_shape
from sdy.stablehlo.windows import ReduceWindowOp


def _exchange_for_reduce_window(op: ReduceWindowOp, resolution: Resolution) -> bool:
    """Exchange halos of the inputs, padded with their initial values."""
    return _WindowedOperation(op, op.inputs, op.init_values, "base_dilations").resolve(resolution)


def _exchange_for_convolution(op: ConvolutionOp, resolution: Resolution) -> bool:
    """Exchange halos of the input, padded with zeros.

    If the planner splits windows, the kernel may be split like the input. This case, and that of windows without halos,
    are handled here because the sharding rule does not allow these shardings.
    """
    return _WindowedOperation(op, (op.lhs,), (), "lhs_dilation").resolve(resolution)


@dataclass(frozen=True)
class _WindowedOperation:
    """Operation with sliding windows.

    Attributes:
        op: The operation.
        operands: The operands that its windows slide over.
        padding_values: The padding value of each of these operands; zero if empty.
        dilation: The name of the property with the base dilation.
    """

    op: ReduceWindowOp | ConvolutionOp
    operands: Sequence[SSAValue]
    padding_values: Sequence[SSAValue]
    dilation: str

    def resolve(self, resolution: Resolution) -> bool:
        """Exchange the rows that each device's windows cover; return False if that is impossible or does not pay."""
        layouts = [layout_of(value) for value in self._tensors]
        exchanges = halo_exchanges(self.op, layouts, resolution.planner.exchange, resolution.planner.splits_windows)
        if exchanges is None:
            return False
        if exchanges:
            self._compute(exchanges, local_windows(self.op, layouts, exchanges), resolution)
        return True

    @property
    def _tensors(self) -> Sequence[SSAValue]:
        return (*self.op.operands, *self.op.results)

    def _compute(
        self, exchanges: Mapping[SlidingWindow, Exchange], windows: Sequence[WindowDimension], resolution: Resolution
    ) -> None:
        op, input_sharding = self.op, get_sharding(self.operands[0])
        assert input_sharding is not None
        fillers = [filler_of(value) for value in self.padding_values] or [zero_filler(op, self.operands[0])]
        held = self._held_operands(exchanges) if resolution.planner.trims_messages else {}
        shardings_before = [_sharding(value, input_sharding.mesh) for value in self._tensors]
        tensors: list[Tensor] = []
        windowed = zip(self._tensors, windowed_dims(op, exchanges), shardings_before, strict=True)
        for index, ((value, dims, sharding), filler) in enumerate(zip(windowed, fillers * 2, strict=False)):
            if index in held:
                tensors.append(held[index])
            else:
                tensors.append((pad_to(op, value, padded_along(value, dims), filler, sharding), sharding))
        scalar = TensorSharding.replicated_open(input_sharding.mesh, 0)
        devices = resolution.devices(layout_of(self.operands[0]).mesh)
        all_tensors = [*tensors, *((filler.value, scalar) for filler in fillers)]
        axes = layout_of(self.operands[0]).axes
        names = {axis.name for sliding in exchanges for axis in axes[sliding.before]}
        builder = ExchangeBuilder(op, all_tensors, names, devices)
        count = len(op.operands)
        operands, inner_fillers = list(builder.arguments[:count]), builder.arguments[count:]
        for index, (filler, inner) in enumerate(zip(fillers, inner_fillers, strict=True)):
            for sliding, exchange in exchanges.items():
                along = DimExchange(builder, shardings_before[index], sliding.before, Filler(inner, filler.is_zero))
                if index in held:
                    operands[index] = along.take(operands[index], exchange.ranges)
                else:
                    operands[index] = along.run(operands[index], exchange)
        types = [
            with_shape(result, padded_along(result, [sliding.after for sliding in exchanges])) for result in op.results
        ]
        shardings = [_sharding(result, input_sharding.mesh) for result in op.results]
        local = type(op).create(
            operands=operands,
            properties=op.properties | self._properties(windows),
            attributes={name: value for name, value in op.attributes.items() if name != SHARDING},
            result_types=[builder.local_type(*each) for each in zip(types, shardings, strict=True)],
            regions=[op.detach_region(region) for region in op.regions],
        )
        builder.compute(local, shardings)
        padded_results = builder.finish(local.results, types, shardings)
        results = zip(padded_results, op.results, shardings, strict=True)
        Rewriter.replace_op(op, [], [unpad(op, value, shape_of(old), sharding) for value, old, sharding in results])

    def _held_operands(self, windows: Collection[SlidingWindow]) -> dict[int, Tensor]:
        """Return, by index, each operand that all devices hold, before it is sharded along `windows`.

        Devices also hold an operand that is gathered for another operation of the block.
        """
        held: dict[int, Tensor] = {}
        for index, value in enumerate(self.operands):
            source, sharding = before_reshards(value), get_sharding(value)
            if sharding is None:
                continue
            for sliding in windows:
                sharding = sharding.with_dim(sliding.before, DimSharding())
            is_gathered = any(equivalent(copy, sharding) for copy in shardings_of_copies(value, self.op))
            if is_gathered or (source is not value and is_on_all_devices(source)):
                held[index] = before(self.op).insert(ReshardOp(source, sharding)), sharding
        return held

    def _properties(self, windows: Sequence[WindowDimension]) -> dict[str, Attribute]:
        return {
            "padding": padding_elements([window.padding for window in windows]),
            self.dilation: i64_array(*(window.base_dilation for window in windows)),
        }


def _sharding(value: SSAValue, mesh: str | Mesh) -> TensorSharding:
    """Return the sharding of a value, or a closed replicated one on `mesh` if it has none."""
    return get_sharding(value) or TensorSharding.replicated_closed(mesh, rank(value.type))


def _replicate_convolution(op: ConvolutionOp, resolution: Resolution) -> bool:
    """Replicate the factors of a convolution that move elements, and those of its kernel if the planner splits it."""
    rule = permuting_rule(op)
    if rule is None:
        return False
    windows = resolution.planner.splits_windows and _replicate_windows(op, rule)
    return replicate_permuted(op, resolution) or windows


def _replicate_windows(op: ConvolutionOp, rule: OpShardingRule) -> bool:
    """Replicate the spatial dimensions of the kernel, and drop their axes from the subsequent all-reduces."""
    kernel, dims = layout_of(op.rhs), op.dimension_numbers.data.kernel_spatial_dimensions
    axes = [axis for dim in dims for axis in kernel.axes[dim]]
    if not axes:
        return False
    replicate_factors(op, rule, {factor for dim in dims for factor in rule.operands[1][dim]})
    for combined in [use.operation for use in op.result.uses]:
        if not isinstance(combined, AllReduceOp):
            raise op_error(
                op,
                "has a user that is not an all-reduce of its partial results, so that its kernel cannot be replicated",
            )
        left = subtract(combined.reduction_axes.data, axes, kernel.mesh)
        if left:
            combined.reduction_axes = AxisRefListAttr(left)
        else:
            Rewriter.replace_op(combined, [], [combined.tensor])
    return True


def _pad_convolution(conversion: PaddedConversion[ConvolutionOp]) -> bool:
    """Pad a convolution.

    Along a spatial dimension, the padding is zero, like the values outside of the input, and adds windows, whose
    results are cut off. Along a batch or feature dimension of groups of size 1, the padding adds groups.
    """
    op, lhs, result = conversion.op, conversion.operands[0], conversion.results[0]
    dims = op.dimension_numbers.data
    moved = {0: dims.input_spatial_dimensions, 2: dims.output_spatial_dimensions}
    if set(conversion.operands[1].uneven_dims) & set(dims.kernel_spatial_dimensions):
        return False
    if not conversion.carries(FactorKind.REDUCTION, moved=moved):
        return False
    shape_of_result, wanted = list(op.output_shape(op.window(op.padding))), result.padded_shape
    has_more_batch_groups = dims.input_batch_dimension in lhs.uneven_dims and op.batch_group_count.value.data > 1
    if has_more_batch_groups:
        shape_of_result[dims.output_batch_dimension] = 1
    if any(axes and shape_of_result[dim] != wanted[dim] for dim, axes in enumerate(result.axes)):
        return False
    if has_more_batch_groups:
        op.batch_group_count = IntegerAttr(lhs.padded_shape[dims.input_batch_dimension], i64)
    if dims.input_feature_dimension in lhs.uneven_dims and op.feature_group_count.value.data > 1:
        op.feature_group_count = IntegerAttr(lhs.padded_shape[dims.input_feature_dimension], i64)
    for operand in (0, 1):
        conversion.fill(operand, [*conversion.reduced_dims(operand), *moved.get(operand, ())], 0)
    if tuple(shape_of_result) != wanted:
        users = list(op.result.uses)
        full_result = Rewriter.replace_value_with_new_type(op.result, with_shape(op.result, shape_of_result))
        cut = conversion.padding.resize(Insertion.after(op), full_result, result, wanted)
        for use in users:
            use.operation.operands[use.index] = cut
    return True


def _replicated_factors(op: ConvolutionOp, rule: OpShardingRule) -> set[int]:
    """Return the factors that must also be replicated: those of windows, and result factors that no operand has."""
    kernel = rule.operands[1]
    windows = {factor for dim in op.dimension_numbers.data.kernel_spatial_dimensions for factor in kernel[dim]}
    return windows | created_factors(rule)


def _illegality_convolution(
    op: ConvolutionOp, operands: Sequence[Layout], results: Sequence[Layout]
) -> Illegality | None:
    return illegality_by_rule(op, operands, results, _replicated_factors)


def _illegality_reduce_window(
    op: ReduceWindowOp, operands: Sequence[Layout], results: Sequence[Layout]
) -> Illegality | None:
    return illegality_by_dims(operands, results, lambda dim, parts, sizes: windows_stay(op, dim, sizes))


def _lower_convolution(conversion: OpConversion[ConvolutionOp]) -> None:
    """Divide the numbers of feature and batch groups by the numbers of shards that split them."""
    op, (lhs, rhs) = conversion.op, conversion.operands
    dims = op.dimension_numbers.data
    properties = {
        **op.properties,
        "feature_group_count": _local_groups(op.feature_group_count, rhs.parts(dims.kernel_output_feature_dimension)),
        "batch_group_count": _local_groups(op.batch_group_count, lhs.parts(dims.input_batch_dimension)),
    }
    local = ConvolutionOp.create(operands=op.operands, properties=properties, result_types=op.result_types)
    conversion.replace(conversion.before().insert(local))


def _local_groups(groups: IntegerAttr[Any], parts: int) -> IntegerAttr[I64]:
    count = groups.value.data
    return IntegerAttr(count // math.gcd(count, parts), i64)


PARTITIONING: PartitioningTable = {
    ConvolutionOp: OperationPartitioning(
        _exchange_for_convolution,
        _replicate_convolution,
        _pad_convolution,
        _illegality_convolution,
        _lower_convolution,
        rule=rule_of_convolution,
    ),
    ReduceWindowOp: OperationPartitioning(
        _exchange_for_reduce_window, pad=carries, illegality=_illegality_reduce_window
    ),
}
