"""Custom calls and composites; calls of annotated operators have global sizes as arguments."""

from collections.abc import Sequence

from xdsl.traits import get_effects

from sdy.operators.call import call_of
from sdy.operators.registry import operator_of
from sdy.passes.spmd.emit.compatibility import created_factors, illegality_by_rule
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.operator_calls import lower_operator, pad_operator
from sdy.passes.spmd.plan.special_rules import rule_of_custom_call
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.custom_call import CustomCallOp


def _pad(conversion: PaddedConversion[CustomCallOp]) -> bool:
    """Pad operands and results, unless the call has side effects, which could observe the padding.

    The annotation of an operator says where it can be padded.
    """
    if (call := call_of(conversion.op)) is not None and operator_of(call) is not None:
        return pad_operator(conversion, call)
    return conversion.carries() and not get_effects(conversion.op)


def _lower(conversion: OpConversion[CustomCallOp] | OpConversion[CompositeOp]) -> None:
    """Replace the global sizes in the arguments of an operator by local ones."""
    if (call := call_of(conversion.op)) is not None and operator_of(call) is not None:
        lower_operator(conversion, call)


def _illegality_custom_call(
    op: CustomCallOp, operands: Sequence[Layout], results: Sequence[Layout]
) -> Illegality | None:
    """Return why the call cannot be partitioned; factors that no operand has cannot be split."""
    return illegality_by_rule(op, operands, results, lambda _, rule: created_factors(rule))


PARTITIONING: PartitioningTable = {
    CompositeOp: OperationPartitioning(lower=_lower),
    CustomCallOp: OperationPartitioning(
        pad=_pad, illegality=_illegality_custom_call, lower=_lower, rule=rule_of_custom_call
    ),
}
