"""Two-stage reductions: of each shard of a dimension, then of the partial results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import Axes
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.shapes import shape
from sdy.passes.spmd.shards.elements import identities_of
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduction import ReduceOp


@dataclass(frozen=True)
class Cut:
    """The split of an operand dimension into two: one of `count` parts and one of the elements of each part."""

    dim: int
    count: int
    axes: Axes = ()
    """The axes that shard the dimension of parts; empty if it is not sharded."""

    def apply(self, value: SSAValue, emit: Emitter, filler: SSAValue | None = None) -> SSAValue:
        """Reshape `value`, splitting the dimension into parts and the elements of each part.

        Args:
            value: The operand.
            emit: The emitter.
            filler: The scalar to pad an uneven dimension with.
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
        """Return the index of a dimension after the cut; for the cut one, the dimension of elements in each part."""
        return dim + (dim >= self.dim)


def with_parts(sharding: TensorSharding, place: int, axes: Axes) -> TensorSharding:
    """Insert a dimension of parts, sharded by `axes`, at index `place` of `sharding`."""
    dims = list(sharding.dims)
    dims.insert(place, DimSharding(axes))
    return replace(sharding, dims=tuple(dims))


def dims_to_cut(op: ReduceOp) -> list[int]:
    """Return the dimensions along which `op` may be reduced in stages, in ascending order.

    Unless the reduction is known to be commutative, only the first one is returned, because the order of elements is
    significant.
    """
    inputs, reduced = ([tensor_type(value).element_type for value in values] for values in (op.inputs, op.init_values))
    if inputs != reduced:
        return []
    dims = sorted(dim for dim in op.dimensions.get_values() if shape(op.inputs[0].type)[dim] > 1)
    return dims if identities_of(op.body, reduced) is not None else dims[:1]


def reduce_in_stages(op: ReduceOp, cut: Cut, starts: Sequence[SSAValue]) -> tuple[ReduceOp, ReduceOp]:
    """Replace `op` by a reduction of each part and a reduction of the partial results.

    Args:
        op: The reduction.
        cut: The split of a reduced dimension.
        starts: The initial values of the first stage.

    Returns:
        The reductions of both stages. The partial results are sharded like the parts.
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
