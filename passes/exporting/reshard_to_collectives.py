"""`sdy-reshard-to-collectives`: each reshard becomes the collectives that carry it out."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.diagnostics import op_error
from sdy.dialect.collective_syntax import AllToAllParam
from sdy.dialect.collectives import AllGatherOp, AllSliceOp, AllToAllOp, CollectivePermuteOp
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import shape
from sdy.ir.walking import operations_of
from sdy.mesh import Mesh
from sdy.passes.common.propagation_barriers import before_barriers
from sdy.passes.spmd.reshards.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshards.collective_plan import plan_collectives
from sdy.passes.spmd.reshards.collective_steps import AllGather, AllSlice, AllToAll, AxesPerDim, Collective
from sdy.passes.spmd.reshards.rematerialize import rematerialize
from sdy.sharding import DimSharding, TensorSharding, equivalent

Planner = Callable[[AxesPerDim, AxesPerDim, tuple[int, ...], Mesh, bool], tuple[Collective, ...]]


@dataclass(frozen=True)
class ReshardToCollectivesPass(ModulePass):
    """Replace reshards by all-slices, collective-permutes, all-to-alls and all-gathers, as few as possible.

    Before::

        sdy.mesh @mesh = <["x"=2, "y"=2]>
        ... %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}
        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<16x8xf32>

    After::

        %0 = sdy.all_gather [{"y"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x8xf32>

    Reshards that change nothing are removed, or kept if `keep_redundant_reshards`. A reshard to or from a single
    device, or between meshes with different axes, is left as it is.

    The collectives are those of Shardy, or with `least_communication` those of several plans that send the fewest
    elements. Then what each device can make for itself, such as an iota, is made once more instead, and what a reshard
    in front has made already, from the same value, is used again.
    """

    name = "sdy-reshard-to-collectives"
    keep_redundant_reshards: bool = False
    least_communication: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        made: dict[tuple[Block | None, SSAValue, TensorSharding], SSAValue] = {}
        for reshard in operations_of(op, ReshardOp):
            source = get_sharding(before_barriers(reshard.input))
            if self.keep_redundant_reshards and equivalent(source, reshard.sharding.data):
                continue
            key = (reshard.parent, reshard.input, reshard.sharding.data)
            value = made.get(key) if self.least_communication else None
            value = value or self._carried_out(reshard, source)
            if value is not None:
                made[key] = value
                Rewriter.replace_op(reshard, (), (value,))

    def _carried_out(self, reshard: ReshardOp, source: TensorSharding | None) -> SSAValue | None:
        """The value of a reshard, made in front of it; None where it is to be left as it is."""
        if not self.least_communication:
            return _by_collectives(reshard, source, plan_collectives)
        return _rematerialized(reshard, source) or _by_collectives(reshard, source, cheapest_plan)


def _rematerialized(reshard: ReshardOp, source: TensorSharding | None) -> SSAValue | None:
    """The resharded value rematerialized, if all devices can make it."""
    ends = [sharding for sharding in (source, reshard.sharding.data) if sharding is not None]
    if any(sharding.unreduced or mesh_of(sharding, reshard).is_maximal for sharding in ends):
        return None
    return rematerialize(reshard.input, reshard.sharding.data, InsertPoint.before(reshard))


def _by_collectives(reshard: ReshardOp, source: TensorSharding | None, plan: Planner) -> SSAValue | None:
    """The value that collectives make of the one that is resharded; None to or from one device or other axes."""
    target = reshard.sharding.data
    source = source or TensorSharding.replicated_open(target.mesh, target.rank)
    source_mesh, target_mesh = mesh_of(source, reshard), mesh_of(target, reshard)
    if source_mesh.is_maximal or target_mesh.is_maximal:
        return None
    if source.is_fully_replicated and target.is_fully_replicated:
        return reshard.input
    if target.is_fully_replicated:
        target = TensorSharding.replicated_closed(source.mesh, source.rank)
    elif source_mesh.axes != target_mesh.axes:
        return None
    if source.rank != target.rank:
        raise op_error(reshard, f"cannot reshard from rank {source.rank} to rank {target.rank}")

    value = before_barriers(reshard.input)
    other_devices = source.mesh != target.mesh
    mesh = source.mesh
    for step in plan(source.dim_axes, target.dim_axes, shape(value.type), source_mesh, other_devices):
        if not isinstance(step, AllGather | AllSlice | AllToAll):
            mesh = target.mesh
        after = _closed(replace(target, mesh=mesh, replicated=()), step.after)
        collective = _collective(step, value, after)
        collective.location = reshard.location
        Rewriter.insert_op(collective, InsertPoint.before(reshard))
        value = collective.results[0]
    return value


def _closed(like: TensorSharding, axes_per_dim: AxesPerDim) -> TensorSharding:
    return replace(like, dims=tuple(DimSharding(axes) for axes in axes_per_dim))


def _collective(step: Collective, value: SSAValue, after: TensorSharding) -> Operation:
    match step:
        case AllGather(axes):
            return AllGatherOp(value, axes, after)
        case AllSlice(axes):
            return AllSliceOp(value, axes, after)
        case AllToAll(axes, source, target):
            return AllToAllOp(value, (AllToAllParam(axes, source, target),), after)
        case _:
            return CollectivePermuteOp(value, after)
