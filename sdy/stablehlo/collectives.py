"""Communication between devices: gathers, reductions and exchanges within groups of them.

`replica_groups` is `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`, a row for each group, or it names the axes of a mesh.
The numbers are those of replicas; where `use_global_device_ids` stands or the channel connects partitions, of devices.
"""

from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, DenseIntOrFPElementsAttr, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import inferred_types_error
from sdy.stablehlo.attributes import ChannelHandleAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.dimension_checks import verify_positive
from sdy.stablehlo.replica_groups import ReplicaGroupMeshAxesAttr
from sdy.stablehlo.shape_checks import compatible_shapes, compatible_types, tensor_type, verify_shape


def verify_pairs(op: IRDLOperation) -> None:
    """Refuse results whose types are not the operands', one by one."""
    if len(op.operands) != len(op.results) or not all(map(compatible_types, op.operand_types, op.result_types)):
        raise inferred_types_error(op, op.operand_types, op.result_types)


def same_but_for(dim: int, type_: TensorType[Attribute], other: TensorType[Attribute]) -> bool:
    """Whether two types differ in the size of one dimension at most."""
    shapes = [
        [DYNAMIC_INDEX if i == dim else size for i, size in enumerate(tensor.get_shape())] for tensor in (type_, other)
    ]
    return type_.element_type == other.element_type and compatible_shapes(*shapes)


def divides(size: int, whole: int) -> bool:
    """Whether a dimension of size `whole` has parts of that size; a dynamic one always may."""
    return DYNAMIC_INDEX in (size, whole) or (size > 0 and whole % size == 0)


@define
class AllGatherOp(IRDLOperation):
    """Each operand's shards of all devices in the group, one after the other along a dimension."""

    name = "stablehlo.all_gather"
    operands_ = var_operand_def(TensorType)
    all_gather_dim = prop_def(IntegerAttr[I64])
    replica_groups = prop_def(DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    res = var_result_def(TensorType)

    def verify_(self) -> None:
        """Refuse results that differ from their operands in more than the gathered dimension."""
        dim = self.all_gather_dim.value.data
        for operand, result in zip(map(tensor_type, self.operands_), map(tensor_type, self.res), strict=True):
            if not 0 <= dim < operand.get_num_dims():
                raise VerifyException("all_gather_dim must be a valid index of operand")
            if not same_but_for(dim, operand, result):
                raise VerifyException(
                    "operand and result should have the same shape except for the dimension size at 'all_gather_dim'"
                )
            size, gathered = operand.get_shape()[dim], result.get_shape()[dim]
            if not divides(size, gathered):
                raise VerifyException(
                    f"result gather dimension has size {gathered}, expected to be a multiple of operand gather "
                    f"dimension size {size}"
                )


@define
class AllReduceOp(IRDLOperation):
    """The operands of all devices in the group combined element by element."""

    name = "stablehlo.all_reduce"
    operands_ = var_operand_def(TensorType)
    replica_groups = prop_def(DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    res = var_result_def(TensorType)
    computation = region_def("single_block")

    def verify_(self) -> None:
        """Refuse results whose types are not the operands'."""
        verify_pairs(self)


@define
class ReduceScatterOp(IRDLOperation):
    """The operands of all devices in the group combined; each device keeps its part along a dimension."""

    name = "stablehlo.reduce_scatter"
    operand = operand_def(TensorType)
    scatter_dimension = prop_def(IntegerAttr[I64])
    replica_groups = prop_def(DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    computation = region_def("single_block")

    def verify_(self) -> None:
        """Refuse a result that differs from the operand in more than the scattered dimension."""
        dim, operand, result = self.scatter_dimension.value.data, tensor_type(self.operand), tensor_type(self.result)
        if not 0 <= dim < operand.get_num_dims():
            raise VerifyException("scatter dim should be less than operand/result rank")
        if not same_but_for(dim, operand, result):
            raise VerifyException("operand and result should differ in the size of the scatter dimension only")
        size, scattered = operand.get_shape()[dim], result.get_shape()[dim]
        if not divides(scattered, size):
            raise VerifyException(
                f"operand scatter dimension has size {size}, expected to be a multiple of result scatter dimension "
                f"size {scattered}"
            )


@define
class AllToAllOp(IRDLOperation):
    """Each device splits its operand along one dimension, sends a part to each, and concatenates what it gets."""

    name = "stablehlo.all_to_all"
    operands_ = var_operand_def(TensorType)
    split_dimension = prop_def(IntegerAttr[I64])
    concat_dimension = prop_def(IntegerAttr[I64])
    split_count = prop_def(IntegerAttr[I64])
    replica_groups = prop_def(DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    res = var_result_def(TensorType)

    def verify_(self) -> None:
        """Refuse a split that does not come out even, and results of other sizes."""
        split, concat, count = (
            attr.value.data for attr in (self.split_dimension, self.concat_dimension, self.split_count)
        )
        verify_positive("split_count", count)
        for operand, result in zip(self.operands_, self.res, strict=True):
            sizes = list(tensor_type(operand).get_shape())
            for kind, dim in (("split_dimension", split), ("concat_dimension", concat)):
                if not 0 <= dim < len(sizes):
                    raise VerifyException(f"AllToAll {kind} {dim} is out-of-bounds for input rank {len(sizes)}")
            if sizes[split] != DYNAMIC_INDEX:
                if sizes[split] % count != 0:
                    raise VerifyException(
                        f"split dimension has size {sizes[split]}, expected to be a multiple of split_count {count}"
                    )
                sizes[split] //= count
            if sizes[concat] != DYNAMIC_INDEX:
                sizes[concat] *= count
            verify_shape(result, sizes)


@define
class CollectivePermuteOp(IRDLOperation):
    """Each device's operand sent to the devices that `source_target_pairs` pairs it with; zeros where none sends."""

    name = "stablehlo.collective_permute"
    operand = operand_def(TensorType)
    source_target_pairs = prop_def(DenseIntOrFPElementsAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Refuse a result of another type, and a device that sends or receives twice."""
        verify_pairs(self)
        numbers = self.source_target_pairs.get_values()
        for kind, devices in (("sources", numbers[::2]), ("targets", numbers[1::2])):
            if len(set(devices)) != len(devices):
                raise VerifyException(f"duplicate {kind} not allowed.")


@define
class CollectiveBroadcastOp(IRDLOperation):
    """The operands of the group's first device on all of them."""

    name = "stablehlo.collective_broadcast"
    operands_ = var_operand_def(TensorType)
    replica_groups = prop_def(DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    has_dynamic_root = opt_prop_def(UnitAttr)
    res = var_result_def(TensorType)


@define
class CollectiveReduceOp(IRDLOperation):
    """The operands of all devices in the group combined, on one of them."""

    name = "stablehlo.collective_reduce"
    operands_ = var_operand_def(TensorType)
    replica_groups = prop_def(DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    has_dynamic_root = opt_prop_def(UnitAttr)
    res = var_result_def(TensorType)
    computation = region_def("single_block")


@define
class CrossReplicaSumOp(IRDLOperation):
    """The operands of all replicas in the group added, an older spelling of all_reduce."""

    name = "stablehlo.cross-replica-sum"
    operand = operand_def(TensorType)
    replica_groups = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)
