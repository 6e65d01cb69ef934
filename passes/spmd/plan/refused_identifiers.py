"""Identifiers of an annotated operator that are split into fewer shards because they cannot be padded."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from sdy.axes import AxisRef, total_size
from sdy.mesh import Mesh
from sdy.operators.call import call_of
from sdy.operators.registry import operator_of
from sdy.passes.common.replication_cost import LocalBytes, current_shardings, warn_of_cost
from sdy.passes.spmd.plan.operator_parts import OperatorParts
from sdy.sharding import TensorSharding

if TYPE_CHECKING:
    from sdy.operators.rules import OperatorRule


def refused_identifiers(
    op: Operation, rule: "OperatorRule", axes: Sequence[Sequence[AxisRef]], mesh: Mesh
) -> dict[str, str]:
    """Return the identifiers that must be replicated if `axes` split the factors of `op`, each with the reason."""
    call = call_of(op)
    operator = operator_of(call) if call else None
    if call is None or operator is None:
        return {}
    return OperatorParts.least_padded(operator, call, rule, op.operand_types, [*map(tuple, axes)], mesh).refused()


def identifiers_cut_unevenly(
    rule: "OperatorRule", shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> dict[str, str]:
    """Return the major identifiers of composite dimensions that their axes do not divide, each with an explanation.

    An identifier is split only over the axes that divide it.
    """
    explanations: dict[str, str] = {}
    annotation = rule.fitted.annotation
    for tensor, sharding in zip(annotation.tensors, shardings, strict=True):
        for dim, axes in zip(tensor, sharding.dim_axes if sharding else (), strict=False):
            name = dim[0].name
            may_be_split = len(dim) > 1 and annotation.unshardable_reason(name) is None
            if may_be_split and rule.fitted.sizes[name] % total_size(axes, mesh):
                explanations[name] = f"`({' '.join(map(str, dim))})` is padded at its end only"
    return explanations


def warn_of_refused_identifiers(
    op: Operation, rule: "OperatorRule", refused: Mapping[str, str], before: Sequence[TensorSharding | None]
) -> None:
    """Warn that `op` is not split over all of its axes along the `refused` identifiers.

    Args:
        op: The operation, after its reshards.
        rule: The rule of the operator.
        refused: The reason for each identifier.
        before: The shardings of the operands and results before the reshards.
    """
    sizes = ", ".join(f"`{name}` of size {rule.fitted.sizes[name]}" for name in refused)
    message = f"is split into fewer shards along {sizes}, which its axes do not divide"
    notes = [f"`{name}`: {reason}" for name, reason in refused.items()]
    advice = "pad the arrays to a multiple of the number of devices, or write ^ behind the identifier to accept it"
    after = LocalBytes.by(op, current_shardings(op))
    warn_of_cost(op, message, LocalBytes.by(op, before), after, *notes, f"instead: {advice}")
