"""`sdy-convert-global-to-local`: conversion of unpartitioned tensors to one device's shards."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from sdy.diagnostics import error, warn
from sdy.dialect.interfaces import data_flow_of
from sdy.ir.fast_access import is_terminator
from sdy.ir.walking import cached_walks, operations
from sdy.passes.common.donations import check_donations
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.emit.device_shards import mask_to_first_shard
from sdy.passes.spmd.emit.illegality import Reason
from sdy.passes.spmd.emit.module_layouts import Layouts
from sdy.passes.spmd.emit.op_conversion import OpConversion, Target, device_id_op
from sdy.passes.spmd.emit.replicate import IllegalSplit, replicate_along
from sdy.passes.spmd.legality import find_illegal_split
from sdy.passes.spmd.local_module import Channels, first_free_channel, is_local, mark_local
from sdy.passes.spmd.ops import partitioning_of
from sdy.passes.spmd.shards.layout import Layout


@dataclass(frozen=True)
class ConvertGlobalToLocalPass(ModulePass):
    """Convert a module on unpartitioned tensors to the program of one device, with StableHLO collectives.

    Each value gets the type of its shard, attributes with sizes or indices are adjusted, and SDY collectives are
    lowered to StableHLO collectives. Functions keep their shardings, which describe the unpartitioned tensors.

        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
          %1 = sdy.all_gather [{"x"}, {}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>

    becomes

        func.func @main(%0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
          %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> ...

    An operation that cannot be partitioned is an error, or with `compute_whole` is replicated, with a warning. If only
    the shardings of its tensors are incompatible, which `sdy-insert-explicit-reshards` rules out, each device computes
    it from its own shards, as in Shardy, with a warning that the result may be wrong; with `preserve_semantics` or
    `least_communication`, this is an error too. An uneven dimension is an error: run `sdy-pad-for-divisibility` first.

    Devices are partitions of one replica or, if `replica_count` is greater than 1, replicas of one partition. With
    `enable_rgv3`, the replica groups of a collective along full axes are mesh axes instead of lists. An all-gather of
    several dimensions is one collective, or with `per_dim_all_gather` one per dimension. A reduce-scatter of several
    dimensions is an all-reduce and a slice, or with `combine_multi_dimension_reduce_scatter` a single reduce-scatter,
    which sends half as much. With `least_communication`, an all-gather with users of its first shard only becomes an
    all-reduce of that shard and zeros.
    """

    name = "sdy-convert-global-to-local"
    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    enable_rgv3: bool = False
    replica_count: int = 1
    partition_count: int = 1
    compute_whole: bool = False
    least_communication: bool = False
    preserve_semantics: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if is_local(op):
            raise error(op, "the module is partitioned already")
        with cached_walks():
            layouts = Layouts(op)
            conversions = list(layouts.conversions(self._target(op)))
        # Sharding rules are for unpartitioned tensors, so the checks precede the change of types.
        illegal_splits = [_find_illegal_split(conversion) for conversion in conversions]
        layouts.change_types(Layout.local_type)
        for function in layouts.functions.values():
            check_donations(function)
        for conversion, illegal_split in zip(conversions, illegal_splits, strict=True):
            _lower(conversion, illegal_split)
        for inner in operations(op):
            _check_edges(inner, layouts.functions)
        mark_local(op)

    def _target(self, module: ModuleOp) -> Target:
        return Target(
            device_id_op(module, self.replica_count, self.partition_count),
            self.per_dim_all_gather,
            self.combine_multi_dimension_reduce_scatter,
            self.enable_rgv3,
            self.compute_whole,
            planner_of(self.least_communication, self.preserve_semantics),
            Channels(first_free_channel(operations(module))),
        )


def _find_illegal_split(conversion: OpConversion[Operation]) -> IllegalSplit | None:
    """Return why an operation must be replicated, and along which axes; None if it need not or only forwards values."""
    op = conversion.op
    forwards_values = type(op) is CallOp or data_flow_of(op) is not None or is_terminator(op)
    if forwards_values or partitioning_of(op).always_lowered:
        return None
    return find_illegal_split(conversion)


def _lower(conversion: OpConversion[Operation], illegal_split: IllegalSplit | None) -> None:
    if illegal_split is not None and _computes_from_own_shards(illegal_split, conversion.target):
        warn(
            conversion.op,
            f"'{conversion.op.name}' op is computed by each device from its own shards, which may change the result: "
            f"{illegal_split.illegality}; run sdy-insert-explicit-reshards first, or set preserve-semantics",
        )
    elif illegal_split is not None:
        conversion = replicate_along(conversion, illegal_split)
    if not conversion.op.operands:
        _make_partial(conversion)
    partitioning = partitioning_of(conversion.op)
    if partitioning.lower is not None and (partitioning.always_lowered or conversion.is_split):
        partitioning.lower(conversion)


def _make_partial(conversion: OpConversion[Operation]) -> None:
    """Keep an unreduced result of an operation without operands on one device, and zeros on the others."""
    for result, layout in zip(conversion.op.results, conversion.results, strict=True):
        if layout.sharding is not None and layout.sharding.unreduced and result.uses:
            emit = conversion.after()
            users = [use.operation for use in result.uses]
            partial = mask_to_first_shard(emit, result, 0, layout.sharding.unreduced, layout.mesh)
            result.replace_uses_with_if(partial, lambda use, users=users: use.operation in users)


def _computes_from_own_shards(illegal_split: IllegalSplit, target: Target) -> bool:
    is_incompatible = illegal_split.illegality.reason is Reason.INCOMPATIBLE_SHARDINGS
    return is_incompatible and not (target.allow_replication or target.planner.preserves_semantics)


def _check_edges(op: Operation, functions: dict[str, FuncOp]) -> None:
    """Raise if a value flows to one of another type, because a reshard is missing."""
    for user, source, expected in _edges(op, functions):
        if source != expected:
            message = f"a local shard of type {source} is used where {expected} is expected"
            raise error(user, f"{message}: sdy-insert-explicit-reshards must run first")


def _edges(op: Operation, functions: dict[str, FuncOp]) -> Iterator[tuple[Operation, Attribute, Attribute]]:
    """Yield the data-flow edges of `op`: the user, the type of the value and the expected type."""
    if type(op) is FuncReturnOp and isinstance(function := op.parent_op(), FuncOp):
        expected = function.function_type.outputs.data
        yield from ((op, value.type, type_) for value, type_ in zip(op.operands, expected, strict=True))
    elif type(op) is CallOp and (callee := functions.get(op.callee.string_value())):
        expected = callee.function_type.inputs.data
        yield from ((op, value.type, type_) for value, type_ in zip(op.operands, expected, strict=True))
    elif (flow := data_flow_of(op)) is not None:
        for owner in (*flow.block_argument_edge_owners(op), *flow.result_edge_owners(op)):
            for use in flow.edge_sources(op, owner):
                yield use.operation, use.operation.operands[use.index].type, owner.type
