"""Collectives without a reduction: all-gather, all-to-all, collective-permute, collective-broadcast."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import I64_ELEMENTS, NON_NEGATIVE_I64, POSITIVE_I64
from sdy.stablehlo.attributes.operation_attributes import ChannelHandleAttr
from sdy.stablehlo.checks.agreement import element_type, verify_same_elements
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.process_groups import (
    GloballyGroupedOp,
    GroupedOp,
    RootedOp,
    shape_and_elements,
    verify_replica_groups,
)
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.sizes import bounded_type, bounds_of
from sdy.stablehlo.types.tensor_types import TENSOR

Tensor = TensorType[Attribute]


def verify_pairwise_elements(op: Operation) -> None:
    """Raise VerifyException unless operands and results have pairwise equal element types."""
    if len(op.operands) != len(op.results):
        raise VerifyException("requires the same number of operands and results")
    for index, (operand, result) in enumerate(zip(op.operands, op.results, strict=True)):
        if element_type(operand) != element_type(result):
            raise VerifyException(f"requires the same element type for operand and result at index {index}")


def same_shape_except(dim: int, type_: Tensor, other: Tensor) -> bool:
    """Return whether two types of the same rank have compatible shapes except for dimension `dim`."""
    shapes = [
        [DYNAMIC_INDEX if i == dim else size for i, size in enumerate(tensor.get_shape())] for tensor in (type_, other)
    ]
    return compatible_shapes(*shapes)


@define
class AllGatherOp(GloballyGroupedOp):
    """Concatenate the operands of the devices in each group along a dimension."""

    name = "stablehlo.all_gather"
    operands_ = var_operand_def(TENSOR)
    all_gather_dim = prop_def(NON_NEGATIVE_I64)
    res = var_result_def(TENSOR)

    def verify_(self) -> None:
        """Verify that operands and results differ only in the gathered dimension."""
        dim = self.all_gather_dim.value.data
        verify_pairwise_elements(self)
        global_ids = self.use_global_device_ids is not None
        with message_only(self):
            verify_replica_groups(self.replica_groups, same_size=True, global_ids=global_ids)
            if global_ids and self.channel < 0:
                raise VerifyException("channel_id cannot be negative when useGlobalDeviceIds is set")
            for operand, result in zip(map(tensor_type, self.operands_), map(tensor_type, self.res), strict=True):
                _verify_gathered(dim, operand, result)


def _verify_gathered(dim: int, operand: Tensor, result: Tensor) -> None:
    if dim >= operand.get_num_dims():
        raise VerifyException("all_gather_dim must be a valid index of operand")
    size = operand.get_shape()[dim]
    if size == 0:
        raise VerifyException("dimension size of operand at 'all_gather_dim' cannot be zero")
    if result.get_num_dims() != operand.get_num_dims():
        raise VerifyException("operand and result must have the same rank")
    if not same_shape_except(dim, operand, result):
        raise VerifyException(
            "operand and result should have the same shape except for the dimension size at 'all_gather_dim'"
        )
    gathered = result.get_shape()[dim]
    if DYNAMIC_INDEX not in (size, gathered) and gathered % size:
        raise VerifyException(
            f"result gather dimension has size {gathered}, expected to be a multiple of operand gather dimension "
            f"size {size}"
        )


@define
class AllToAllOp(GroupedOp, InferredResults):
    """Split each device's operand along one dimension, exchange the parts, and concatenate them along another."""

    name = "stablehlo.all_to_all"
    operands_ = var_operand_def(TENSOR)
    split_dimension = prop_def(NON_NEGATIVE_I64)
    concat_dimension = prop_def(NON_NEGATIVE_I64)
    split_count = prop_def(POSITIVE_I64)
    res = var_result_def(TENSOR)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand types, divided along the split and multiplied along the concatenation dimension."""
        count = self.split_count.value.data
        verify_replica_groups(self.replica_groups, same_size=True, group_size=count)
        return [self._exchanged(tensor_type(operand), count) for operand in self.operands_]

    def _exchanged(self, operand: Tensor, count: int) -> Tensor:
        split, concat = self.split_dimension.value.data, self.concat_dimension.value.data
        sizes = operand.get_shape()
        for kind, dim in (("split_dimension", split), ("concat_dimension", concat)):
            if dim >= len(sizes):
                raise VerifyException(f"AllToAll {kind} {dim} is out-of-bounds for input rank {len(sizes)}")
        if sizes[split] != DYNAMIC_INDEX and sizes[split] % count:
            raise VerifyException(
                f"split dimension has size {sizes[split]}, expected to be a multiple of split_count {count}"
            )

        def exchanged(dim: int, size: int) -> int:
            divided = size // count if dim == split else size
            return divided * count if dim == concat else divided

        return bounded_type(
            operand.element_type,
            [size if size == DYNAMIC_INDEX else exchanged(dim, size) for dim, size in enumerate(sizes)],
            [None if bound is None else exchanged(dim, bound) for dim, bound in enumerate(bounds_of(operand))],
        )

    def verify_(self) -> None:
        """Verify that the split divides the dimension and the results have the inferred types."""
        verify_pairwise_elements(self)
        super().verify_()


@define
class CollectivePermuteOp(InferredResults):
    """Send the operand of each source device to its target; devices that receive nothing get zeros."""

    name = "stablehlo.collective_permute"
    operand = operand_def(TENSOR)
    source_target_pairs = prop_def(I64_ELEMENTS)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    result = result_def(TENSOR)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type."""
        return self.operand_types

    def verify_(self) -> None:
        """Verify the result type, and that no device sends or receives twice."""
        verify_same_elements(self)
        with message_only(self):
            _verify_pairs(self.source_target_pairs)
        super().verify_()


def _verify_pairs(pairs: DenseIntOrFPElementsAttr) -> None:
    shape, devices = shape_and_elements(pairs)
    if len(shape) != 2:
        raise VerifyException(f"expect source_target_pairs attribute to be of rank 2, but got rank {len(shape)}")
    if shape[1] != 2:
        sizes = ", ".join(map(str, shape))
        raise VerifyException(f"expect source_target_pairs attribute of shape (N, 2), but got ({sizes})")
    seen: tuple[set[int], set[int]] = (set(), set())
    for number, device in enumerate(devices):
        if device < 0:
            raise VerifyException("replica ids in source_target_pairs must be >= 0.")
        if device in seen[number % 2]:
            raise VerifyException(f"duplicate {('sources', 'targets')[number % 2]} not allowed.")
        seen[number % 2].add(device)


@define
class CollectiveBroadcastOp(RootedOp, InferredResults):
    """Copy the operands of each group's root to all its devices."""

    name = "stablehlo.collective_broadcast"
    operands_ = var_operand_def(TENSOR)
    res = var_result_def(TENSOR)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the types of the data operands."""
        return self.data

    def verify_(self) -> None:
        """Verify the replica groups, the root and the result types."""
        with message_only(self):
            if isinstance(self.replica_groups, DenseIntOrFPElementsAttr):
                _verify_disjoint(self.replica_groups)
            self.verify_root()
        super().verify_()


def _verify_disjoint(groups: DenseIntOrFPElementsAttr) -> None:
    shape, replicas = shape_and_elements(groups)
    if len(shape) != 2:
        raise VerifyException(f"replica groups should be a rank 2 tensor,but instead it is of rank {len(shape)}")
    seen: set[int] = set()
    for replica in replicas:
        if replica < 0:
            raise VerifyException(f"replica_groups values must be positive, but was given {replica}")
        if replica in seen:
            raise VerifyException(f"replica id #{replica} seen more than once")
        seen.add(replica)
