"""Collectives of the dialect, in terms of axes and global shapes; reshards are lowered to them.

Each changes the sharding of a tensor to `out_sharding`, which must be the sharding that the collective produces from
its operand's sharding:

    all_gather [{}, {"x"}] %0             dimension 1 loses "x" at its minor end
    all_slice [{}, {"x"}] %0              dimension 1 gains "x" at its minor end
    all_to_all [{"x"}: 0->1] %0           "x" moves from the minor end of dimension 0 to that of dimension 1
    collective_permute %0                 other axes, the same number of shards of each dimension
    all_reduce {"x"} %0                   combines the partial results along "x"
    reduce_scatter [{"x"}, {}] %0         all_reduce, and dimension 0 gains "x"
    sharded_to_unreduced [{"x"}, {}] %0   dimension 0 loses "x", along which the results become partial
    replicated_to_unreduced {"x"} %0      replicas along "x" become partial results
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)

from sdy.axes import AxisRef
from sdy.dialect.attributes import AllToAllParamListAttr, AxisRefListAttr, ListOfAxisRefListsAttr, TensorShardingAttr
from sdy.dialect.collective_syntax import AllToAllParam
from sdy.dialect.directives import OptionalReduction, ShapedType
from sdy.dialect.enums import REDUCTION, reduction_attr, reduction_of
from sdy.dialect.interfaces import Verified
from sdy.dialect.ops import SAME_SHAPED
from sdy.sharding import Reduction, TensorSharding

AxesPerDim = Sequence[Sequence[AxisRef]]
"""The axes of each dimension."""


class CollectiveOp(IRDLOperation):
    """Base class of collectives: a tensor, and its sharding afterwards."""

    ALLOWS_MISSING_SHARDING: ClassVar[bool] = False
    """True if the operand may lack a sharding, and is then replicated."""
    ALLOWS_OTHER_MESH: ClassVar[bool] = False
    """True if the shardings of operand and result may have different meshes."""

    tensor = operand_def(SAME_SHAPED)
    out_sharding = prop_def(TensorShardingAttr)
    result = result_def(SAME_SHAPED)
    traits = traits_def(Verified())
    custom_directives = (ShapedType,)

    def _build(self, tensor: SSAValue, out_sharding: TensorSharding, **properties: Attribute | None) -> None:
        super().__init__(
            operands=[tensor],
            properties={**properties, "out_sharding": TensorShardingAttr(out_sharding)},
            result_types=[tensor.type],
        )


def _lists(axes: AxesPerDim) -> ListOfAxisRefListsAttr:
    return ListOfAxisRefListsAttr(tuple(map(tuple, axes)))


_OUT = "$tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` custom<ShapedType>(type($result))"


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """Gathers along a list of axes of each dimension."""

    name = "sdy.all_gather"
    gathering_axes = prop_def(ListOfAxisRefListsAttr)
    assembly_format = f"$gathering_axes {_OUT}"

    def __init__(self, tensor: SSAValue, gathering_axes: AxesPerDim, out_sharding: TensorSharding):
        self._build(tensor, out_sharding, gathering_axes=_lists(gathering_axes))


@irdl_op_definition
class AllSliceOp(CollectiveOp):
    """Slices along a list of axes of each dimension: each device keeps its shard."""

    name = "sdy.all_slice"
    ALLOWS_MISSING_SHARDING: ClassVar[bool] = True
    slicing_axes = prop_def(ListOfAxisRefListsAttr)
    assembly_format = f"$slicing_axes {_OUT}"

    def __init__(self, tensor: SSAValue, slicing_axes: AxesPerDim, out_sharding: TensorSharding):
        self._build(tensor, out_sharding, slicing_axes=_lists(slicing_axes))


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """Moves axes between dimensions."""

    name = "sdy.all_to_all"
    params = prop_def(AllToAllParamListAttr)
    assembly_format = f"$params {_OUT}"

    def __init__(self, tensor: SSAValue, params: Sequence[AllToAllParam], out_sharding: TensorSharding):
        self._build(tensor, out_sharding, params=AllToAllParamListAttr(tuple(params)))


@irdl_op_definition
class CollectivePermuteOp(CollectiveOp):
    """Permutes shards between devices; each dimension keeps its number of shards."""

    name = "sdy.collective_permute"
    ALLOWS_OTHER_MESH: ClassVar[bool] = True
    assembly_format = _OUT

    def __init__(self, tensor: SSAValue, out_sharding: TensorSharding):
        self._build(tensor, out_sharding)


@irdl_op_definition
class AllReduceOp(CollectiveOp):
    """Combines the partial results along some axes."""

    name = "sdy.all_reduce"
    ALLOWS_MISSING_SHARDING: ClassVar[bool] = True
    reduction_axes = prop_def(AxisRefListAttr)
    reduction_op = prop_def(REDUCTION, reduction_attr("sum"))
    custom_directives = (OptionalReduction, ShapedType)
    assembly_format = f"custom<OptionalReduction>($reduction_op) $reduction_axes {_OUT}"

    def __init__(
        self,
        tensor: SSAValue,
        reduction_axes: Sequence[AxisRef],
        out_sharding: TensorSharding,
        reduction: Reduction = "sum",
    ):
        axes = AxisRefListAttr(tuple(reduction_axes))
        self._build(tensor, out_sharding, reduction_axes=axes, reduction_op=reduction_attr(reduction))

    @property
    def reduction(self) -> Reduction:
        """The reduction that combines partial results."""
        return reduction_of(self.reduction_op)


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """Combines the partial results along some axes, and slices along these axes."""

    name = "sdy.reduce_scatter"
    ALLOWS_MISSING_SHARDING: ClassVar[bool] = True
    reduce_scatter_axes = prop_def(ListOfAxisRefListsAttr)
    reduction_op = prop_def(REDUCTION, reduction_attr("sum"))
    custom_directives = (OptionalReduction, ShapedType)
    assembly_format = f"custom<OptionalReduction>($reduction_op) $reduce_scatter_axes {_OUT}"

    def __init__(
        self,
        tensor: SSAValue,
        reduce_scatter_axes: AxesPerDim,
        out_sharding: TensorSharding,
        reduction: Reduction = "sum",
    ):
        axes = _lists(reduce_scatter_axes)
        self._build(tensor, out_sharding, reduce_scatter_axes=axes, reduction_op=reduction_attr(reduction))

    @property
    def reduction(self) -> Reduction:
        """The reduction that combines partial results."""
        return reduction_of(self.reduction_op)


@irdl_op_definition
class ShardedToUnreducedOp(CollectiveOp):
    """Converts shards along some axes to partial results of the full size, padded with zeros."""

    name = "sdy.sharded_to_unreduced"
    axes = prop_def(ListOfAxisRefListsAttr)
    assembly_format = f"$axes {_OUT}"

    def __init__(self, tensor: SSAValue, axes: AxesPerDim, out_sharding: TensorSharding):
        self._build(tensor, out_sharding, axes=_lists(axes))


@irdl_op_definition
class ReplicatedToUnreducedOp(CollectiveOp):
    """Converts replicas along some axes to partial results: one keeps the tensor, the others become zero."""

    name = "sdy.replicated_to_unreduced"
    axes = prop_def(AxisRefListAttr)
    assembly_format = f"$axes {_OUT}"

    def __init__(self, tensor: SSAValue, axes: Sequence[AxisRef], out_sharding: TensorSharding):
        self._build(tensor, out_sharding, axes=AxisRefListAttr(tuple(axes)))
