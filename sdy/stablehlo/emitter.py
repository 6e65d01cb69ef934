"""Builder of the StableHLO operations that partitioning inserts, with result types inferred."""

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
    """Builder that inserts operations at one place, with the location of `source`.

    Args:
        insert_point: Where to insert.
        source: The operation whose location the new ones get.
        device_id: The operation that returns the id of the executing device.
    """

    def __init__(self, insert_point: InsertPoint, source: Operation, device_id: type[DeviceIdOp] = PartitionIdOp):
        self._insert_point = insert_point
        self._location = source.location
        self._device_id = device_id

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op` and return its first result."""
        op.location = self._location
        Rewriter.insert_op(op, self._insert_point)
        return op.results[0]

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Reshape a value, unless it has that shape already."""
        if tensor_type(value).get_shape() == tuple(shape):
            return value
        return self.insert(ReshapeOp(value, with_shape(value, shape)))

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Transpose a value: dimension i of the result is `permutation[i]`; the identity inserts nothing."""
        if list(permutation) == list(range(len(permutation))):
            return value
        shape = tensor_type(value).get_shape()
        return self.insert(TransposeOp(value, permutation, with_shape(value, [shape[dim] for dim in permutation])))

    def broadcast(self, value: SSAValue, dims: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """Broadcast a value to `shape`; its dimension i becomes `dims[i]` of the result."""
        return self.insert(BroadcastInDimOp(value, dims, with_shape(value, shape)))

    def concatenate(self, values: Sequence[SSAValue], dim: int) -> SSAValue:
        """Concatenate values along a dimension; a single value is returned unchanged."""
        if len(values) == 1:
            return values[0]
        shape = list(tensor_type(values[0]).get_shape())
        shape[dim] = sum(tensor_type(value).get_shape()[dim] for value in values)
        properties = {"dimension": IntegerAttr(dim, i64)}
        return self.insert(
            ConcatenateOp.create(operands=values, properties=properties, result_types=[with_shape(values[0], shape)])
        )

    def constant(self, value: DenseIntOrFPElementsAttr) -> SSAValue:
        """Insert a constant."""
        return self.insert(ConstantOp(value))

    def integers(self, values: Sequence[int], shape: Sequence[int], element_type: IntegerType = i64) -> SSAValue:
        """Insert a constant of integers in row-major order; a single value is a splat."""
        return self.constant(_dense(tensor_of(element_type, shape), values))

    def filled(self, type_: TensorType[Any], element: float) -> SSAValue:
        """Insert a splat constant; for a complex type the element is its real part.

        Raises:
            DiagnosticError: If constants of the element type cannot be represented.
        """
        return self.constant(self.splat(type_, element))

    def splat(self, type_: TensorType[Any], element: float) -> DenseIntOrFPElementsAttr:
        """Return the attribute of the constant that `filled` inserts."""
        count = 0 if 0 in type_.get_shape() else 1
        is_complex = isinstance(type_.element_type, ComplexType)
        try:
            return _dense(type_, [(element, 0) if is_complex else element] * count)
        except (AttributeError, NotImplementedError):
            raise error(self._location, f"constants of element type '{type_.element_type}' are not supported") from None

    def binary(self, op_class: type[BinaryElementwiseOp], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Insert a binary elementwise operation on two values of the same type."""
        return self.insert(op_class.create(operands=[lhs, rhs], result_types=[lhs.type]))

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Add two values of the same type."""
        return self.binary(AddOp, lhs, rhs)

    def convert(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Convert a value to another element type."""
        result = tensor_of(element_type, tensor_type(value).get_shape())
        return self.insert(ConvertOp.create(operands=[value], result_types=[result]))

    def bitcast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Bitcast a value to another element type of the same width."""
        result = tensor_of(element_type, tensor_type(value).get_shape())
        return self.insert(BitcastConvertOp.create(operands=[value], result_types=[result]))

    def reduce(
        self, value: SSAValue, dims: Sequence[int], reducer: type[CommutativeElementwiseOp], identity: float
    ) -> SSAValue:
        """Reduce a value along `dims` by `reducer`, with the initial value `identity`."""
        type_ = tensor_type(value)
        remaining = [size for dim, size in enumerate(type_.get_shape()) if dim not in dims]
        init = self.filled(tensor_of(type_.element_type, ()), identity)
        return self.insert(
            ReduceOp.create(
                operands=[value, init],
                properties={"dimensions": i64_array(*dims)},
                result_types=[with_shape(value, remaining)],
                regions=[reducer_body(reducer, value)],
            )
        )

    def compare(self, direction: ComparisonDirection, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Compare two values of the same type."""
        return self.insert(
            CompareOp.create(
                operands=[lhs, rhs],
                properties={"comparison_direction": ComparisonDirectionAttr(direction)},
                result_types=[tensor_of(i1, tensor_type(lhs).get_shape())],
            )
        )

    def select(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        """Select between two values by a condition of the same shape or a scalar."""
        return self.insert(SelectOp.create(operands=[condition, on_true, on_false], result_types=[on_true.type]))

    def clamp(self, low: SSAValue, value: SSAValue, high: SSAValue) -> SSAValue:
        """Clamp a value to [low, high], which have its shape."""
        return self.insert(ClampOp.create(operands=[low, value, high], result_types=[value.type]))

    def slice(
        self, value: SSAValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> SSAValue:
        """Slice a value from `starts` (inclusive) to `limits` (exclusive), with strides of 1 by default."""
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
        """Slice a value from dynamic `starts`, one scalar per dimension."""
        return self.insert(DynamicSliceOp(value, starts, sizes))

    def dynamic_update_slice(self, value: SSAValue, update: SSAValue, starts: Sequence[SSAValue]) -> SSAValue:
        """Overwrite the slice of a value that begins at dynamic `starts`, one scalar per dimension."""
        return self.insert(DynamicUpdateSliceOp.create(operands=[value, update, *starts], result_types=[value.type]))

    def device_id(self) -> SSAValue:
        """Return the id of the executing device, `tensor<i64>`."""
        return self.convert(self.insert(self._device_id.create(result_types=[_DEVICE_ID])), i64)

    def of_device(self, values: Sequence[int]) -> SSAValue:
        """Select the executing device's entry of `values`, one per device, as `tensor<i64>`."""
        if len(set(values)) == 1:
            return self.integers([values[0]], ())
        return self.reshape(self.entry_of_device(values), ())

    def entry_of_device(self, values: Sequence[int], element_type: IntegerType = i64) -> SSAValue:
        """Select the executing device's entry of `values`, one per device, as a tensor of shape (1,)."""
        device = self.device_id()
        return self.dynamic_slice(self.integers(values, (len(values),), element_type), [device], (1,))


def _dense(type_: TensorType[Any], values: Sequence[Any]) -> DenseIntOrFPElementsAttr:
    """Return a constant of `values`, or a splat of a single value."""
    element_type = type_.element_type
    if isinstance(element_type, IntegerType):
        values = [element_type.get_normalized_value(value) for value in values]
    return dense(type_, element_type.pack(values))


def before(op: Operation) -> Emitter:
    """Return a builder that inserts before `op`."""
    return Emitter(InsertPoint.before(op), op)


def after(op: Operation) -> Emitter:
    """Return a builder that inserts after `op`."""
    return Emitter(InsertPoint.after(op), op)


def with_shape(value: SSAValue, shape: Sequence[int]) -> TensorType[Attribute]:
    """Return the type of `value` with another shape."""
    return tensor_of(tensor_type(value).element_type, shape)
