"""`sdy-pad-for-divisibility`: padding of uneven dimensions."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.diagnostics import DiagnosticError, error, op_error
from sdy.dialect.collectives import (
    AllReduceOp,
    ReduceScatterOp,
)
from sdy.dialect.interfaces import data_flow_of
from sdy.dialect.shardings import set_sharding
from sdy.ir.fast_access import is_terminator
from sdy.ir.walking import operations
from sdy.passes.common.replication_cost import LocalBytes, warn_of_cost
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.emit.module_layouts import Layouts
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion, Target, device_id_op
from sdy.passes.spmd.emit.padding import Insertion, Padding
from sdy.passes.spmd.emit.replicate import rule_notes
from sdy.passes.spmd.local_module import Channels, first_free_channel
from sdy.passes.spmd.ops import partitioning_of
from sdy.passes.spmd.plan.special_rules import rule_by_elements
from sdy.passes.spmd.shards.layout import Layout
from sdy.rule import OpShardingRule


@dataclass(frozen=True)
class PadForDivisibilityPass(ModulePass):
    """Pad the end of each uneven dimension to a multiple of its number of shards.

    Before::

        sdy.mesh @mesh = <["x"=4]>
        %1 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
        %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
        %3 = sdy.all_gather [{"x"}] %2 out_sharding=<@mesh, [{}]> : tensor<7xf32>

    After::

        %c = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %p = stablehlo.pad %0, %c, low = [0], high = [1], interior = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<8xf32>
        %1 = sdy.all_slice [{"x"}] %p out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
        %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        %g = sdy.all_gather [{"x"}] %2 out_sharding=<@mesh, [{}]> : tensor<8xf32>
        %3 = stablehlo.slice %g [0:7] : (tensor<8xf32>) -> tensor<7xf32>

    For an operation that does not support padding, the uneven dimensions are replicated and the padding is sliced off,
    with a warning. Padding that an operation reads is masked. The padding of the operand of a `stablehlo.pad` is masked
    as in Shardy, with a warning if that is not enough; with `preserve_semantics` or `least_communication`, it is masked
    wherever necessary.

    If a collective changes the padded size of a dimension, the dimension is replicated in between, with a warning. With
    `least_communication`, devices exchange the rows that move between shards instead, if that moves fewer bytes. A
    device is identified by its partition id, or by its replica id if `replica_count` is greater than 1.

    Uneven arguments and results of functions are an error, which `sdy-update-non-divisible-input-output-shardings`
    resolves. With `pad_function_io`, they are padded too, and callers must pass padded arguments.
    """

    name = "sdy-pad-for-divisibility"
    pad_function_io: bool = False
    preserve_semantics: bool = False
    least_communication: bool = False
    replica_count: int = 1
    partition_count: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        layouts = Layouts(op)
        if not layouts.any_uneven:
            return
        planner = planner_of(self.least_communication, self.preserve_semantics)
        if not planner.minimizes_padding:
            layouts.pad_alike()
        if not self.pad_function_io:
            for function in layouts.functions.values():
                _check_function(function, layouts)
        # Sharding rules are for unpadded tensors, so they are computed before the types change.
        target = Target(
            device_id_op(op, self.replica_count, self.partition_count),
            planner=planner,
            channels=Channels(first_free_channel(operations(op))),
        )
        conversions = [
            (conversion, rule_by_elements(conversion.op))
            for conversion in layouts.conversions(target)
            if _has_uneven_dims(conversion)
        ]
        layouts.change_types(Layout.padded_type)
        padding = Padding()
        for conversion, rule in conversions:
            _pad(conversion, rule, padding)
        padding.erase_unused()


def _check_function(function: FuncOp, layouts: Layouts) -> None:
    for what, values in (
        ("argument", layouts.of_all(function.args)),
        ("result", layouts.of_function_results(function)),
    ):
        for index, layout in enumerate(values):
            if layout.uneven_dims:
                problem = f"{what} #{index} has a non-divisible sharding. Shardy expects function IO to be divisible."
                illegal = error(function, f"failed to legalize operation '{function.name}'")
                raise DiagnosticError(op_error(function, problem).diagnostic, illegal.diagnostic)


def _has_uneven_dims(conversion: OpConversion[Operation]) -> bool:
    return any(layout.uneven_dims for layout in conversion.layouts)


def _pad(conversion: OpConversion[Operation], rule: OpShardingRule | None, padding: Padding) -> None:
    """Rewrite one operation for the padded types of its operands and results."""
    pad = partitioning_of(conversion.op).pad
    is_padded = pad is not None and pad(PaddedConversion(conversion, rule, padding))
    if not is_padded and not _forwards_values(conversion.op):
        _compute_without_padding(conversion, rule, padding)


def _forwards_values(op: Operation) -> bool:
    return isinstance(op, CallOp) or data_flow_of(op) is not None or is_terminator(op)


def _compute_without_padding(
    conversion: OpConversion[Operation], rule: OpShardingRule | None, padding: Padding
) -> None:
    """Replicate the uneven dimensions of an operation and compute it without padding, with a warning."""
    op = conversion.op
    if rule is not None and _loses_partial_results(conversion, rule):
        raise op_error(op, "has uneven dimensions that cannot be padded, but a collective needs its partial results")
    if op.operands:
        before, after = (
            LocalBytes(*(sum(map(bytes_of, layouts)) for layouts in (conversion.operands, conversion.results)))
            for bytes_of in (_local_bytes, _bytes_without_padding)
        )
        what = "is replicated along the dimensions that its axes do not divide"
        warn_of_cost(op, what, before, after, *(rule_notes(conversion) if rule is None else ()))
    for index, (operand, layout) in enumerate(zip(op.operands, conversion.operands, strict=True)):
        if layout.uneven_dims:
            op.operands[index] = padding.take_off(Insertion.before(op), operand, layout)
    for result, layout in zip(op.results, conversion.results, strict=True):
        if layout.uneven_dims:
            users = list(result.uses)
            unpadded = Rewriter.replace_value_with_new_type(result, layout.type)
            sharding = layout.without(layout.uneven_dims).sharding
            assert sharding is not None
            set_sharding(unpadded, sharding)
            _replace_uses(users, padding.put_on(Insertion.after(op), unpadded, layout))


def _local_bytes(layout: Layout) -> int:
    return layout.local_bytes


def _bytes_without_padding(layout: Layout) -> int:
    return layout.without(layout.uneven_dims).local_bytes


def _loses_partial_results(conversion: OpConversion[Operation], rule: OpShardingRule) -> bool:
    """Return whether replication would turn partial results, which a collective combines, into full ones."""
    reduced = (
        factor
        for mapping, layout in zip(rule.operands, conversion.operands, strict=True)
        for dim in layout.uneven_dims
        for factor in mapping[dim]
    )
    combines = (AllReduceOp, ReduceScatterOp)
    return any(factor in rule.reduction for factor in reduced) and any(
        isinstance(use.operation, combines) for result in conversion.op.results for use in result.uses
    )


def _replace_uses(users: Iterable[Use], value: SSAValue) -> None:
    for use in users:
        use.operation.operands[use.index] = value
