"""Operations on padded tensors: what it takes that the elements of the result are those of the unpadded operation.

Along a factor that passes through, an element depends on elements at the same place only, so what the padding holds
ends up in the padding of the result. Where a factor is reduced, the padding is filled with what changes no result.
Operations that name sizes or places are told those of the padded tensors.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    i64,
)
from xdsl.ir import Operation, SSAValue

from sdy.dialect import ConstantOp as ShardedConstantOp
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.traits import has_trait
from sdy.passes.partitioning.constants import splat_of_type
from sdy.passes.partitioning.emitter import Emitter
from sdy.passes.partitioning.layout import Layout
from sdy.passes.partitioning.padding import Padding, Place
from sdy.passes.partitioning.reductions import bounds, identities_of
from sdy.passes.partitioning.site import OpT, Site
from sdy.rule import FactorKind, OpShardingRule
from sdy.stablehlo.attributes.operation_attributes import I64Array, i64_array
from sdy.stablehlo.batch_norm import BatchNormInferenceOp
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.constants import ConstantOp, IotaOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.fft import FftOp
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.linear_algebra import CholeskyOp, TriangularSolveOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduce_window import ReduceWindowOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.select_and_scatter import SelectAndScatterOp
from sdy.stablehlo.shape import BitcastConvertOp, ConcatenateOp, ReshapeOp, ReverseOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp
from sdy.stablehlo.sort import SortOp

_MAKES_ELEMENTS = (BroadcastInDimOp, IotaOp)


@dataclass(frozen=True)
class PaddedSite(Generic[OpT]):
    """An operation whose values have padded types already, though it was written for unpadded ones."""

    site: Site[OpT]
    rule: OpShardingRule | None
    padding: Padding

    @property
    def op(self) -> OpT:
        """The operation."""
        return self.site.op

    @property
    def operands(self) -> tuple[Layout, ...]:
        """The layouts of the operands; their shapes are those without padding."""
        return self.site.operands

    @property
    def results(self) -> tuple[Layout, ...]:
        """The layouts of the results."""
        return self.site.results

    def fill(self, operand: int, dims: Collection[int], element: float | SSAValue) -> None:
        """Fill the padding of an operand along `dims`."""
        op = self.site.op
        value = op.operands[operand]
        op.operands[operand] = self.padding.fill(Place.before(op), value, self.operands[operand], dims, element)

    def reduced_dims(self, operand: int) -> list[int]:
        """The uneven dimensions of an operand that are reduced."""
        if self.rule is None:
            return []
        mapping, reduction = self.rule.operands[operand], self.rule.reduction
        return [
            dim for dim in self.operands[operand].uneven_dims if any(factor in reduction for factor in mapping[dim])
        ]

    def carries(self, *kinds: FactorKind) -> bool:
        """Whether each uneven dimension is one whole factor, padded alike wherever it is, that passes through.

        It may also be of one of `kinds`.
        """
        if (rule := self.rule) is None:
            return False
        padded_sizes: dict[int, set[int]] = {}
        tensors = list(zip(rule.tensors, self.site.layouts, strict=True))
        for mapping, layout in tensors:
            for dim in layout.uneven_dims:
                if len(mapping[dim]) != 1:
                    return False
                padded_sizes[mapping[dim][0]] = set()
        for mapping, layout in tensors:
            for factors, size, padded in zip(mapping, layout.shape, layout.padded_shape, strict=True):
                for factor in padded_sizes.keys() & set(factors):
                    if len(factors) > 1 or size != rule.factor_sizes[factor]:
                        return False
                    padded_sizes[factor].add(padded)
        return all(
            len(sizes) == 1 and (rule.kind(factor) in kinds or self._passes_through(rule, factor))
            for factor, sizes in padded_sizes.items()
        )

    def _passes_through(self, rule: OpShardingRule, factor: int) -> bool:
        goes_in, comes_out = (
            any((factor,) in mapping for mapping in tensors) for tensors in (rule.operands, rule.results)
        )
        is_made = not goes_in and isinstance(self.op, _MAKES_ELEMENTS)
        return rule.kind(factor) is FactorKind.PASS_THROUGH and comes_out and (goes_in or is_made)


PadOperation = Callable[[PaddedSite[Any]], bool]
"""Makes an operation the one on padded tensors. False, and nothing is changed, where it is not known how."""

_TABLE: dict[type[Operation], PadOperation] = {}


def pad_operation(site: PaddedSite[Operation]) -> bool:
    """Make an operation the one on padded tensors. False, and nothing is changed, where it is not known how."""
    pad = _carry if has_trait(site.op, Elementwise) else _TABLE.get(type(site.op))
    return pad is not None and pad(site)


def _of(*op_classes: type[Operation]) -> Callable[[Callable[[PaddedSite[Any]], bool]], PadOperation]:
    def enter(pad: PadOperation) -> PadOperation:
        _TABLE.update(dict.fromkeys(op_classes, pad))
        return pad

    return enter


@_of(
    BatchNormInferenceOp,
    BitcastConvertOp,
    BroadcastInDimOp,
    CholeskyOp,
    ConcatenateOp,
    FftOp,
    IotaOp,
    ReduceWindowOp,
    ReshapeOp,
    ReverseOp,
    SelectAndScatterOp,
    SortOp,
    TransposeOp,
    TriangularSolveOp,
)
def _carry(site: PaddedSite[Operation]) -> bool:
    return site.carries()


@_of(CollectivePermuteOp)
def _collective_permute(site: PaddedSite[CollectivePermuteOp]) -> bool:
    return site.operands[0].padded_shape == site.results[0].padded_shape


@_of(ConstantOp, ShardedConstantOp)
def _constant(site: PaddedSite[ConstantOp] | PaddedSite[ShardedConstantOp]) -> bool:
    value = site.op.value
    if not isinstance(value, DenseIntOrFPElementsAttr) or not value.is_splat():
        return False
    site.op.value = splat_of_type(value, tensor_type(site.op.results[0]))
    return True


@_of(SliceOp)
def _slice(site: PaddedSite[SliceOp]) -> bool:
    """What is cut off at the end becomes padding, where that is all of it."""
    op, operand, result = site.op, site.operands[0], site.results[0]
    starts, limits, strides = (list(each.get_values()) for each in (op.start_indices, op.limit_indices, op.strides))
    for dim in {*operand.uneven_dims, *result.uneven_dims}:
        if not _keeps_size(operand, result, dim) or starts[dim] != 0 or strides[dim] != 1:
            return False
        limits[dim] = operand.padded_shape[dim]
    op.limit_indices = i64_array(*limits)
    return True


@_of(PadOp)
def _pad(site: PaddedSite[PadOp]) -> bool:
    """What is put at the end is written into the padding, where there is room for it."""
    op, operand, result = site.op, site.operands[0], site.results[0]
    low, high, interior = (
        list(each.get_values()) for each in (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    )
    dims = {*operand.uneven_dims, *result.uneven_dims}
    if any(not _keeps_size(operand, result, dim) or low[dim] or interior[dim] for dim in dims):
        return False
    site.fill(0, [dim for dim in dims if high[dim] > 0], op.padding_value)
    op.edge_padding_high = i64_array(*(0 if dim in dims else size for dim, size in enumerate(high)))
    return True


def _keeps_size(operand: Layout, result: Layout, dim: int) -> bool:
    return operand.axes[dim] == result.axes[dim] and operand.padded_shape[dim] == result.padded_shape[dim]


@_of(DotGeneralOp, DotOp)
def _dot(site: PaddedSite[DotGeneralOp] | PaddedSite[DotOp]) -> bool:
    """Both sides are filled with zeros: a zero on one side only would not make up for a NaN on the other."""
    if not site.carries(FactorKind.REDUCTION):
        return False
    for operand in (0, 1):
        site.fill(operand, site.reduced_dims(operand), 0)
    return True


@_of(ConvolutionOp)
def _convolution(site: PaddedSite[ConvolutionOp]) -> bool:
    dims = site.op.dimension_numbers.data
    spatial = (dims.input_spatial_dimensions, dims.kernel_spatial_dimensions)
    is_spatial = any(set(layout.uneven_dims) & set(each) for layout, each in zip(site.operands, spatial, strict=True))
    if is_spatial or not site.carries(FactorKind.REDUCTION):
        return False
    for operand in (0, 1):
        site.fill(operand, site.reduced_dims(operand), 0)
    return True


@_of(ReduceOp)
def _reduce(site: PaddedSite[ReduceOp]) -> bool:
    op = site.op
    if not site.carries(FactorKind.REDUCTION):
        return False
    if not any(site.reduced_dims(operand) for operand in range(len(op.inputs))):
        return True
    identities = identities_of(op.body, [tensor_type(value).element_type for value in op.inputs])
    if identities is None:
        return False
    for operand, identity in enumerate(identities):
        site.fill(operand, site.reduced_dims(operand), identity)
    return True


@_of(DynamicSliceOp)
def _dynamic_slice(site: PaddedSite[DynamicSliceOp]) -> bool:
    if not site.carries():
        return False
    site.op.slice_sizes = _padded_sizes(site.op.slice_sizes.get_values(), site.results[0])
    return True


@_of(DynamicUpdateSliceOp)
def _dynamic_update_slice(site: PaddedSite[DynamicUpdateSliceOp]) -> bool:
    """Where the update is a part of an uneven dimension, it begins no later than it would without padding."""
    op, operand, update = site.op, site.operands[0], site.operands[1]
    if not site.carries():
        return False
    for dim in operand.uneven_dims:
        if update.shape[dim] == operand.shape[dim]:
            continue
        start = op.start_indices[dim]
        op.operands[2 + dim] = _clamped(site.site.before(), start, [operand.shape[dim] - update.shape[dim]], ())
    return True


@_of(GatherOp)
def _gather(site: PaddedSite[GatherOp]) -> bool:
    """Indices are clamped to the unpadded operand first."""
    op, operand, indices = site.op, site.operands[0], site.operands[1]
    numbers = op.dimension_numbers.data
    if not site.carries(FactorKind.REDUCTION):
        return False
    sizes = list(op.slice_sizes.get_values())
    if set(site.reduced_dims(0)) & set(numbers.start_index_map):
        last = [operand.shape[dim] - sizes[dim] for dim in numbers.start_index_map]
        along = (numbers.index_vector_dim,) if numbers.index_vector_dim < len(indices.shape) else ()
        op.operands[1] = _clamped(site.padding.emitter(Place.before(op), indices), op.start_indices, last, along)
    for dim in operand.uneven_dims:
        if dim not in site.reduced_dims(0) and dim not in numbers.operand_batching_dims:
            sizes[dim] = operand.padded_shape[dim]
    op.slice_sizes = i64_array(*sizes)
    return True


@_of(ScatterOp)
def _scatter(site: PaddedSite[ScatterOp]) -> bool:
    """Index vectors in the padding are filled with -1, so that their updates are ignored."""
    op = site.op
    place = len(op.inputs)
    dims = site.reduced_dims(place)
    if not site.carries(FactorKind.REDUCTION) or (
        dims and not op.scatter_dimension_numbers.data.scatter_dims_to_operand_dims
    ):
        return False
    if dims:
        # Unsigned indices have no number that is always outside.
        op.operands[place] = site.padding.emitter(Place.before(op), site.operands[place]).convert(
            op.scatter_indices, i64
        )
        site.fill(place, dims, -1)
    return True


def _padded_sizes(sizes: Sequence[int], layout: Layout) -> I64Array:
    uneven = layout.uneven_dims
    return i64_array(*(layout.padded_shape[dim] if dim in uneven else size for dim, size in enumerate(sizes)))


def _clamped(emit: Emitter, indices: SSAValue, last: Sequence[int], along: Sequence[int]) -> SSAValue:
    """`indices` limited to 0 and the numbers `last`, of which there is one for each place along `along`."""
    type_ = tensor_type(indices)
    element_type = cast(IntegerType, type_.element_type)
    greatest = int(bounds(element_type)[1])
    limits = emit.integers([min(each, greatest) for each in last], [len(last)] * len(along), element_type)
    high = emit.broadcast(limits, along, type_.get_shape()) if type_.get_shape() else limits
    return emit.clamp(emit.filled(type_, 0), indices, high)
