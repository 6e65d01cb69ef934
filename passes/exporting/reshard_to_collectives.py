"""`sdy-reshard-to-collectives`: lower reshards to collectives."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

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
from sdy.passes.common.properties import before_barriers
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.plan.planner import Planner
from sdy.passes.spmd.plan.rematerialize import rematerialize
from sdy.passes.spmd.plan.reshard_cost import elements_resharded, is_substitute
from sdy.passes.spmd.reshard.collective_steps import AllGather, AllSlice, AllToAll, AxesPerDim, Collective
from sdy.sharding import DimSharding, TensorSharding, equivalent


@dataclass(frozen=True)
class ReshardToCollectivesPass(ModulePass):
    """Replace each reshard by the fewest all-slices, collective-permutes, all-to-alls and all-gathers.

    Before::

        sdy.mesh @mesh = <["x"=2, "y"=2]>
        ... %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}
        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<16x8xf32>

    After::

        %0 = sdy.all_gather [{"y"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x8xf32>

    Redundant reshards are removed, or kept with `keep_redundant_reshards`. Reshards to or from a single device, and
    between meshes with different axes, are not lowered.

    The collectives are Shardy's, or with `least_communication` the plan that sends the fewest elements. With
    `least_communication`, a value is also rematerialized if its operands are cheaper to reshard: each device computes
    its shard of an iota, and a value that is cast to a wider type is resharded before the cast. A second reshard of a
    value uses the result of the first if that receives fewer bytes: nothing if both have the same sharding.
    """

    name = "sdy-reshard-to-collectives"
    keep_redundant_reshards: bool = False
    """Keep reshards between equivalent shardings."""
    least_communication: bool = False
    """Minimize communication, rather than choose Shardy's collectives."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lowering = _Lowering(planner_of(self.least_communication))
        for reshard in operations_of(op, ReshardOp):
            source = get_sharding(before_barriers(reshard.input))
            if self.keep_redundant_reshards and equivalent(source, reshard.sharding.data):
                continue
            value = lowering.lower(reshard, source)
            if value is not None:
                Rewriter.replace_op(reshard, (), (value,))


@dataclass(frozen=True)
class _Lowering:
    """Lowering of the reshards of a module."""

    planner: Planner
    resharded: defaultdict[tuple[Block | None, SSAValue], dict[TensorSharding, SSAValue]] = field(
        default_factory=lambda: defaultdict[tuple[Block | None, SSAValue], dict[TensorSharding, SSAValue]](dict)
    )
    """Resharded copies by target sharding, of each original value and block of the reshards."""

    def lower(self, reshard: ReshardOp, source: TensorSharding | None) -> SSAValue | None:
        """Insert the lowering of `reshard`, and return its value; None if it cannot be lowered."""
        if not self.planner.rematerializes:
            return _by_collectives(reshard, reshard.input, source, self.planner)
        target, copies = reshard.sharding.data, self.resharded[reshard.parent, reshard.input]
        if target in copies:
            return copies[target]
        value = self._rematerialized(reshard, source)
        if value is None:
            value = _by_collectives(reshard, *_nearest(reshard, source, copies), self.planner)
        if value is not None:
            copies[target] = value
        return value

    def _rematerialized(self, reshard: ReshardOp, source: TensorSharding | None) -> SSAValue | None:
        """Rematerialize the resharded value if that receives fewer bytes; return None otherwise."""
        ends = [sharding for sharding in (source, reshard.sharding.data) if sharding is not None]
        if any(sharding.unreduced or mesh_of(sharding, reshard).is_maximal for sharding in ends):
            return None
        return rematerialize(
            reshard,
            partial(self._reshard_operand, reshard),
            lambda operand: self.resharded[reshard.parent, operand],
        )

    def _reshard_operand(self, before: ReshardOp, operand: SSAValue, target: TensorSharding) -> SSAValue:
        """Reshard `operand` to `target` by collectives inserted before the reshard `before`."""
        source = get_sharding(before_barriers(operand))
        if equivalent(source, target):
            return operand
        reshard = ReshardOp(operand, target)
        reshard.location = before.location
        Rewriter.insert_op(reshard, InsertPoint.before(before))
        value = self.lower(reshard, source)
        if value is None:
            return reshard.result
        Rewriter.erase_op(reshard)
        return value


def _nearest(
    reshard: ReshardOp, source: TensorSharding | None, copies: Mapping[TensorSharding, SSAValue]
) -> tuple[SSAValue, TensorSharding | None]:
    """Return whichever of the input of `reshard` and its copies receives the fewest bytes, with its sharding."""
    original = reshard.input
    if source is None or not copies:
        return original, source
    substitutes = [(value, sharding) for sharding, value in copies.items() if is_substitute(sharding, source)]
    return min(
        ((original, source), *substitutes),
        key=lambda each: elements_resharded(original, each[1], reshard.sharding.data, reshard),
    )


def _by_collectives(
    reshard: ReshardOp, value: SSAValue, source: TensorSharding | None, planner: Planner
) -> SSAValue | None:
    """Insert the planned collectives from `value` with the sharding `source`, and return the resharded value.

    Returns None for reshards to or from a single device, or between meshes with different axes.
    """
    target = reshard.sharding.data
    source = source or TensorSharding.replicated_open(target.mesh, target.rank)
    source_mesh, target_mesh = mesh_of(source, reshard), mesh_of(target, reshard)
    if source_mesh.is_maximal or target_mesh.is_maximal:
        return None
    if source.is_fully_replicated and target.is_fully_replicated:
        return value
    if target.is_fully_replicated:
        target = TensorSharding.replicated_closed(source.mesh, source.rank)
    elif source_mesh.axes != target_mesh.axes:
        return None
    if source.rank != target.rank:
        raise op_error(reshard, f"cannot reshard from rank {source.rank} to rank {target.rank}")

    value = before_barriers(value)
    other_devices = source.mesh != target.mesh
    mesh = source.mesh
    for step in planner.collectives(source.dim_axes, target.dim_axes, shape(value.type), source_mesh, other_devices):
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
