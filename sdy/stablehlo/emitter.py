"""Making StableHLO operations at a place in a program: the few that partitioning needs, their types worked out."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    ComplexType,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.diagnostics import error
from sdy.ir.elements import dense
from sdy.ir.shapes import tensor_of
from sdy.stablehlo.attributes.enums import ComparisonDirection, ComparisonDirectionAttr
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import ConstantOp, DeviceIdOp, PartitionIdOp
from sdy.stablehlo.elementwise import AddOp, BinaryElementwiseOp, CommutativeElementwiseOp, ConvertOp
from sdy.stablehlo.mixed_elementwise import ClampOp, CompareOp, SelectOp
from sdy.stablehlo.reduction import ReduceOp, reducer_body
from sdy.stablehlo.shape import BitcastConvertOp, ConcatenateOp, ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp

_DEVICE_ID = TensorType(IntegerType(32, Signedness.UNSIGNED), ())


class Emitter:
    """Inserts operations at `place`, one after the other, at the location of the operation `source`.

    A device knows which it is by the number that `device_id` gives it.
    """

    def __init__(self, place: InsertPoint, source: Operation, device_id: type[DeviceIdOp] = PartitionIdOp):
        self._place = place
        self._location = source.location
        self._device_id = device_id

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op` and return its first result."""
        op.location = self._location
        Rewriter.insert_op(op, self._place)
        return op.results[0]

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape; the value itself where it has that shape."""
        if tensor_type(value).get_shape() == tuple(shape):
            return value
        return self.insert(ReshapeOp(value, with_shape(value, shape)))

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Dimension i of the result is dimension `permutation[i]`; the value itself where nothing moves."""
        if list(permutation) == list(range(len(permutation))):
            return value
        shape = tensor_type(value).get_shape()
        return self.insert(TransposeOp(value, permutation, with_shape(value, [shape[dim] for dim in permutation])))

    def broadcast(self, value: SSAValue, dims: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """The value repeated to `shape`, its dimension i being dimension `dims[i]` of the result."""
        return self.insert(BroadcastInDimOp(value, dims, with_shape(value, shape)))

    def concatenate(self, values: Sequence[SSAValue], dim: int) -> SSAValue:
        """The values one after the other along a dimension; a single one itself."""
        if len(values) == 1:
            return values[0]
        shape = list(tensor_type(values[0]).get_shape())
        shape[dim] = sum(tensor_type(value).get_shape()[dim] for value in values)
        properties = {"dimension": IntegerAttr(dim, i64)}
        return self.insert(
            ConcatenateOp.create(operands=values, properties=properties, result_types=[with_shape(values[0], shape)])
        )

    def constant(self, value: DenseIntOrFPElementsAttr) -> SSAValue:
        """A constant."""
        return self.insert(ConstantOp(value))

    def integers(self, values: Sequence[int], shape: Sequence[int], element_type: IntegerType = i64) -> SSAValue:
        """A constant of integers, in row-major order; a single value fills the whole shape."""
        return self.constant(_dense(tensor_of(element_type, shape), values))

    def filled(self, type_: TensorType[Any], element: float) -> SSAValue:
        """A constant with the same element everywhere; of complex numbers, a real one.

        Raises DiagnosticError where there are no constants of such elements.
        """
        return self.constant(self.splat(type_, element))

    def splat(self, type_: TensorType[Any], element: float) -> DenseIntOrFPElementsAttr:
        """The elements of the constant that `filled` makes."""
        count = 0 if 0 in type_.get_shape() else 1
        is_complex = isinstance(type_.element_type, ComplexType)
        try:
            return _dense(type_, [(element, 0) if is_complex else element] * count)
        except (AttributeError, NotImplementedError):
            raise error(self._location, f"there are no constants of {type_.element_type}, as it would take") from None

    def binary(self, op_class: type[BinaryElementwiseOp], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An elementwise operation on two values of one type."""
        return self.insert(op_class.create(operands=[lhs, rhs], result_types=[lhs.type]))

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The sum of two values of one type."""
        return self.binary(AddOp, lhs, rhs)

    def convert(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """The value with elements of another type."""
        result = tensor_of(element_type, tensor_type(value).get_shape())
        return self.insert(ConvertOp.create(operands=[value], result_types=[result]))

    def bitcast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """The bits of the value as elements of another type of the same width."""
        result = tensor_of(element_type, tensor_type(value).get_shape())
        return self.insert(BitcastConvertOp.create(operands=[value], result_types=[result]))

    def reduce(
        self, value: SSAValue, dims: Sequence[int], reducer: type[CommutativeElementwiseOp], identity: float
    ) -> SSAValue:
        """The elements along `dims` combined by `reducer`, which does nothing to an element and `identity`."""
        type_ = tensor_type(value)
        kept = [size for dim, size in enumerate(type_.get_shape()) if dim not in dims]
        init = self.filled(tensor_of(type_.element_type, ()), identity)
        return self.insert(
            ReduceOp.create(
                operands=[value, init],
                properties={"dimensions": i64_array(*dims)},
                result_types=[with_shape(value, kept)],
                regions=[reducer_body(reducer, value)],
            )
        )

    def compare(self, direction: ComparisonDirection, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Where `lhs` and `rhs`, of one type, stand in a relation."""
        return self.insert(
            CompareOp.create(
                operands=[lhs, rhs],
                properties={"comparison_direction": ComparisonDirectionAttr(direction)},
                result_types=[tensor_of(i1, tensor_type(lhs).get_shape())],
            )
        )

    def select(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        """`on_true` where the condition, of the same shape or a scalar, holds, else `on_false`."""
        return self.insert(SelectOp.create(operands=[condition, on_true, on_false], result_types=[on_true.type]))

    def clamp(self, low: SSAValue, value: SSAValue, high: SSAValue) -> SSAValue:
        """The value limited to `low` .. `high`, of its shape."""
        return self.insert(ClampOp.create(operands=[low, value, high], result_types=[value.type]))

    def slice(
        self, value: SSAValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> SSAValue:
        """The elements from `starts` to `limits`, these excluded, in steps of `strides` if given."""
        strides = strides or [1] * len(starts)
        properties = {
            "start_indices": i64_array(*starts),
            "limit_indices": i64_array(*limits),
            "strides": i64_array(*strides),
        }
        shape = [-((start - limit) // step) for start, limit, step in zip(starts, limits, strides, strict=True)]
        return self.insert(
            SliceOp.create(operands=[value], properties=properties, result_types=[with_shape(value, shape)])
        )

    def dynamic_slice(self, value: SSAValue, starts: Sequence[SSAValue], sizes: Sequence[int]) -> SSAValue:
        """The part of `sizes` that begins at `starts`, one scalar for each dimension."""
        return self.insert(DynamicSliceOp(value, starts, sizes))

    def dynamic_update_slice(self, value: SSAValue, update: SSAValue, starts: Sequence[SSAValue]) -> SSAValue:
        """The value with `update` in the place of the part that begins at `starts`, one scalar for each dimension."""
        return self.insert(DynamicUpdateSliceOp.create(operands=[value, update, *starts], result_types=[value.type]))

    def device_id(self) -> SSAValue:
        """The id of the running device, `tensor<i64>`."""
        return self.convert(self.insert(self._device_id.create(result_types=[_DEVICE_ID])), i64)

    def of_device(self, values: Sequence[int]) -> SSAValue:
        """The one of `values`, one for each device, that belongs to the running device: `tensor<i64>`."""
        if len(set(values)) == 1:
            return self.integers([values[0]], ())
        return self.reshape(self.entry_of_device(values), ())

    def entry_of_device(self, values: Sequence[int], element_type: IntegerType = i64) -> SSAValue:
        """The one of `values`, one for each device, that belongs to the running device: a tensor of one element."""
        device = self.device_id()
        return self.dynamic_slice(self.integers(values, (len(values),), element_type), [device], (1,))


def _dense(type_: TensorType[Any], values: Sequence[Any]) -> DenseIntOrFPElementsAttr:
    """A constant of `values`, or of the one that fills it, however large it is."""
    element_type = type_.element_type
    if isinstance(element_type, IntegerType):
        values = [element_type.get_normalized_value(value) for value in values]
    return dense(type_, element_type.pack(values))


def before(op: Operation) -> Emitter:
    """Inserts operations in front of `op`."""
    return Emitter(InsertPoint.before(op), op)


def after(op: Operation) -> Emitter:
    """Inserts operations behind `op`."""
    return Emitter(InsertPoint.after(op), op)


def with_shape(value: SSAValue, shape: Sequence[int]) -> TensorType[Attribute]:
    """The type of tensors of `shape` with the elements of `value`."""
    return tensor_of(tensor_type(value).element_type, shape)
