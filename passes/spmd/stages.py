"""Reductions in two stages: each part of a dimension by itself, and then the partial results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.shapes import shape
from sdy.passes.spmd.neutral_elements import identities_of
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduction import ReduceOp

Axes = tuple[AxisRef, ...]


@dataclass(frozen=True)
class Cut:
    """A dimension of an operand that is cut into `count` parts by `axes`, none where no sharding does it."""

    dim: int
    count: int
    axes: Axes = ()

    def apply(self, value: SSAValue, emit: Emitter, filler: SSAValue | None = None) -> SSAValue:
        """The value with a dimension of the parts before the one of what is in each.

        Where they would not all be of one size, the last ones end in the scalar `filler`.
        """
        sharding = get_sharding(value)
        sizes = list(shape(value.type))
        missing = -sizes[self.dim] % self.count
        if missing:
            assert filler is not None
            high = [missing if dim == self.dim else 0 for dim in range(len(sizes))]
            value = emit.insert(PadOp(value, filler, [0] * len(sizes), high))
            if sharding is not None:
                set_sharding(value, sharding)
        sizes[self.dim : self.dim + 1] = [self.count, (sizes[self.dim] + missing) // self.count]
        result = emit.reshape(value, sizes)
        if sharding is not None and self.axes:
            dims = list(sharding.dims)
            dims[self.dim : self.dim + 1] = [DimSharding(self.axes), DimSharding()]
            set_sharding(result, replace(sharding, dims=tuple(dims)))
        return result

    def moved(self, dim: int) -> int:
        """Where a dimension is after the cut; of the one that is cut, what is in each part."""
        return dim + (dim >= self.dim)


def with_parts(sharding: TensorSharding, place: int, axes: Axes) -> TensorSharding:
    """`sharding` with a dimension of parts, split by `axes`, at `place`."""
    dims = list(sharding.dims)
    dims.insert(place, DimSharding(axes))
    return replace(sharding, dims=tuple(dims))


def dims_to_cut(op: ReduceOp) -> list[int]:
    """The dimensions along which `op` may be reduced in stages, in their order.

    Unless the reduction is known to be commutative, the order of elements matters: then that is the first one only.
    """
    given, reduced = ([tensor_type(value).element_type for value in values] for values in (op.inputs, op.init_values))
    if given != reduced:
        return []
    dims = sorted(dim for dim in op.dimensions.get_values() if shape(op.inputs[0].type)[dim] > 1)
    return dims if identities_of(op.body, reduced) is not None else dims[:1]


def reduce_in_stages(op: ReduceOp, cut: Cut, starts: Sequence[SSAValue]) -> tuple[ReduceOp, ReduceOp]:
    """Replace `op` by the reduction of each part, from `starts` on, and that of the partial results; both are returned.

    The partial results lie where the parts are that are reduced, the parts first among what is kept of the dimension.
    """
    emit = Emitter(InsertPoint.before(op), op)
    reduced = op.dimensions.get_values()
    place = sum(1 for dim in range(cut.dim) if dim not in reduced)
    inputs = [cut.apply(value, emit, start) for value, start in zip(op.inputs, starts, strict=True)]
    parts = ReduceOp.create(
        operands=[*inputs, *starts],
        result_types=[_with_size(result, place, cut.count) for result in op.results],
        properties={"dimensions": i64_array(*map(cut.moved, reduced))},
        regions=[op.body.clone()],
    )
    emit.insert(parts)
    total = ReduceOp.create(
        operands=[*parts.results, *op.init_values],
        result_types=op.result_types,
        properties={"dimensions": i64_array(place)},
        attributes=op.attributes,
        regions=[op.body.clone()],
    )
    emit.insert(total)
    Rewriter.replace_op(op, [], total.results)
    sharding = next((each for each in map(get_sharding, op.inputs) if each is not None), None)
    if sharding is not None and cut.axes:
        kept = tuple(dim for index, dim in enumerate(sharding.dims) if index not in reduced)
        for result in parts.results:
            set_sharding(result, with_parts(replace(sharding, dims=kept), place, cut.axes))
    return parts, total


def _with_size(value: SSAValue, dim: int, size: int) -> TensorType[Attribute]:
    type_ = tensor_type(value)
    sizes = type_.get_shape()
    return TensorType(type_.element_type, (*sizes[:dim], size, *sizes[dim:]))
