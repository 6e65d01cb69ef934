"""Replica groups of collectives and their verification.

`replica_groups` is `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`, one row per group padded with -1, or names mesh axes.
The ids are those of replicas, or of devices with `use_global_device_ids` or a cross-partition channel.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, SymbolRefAttr, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, Operation
from xdsl.irdl import BaseAttr, IRDLOperation, opt_prop_def, prop_def, traits_def
from xdsl.traits import SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import I64_ELEMENTS
from sdy.stablehlo.attributes.operation_attributes import ChannelHandleAttr
from sdy.stablehlo.attributes.replica_groups import ReplicaGroupMeshAxesAttr
from sdy.stablehlo.checks.shape_checks import tensor_type

ReplicaGroups = DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr
_REPLICA_GROUPS = I64_ELEMENTS | BaseAttr(ReplicaGroupMeshAxesAttr)


class MeshUser(SymbolUserOpInterface):
    """Trait of operations whose replica groups may reference a mesh symbol."""

    def verify(self, op: Operation) -> None:
        """Raise VerifyException if the mesh symbol is undefined."""
        assert isinstance(op, GroupedOp)
        mesh = op.replica_groups.data.mesh if isinstance(op.replica_groups, ReplicaGroupMeshAxesAttr) else None
        if isinstance(mesh, SymbolRefAttr) and SymbolTable.lookup_symbol(op, mesh) is None:
            raise VerifyException(f"replica_groups: mesh symbol '{mesh.string_value()}' not found")


class GroupedOp(IRDLOperation):
    """A collective with replica groups."""

    replica_groups = prop_def(_REPLICA_GROUPS)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    traits = traits_def(MeshUser())

    @property
    def channel(self) -> int:
        """The channel's number, 0 without a channel."""
        return 0 if self.channel_handle is None else self.channel_handle.data.handle


class GloballyGroupedOp(GroupedOp):
    """A collective whose groups may consist of global device ids."""

    use_global_device_ids = opt_prop_def(UnitAttr)


class RootedOp(GroupedOp):
    """A collective with a root device per group: the first one, or given by the last operand per data operand."""

    has_dynamic_root = opt_prop_def(UnitAttr)

    @property
    def data(self) -> tuple[TensorType[Attribute], ...]:
        """The types of the data operands, without the operand of dynamic roots."""
        types = tuple(map(tensor_type, self.operands))
        return types if self.has_dynamic_root is None else types[:-1]

    def verify_root(self) -> None:
        """Raise VerifyException without data operands, or if the operand of dynamic roots is invalid."""
        name = self.name.removeprefix("stablehlo.")
        if self.has_dynamic_root is None:
            if not self.operands:
                raise VerifyException(f"{name} requires at least one data operand")
            return
        if len(self.operands) < 2:
            raise VerifyException(f"{name} with has_dynamic_root=true requires at least two operands (data + root)")
        root, count = tensor_type(self.operands[-1]), len(self.operands) - 1
        subject = f"last operand of {name} with has_dynamic_root=true"
        if root.element_type != i32 or root.get_num_dims() != 1:
            raise VerifyException(f"{subject} must be a rank-1 i32 tensor, but got '{root}'")
        (size,) = root.get_shape()
        if size != count:
            raise VerifyException(
                f"{subject} must have the same number of elements as data operands ({count}), but got {size}"
            )


def shape_and_elements(attribute: DenseIntOrFPElementsAttr) -> tuple[Sequence[int], Sequence[int]]:
    """Return the shape of an integer constant and its elements in row-major order."""
    return cast(TensorType[Attribute], attribute.get_type()).get_shape(), cast(Sequence[int], attribute.get_values())


def verify_replica_groups(
    groups: ReplicaGroups, *, same_size: bool, global_ids: bool = False, group_size: int | None = None
) -> None:
    """Verify that each id from 0 on occurs exactly once.

    Args:
        groups: The replica groups; groups along mesh axes are always valid.
        same_size: Whether padding with -1 is an error.
        global_ids: Whether the ids are those of devices; then the groups must not be empty.
        group_size: The required size of each group, checked with `same_size`.

    Raises:
        VerifyException: If the groups are invalid.
    """
    if isinstance(groups, ReplicaGroupMeshAxesAttr):
        return
    shape, replicas = shape_and_elements(groups)
    if len(shape) != 2:
        raise VerifyException("replica groups should be a rank 2 tensor")
    if global_ids and 0 in shape:
        raise VerifyException("if `use_global_device_ids` is set, the replica groups cannot be empty")
    seen: set[int] = set()
    for replica in replicas:
        if replica == -1:
            if same_size:
                raise VerifyException("Invalid replica id -1")
        elif replica in seen:
            raise VerifyException(f"replica id #{replica} seen more than once")
        else:
            seen.add(replica)
    for replica in range(len(seen)):
        if replica not in seen:
            raise VerifyException(f"replica id #{replica} not seen in replica groups")
    if same_size and group_size is not None and (shape[0] == 0 or shape[1] != group_size):
        raise VerifyException(f"group size of replica_groups must be {group_size}")


def verify_channel(op: GloballyGroupedOp) -> None:
    """Raise VerifyException if global device ids are used without a channel."""
    if op.use_global_device_ids is not None and op.channel <= 0:
        raise VerifyException(f"channel_id must be positive when useGlobalDeviceIds is set but got: {op.channel}")
