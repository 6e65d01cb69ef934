"""Collectives that work within groups of devices: how the groups are said and what must hold of them.

`replica_groups` is `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`, a row for each group, or it names the axes of a mesh.
The numbers are those of replicas; where `use_global_device_ids` stands or the channel connects partitions, of devices.
A row of a smaller group is filled up with -1.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, SymbolRefAttr, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, Operation
from xdsl.irdl import BaseAttr, IRDLOperation, opt_prop_def, prop_def, traits_def
from xdsl.traits import SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from sdy.ir.attribute_constraints import I64_ELEMENTS
from sdy.stablehlo.attributes.operation_attributes import ChannelHandleAttr
from sdy.stablehlo.attributes.replica_groups import ReplicaGroupMeshAxesAttr
from sdy.stablehlo.checks.shape_checks import tensor_type

ReplicaGroups = DenseIntOrFPElementsAttr | ReplicaGroupMeshAxesAttr
_REPLICA_GROUPS = I64_ELEMENTS | BaseAttr(ReplicaGroupMeshAxesAttr)


class MeshUser(SymbolUserOpInterface):
    """The groups may lie along the axes of a mesh that is given by its name."""

    def verify(self, op: Operation) -> None:
        """Refuse a mesh that does not exist. Raises VerifyException."""
        assert isinstance(op, GroupedOp)
        mesh = op.replica_groups.data.mesh if isinstance(op.replica_groups, ReplicaGroupMeshAxesAttr) else None
        if isinstance(mesh, SymbolRefAttr) and SymbolTable.lookup_symbol(op, mesh) is None:
            raise VerifyException(f"replica_groups: mesh symbol '{mesh.string_value()}' not found")


class GroupedOp(IRDLOperation):
    """An operation within groups of devices."""

    replica_groups = prop_def(_REPLICA_GROUPS)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    traits = traits_def(MeshUser())

    @property
    def channel(self) -> int:
        """The number of its channel; 0 where it has none."""
        return 0 if self.channel_handle is None else self.channel_handle.data.handle


class GloballyGroupedOp(GroupedOp):
    """One whose groups may be of devices wherever they are."""

    use_global_device_ids = opt_prop_def(UnitAttr)


class RootedOp(GroupedOp):
    """One where one device of each group is its root: the first, or as the last operand says for each other one."""

    has_dynamic_root = opt_prop_def(UnitAttr)

    @property
    def data(self) -> tuple[TensorType[Attribute], ...]:
        """The types of the operands that are not the numbers of roots."""
        types = tuple(map(tensor_type, self.operands))
        return types if self.has_dynamic_root is None else types[:-1]

    def verify_root(self) -> None:
        """Refuse no data, and an operand with the numbers of roots that does not fit it. Raises VerifyException."""
        name = self.name.removeprefix("stablehlo.")
        if self.has_dynamic_root is None:
            if not self.operands:
                raise VerifyException(f"{name} requires at least one data operand")
            return
        if len(self.operands) < 2:
            raise VerifyException(f"{name} with has_dynamic_root=true requires at least two operands (data + root)")
        root, count = tensor_type(self.operands[-1]), len(self.operands) - 1
        which = f"last operand of {name} with has_dynamic_root=true"
        if root.element_type != i32 or root.get_num_dims() != 1:
            raise VerifyException(f"{which} must be a rank-1 i32 tensor, but got '{root}'")
        (size,) = root.get_shape()
        if size != count:
            raise VerifyException(
                f"{which} must have the same number of elements as data operands ({count}), but got {size}"
            )


def numbers_of(attribute: DenseIntOrFPElementsAttr) -> tuple[Sequence[int], Sequence[int]]:
    """The shape of a tensor of integers, and these, row by row."""
    return cast(TensorType[Attribute], attribute.get_type()).get_shape(), cast(Sequence[int], attribute.get_values())


def verify_replica_groups(
    groups: ReplicaGroups, *, same_size: bool, global_ids: bool = False, group_size: int | None = None
) -> None:
    """Refuse groups that miss a number or have one twice, and ones of other sizes than asked for.

    `same_size` asks for groups of one size, `group_size` for that size; `global_ids` are never left to the backend.
    Raises VerifyException.
    """
    if isinstance(groups, ReplicaGroupMeshAxesAttr):
        return
    shape, replicas = numbers_of(groups)
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
    """Refuse devices numbered across partitions where no channel connects these. Raises VerifyException."""
    if op.use_global_device_ids is not None and op.channel <= 0:
        raise VerifyException(f"channel_id must be positive when useGlobalDeviceIds is set but got: {op.channel}")
