"""Collectives with a reduction: all-reduce, reduce-scatter, collective-reduce."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Region
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import I64_ELEMENTS, NON_NEGATIVE_I64
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.process_groups import (
    GloballyGroupedOp,
    RootedOp,
    verify_channel,
    verify_replica_groups,
)
from sdy.stablehlo.checks.reducers import scalar, verify_reducer
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type, verify_same_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import TENSOR

Tensor = TensorType[Attribute]


def reduced_type(operand: Tensor, computation: Region) -> Tensor:
    """Return an operand's type with the computation's element type, or unchanged if the computation is invalid."""
    terminator = computation.block.last_op
    types = () if terminator is None else terminator.operand_types
    if not types or not isinstance(types[0], TensorType):
        return operand
    returned = cast(Tensor, types[0])
    return TensorType(returned.element_type, operand.shape, operand.encoding)


def verify_scalar_reducers(computation: Region, operands: Sequence[Tensor]) -> None:
    """Raise VerifyException unless the computation combines two elements of each operand."""
    for operand in operands:
        verify_reducer(computation, [operand], [scalar(operand.element_type)])


@define
class AllReduceOp(GloballyGroupedOp, InferredResults):
    """Reduce the operands of the devices in each group elementwise."""

    name = "stablehlo.all_reduce"
    operands_ = var_operand_def(TENSOR)
    res = var_result_def(TENSOR)
    computation = region_def("single_block")

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand types with the computation's element type."""
        return [reduced_type(tensor_type(operand), self.computation) for operand in self.operands_]

    def verify_(self) -> None:
        """Verify the replica groups, the computation and the result types."""
        global_ids = self.use_global_device_ids is not None
        with message_only(self):
            verify_replica_groups(self.replica_groups, same_size=False, global_ids=global_ids)
            verify_channel(self)
            verify_scalar_reducers(self.computation, list(map(tensor_type, self.operands_)))
        super().verify_()


@define
class ReduceScatterOp(GloballyGroupedOp):
    """Reduce the operands of the devices in each group, and split the result among them along a dimension."""

    name = "stablehlo.reduce_scatter"
    operand = operand_def(TENSOR)
    scatter_dimension = prop_def(NON_NEGATIVE_I64)
    result = result_def(TENSOR)
    computation = region_def("single_block")

    def verify_(self) -> None:
        """Verify the groups and the computation, and that operand and result differ only in the scattered dimension."""
        dim = self.scatter_dimension.value.data
        operand, result = tensor_type(self.operand), tensor_type(self.result)
        global_ids = self.use_global_device_ids is not None
        with message_only(self):
            verify_replica_groups(self.replica_groups, same_size=True, global_ids=global_ids)
            verify_scalar_reducers(self.computation, [operand])
            if operand.get_num_dims() != result.get_num_dims():
                raise VerifyException("operand and result should have same rank")
            if dim >= operand.get_num_dims():
                raise VerifyException("scatter dim should be less than operand/result rank")
            verify_channel(self)
            _verify_scattered(dim, operand, result, reduced_type(operand, self.computation).element_type)


def _verify_scattered(dim: int, operand: Tensor, result: Tensor, combined: Attribute) -> None:
    size, scattered = operand.get_shape()[dim], result.get_shape()[dim]
    if DYNAMIC_INDEX in (size, scattered):
        return
    for name, part in (("result", scattered), ("operand", size)):
        if part == 0:
            raise VerifyException(f"{name} dimension size at scatter_dimension cannot be zero")
    if size % scattered:
        raise VerifyException(
            f"operand scatter dimension has size {size}, expected to be a multiple of result scatter dimension "
            f"size {scattered}"
        )
    for i, (one, other) in enumerate(zip(operand.get_shape(), result.get_shape(), strict=True)):
        if i != dim and not compatible_shapes((one,), (other,)):
            raise VerifyException(f"non scatter dimensions should be same for operand ({one}) and result ({other})")
    if result.element_type != combined:
        raise VerifyException(f"result element-type is expected to be '{combined}', but got '{result.element_type}'")


@define
class CollectiveReduceOp(GloballyGroupedOp, RootedOp, InferredResults):
    """Reduce the operands of the devices in each group to its root."""

    name = "stablehlo.collective_reduce"
    operands_ = var_operand_def(TENSOR)
    res = var_result_def(TENSOR)
    computation = region_def("single_block")

    def infer_types(self) -> Sequence[Attribute]:
        """Return the types of the data operands with the computation's element type."""
        return [reduced_type(operand, self.computation) for operand in self.data]

    def verify_(self) -> None:
        """Verify the replica groups, the computation and the result types."""
        global_ids = self.use_global_device_ids is not None
        with message_only(self):
            verify_replica_groups(self.replica_groups, same_size=False, global_ids=global_ids)
            verify_channel(self)
            self.verify_root()
            verify_scalar_reducers(self.computation, self.data)
        super().verify_()


@define
class CrossReplicaSumOp(IRDLOperation):
    """Sum the operands of the replicas in each group; a deprecated form of all_reduce."""

    name = "stablehlo.cross-replica-sum"
    operand = operand_def(TENSOR)
    replica_groups = prop_def(I64_ELEMENTS)
    result = result_def(TENSOR)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Verify that operand and result have the same type."""
        verify_same_type(self)
