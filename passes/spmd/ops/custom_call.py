"""Custom calls and composites. Those of annotated operators name sizes of the whole as arguments."""

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.traits import get_effects

from sdy.operators.call import call_of
from sdy.operators.registry import OPERATOR, find_operator
from sdy.passes.spmd.compatibility import factors_made, why_not_by_rule
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.operator_parts import factor_axes, parts
from sdy.passes.spmd.padded_site import PaddedSite
from sdy.passes.spmd.site import Site
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.custom_call import CustomCallOp


def _lower(site: Site[CustomCallOp] | Site[CompositeOp]) -> None:
    """An argument that is the size of a dimension is divided, as the dimension is."""
    call = call_of(site.op)
    operator = find_operator(call.operator) if call else None
    if call is None or operator is None:
        return
    operands, results = ([layout.shape for layout in layouts] for layouts in (site.operands, site.results))
    rule = operator.rule(call, operands, results)
    shardings = [TensorSharding(site.mesh, tuple(map(DimSharding, layout.axes))) for layout in site.layouts]
    counts = parts(rule, factor_axes(rule, shardings, site.mesh), site.mesh)
    site.op.attributes[OPERATOR] = StringAttr(str(call.divided(counts)))


def _pad_custom_call(site: PaddedSite[CustomCallOp]) -> bool:
    """Who is called for its effect is not to see the padding."""
    return site.carries() and not get_effects(site.op)


def _why_not_custom_call(op: CustomCallOp, operands: Sequence[Layout], results: Sequence[Layout]) -> str | None:
    """Nothing is split that the call makes of nothing."""
    return why_not_by_rule(op, operands, results, lambda _, rule: factors_made(rule))


PARTITIONING: PartitioningTable = {
    CompositeOp: OperationPartitioning(lower=_lower),
    CustomCallOp: OperationPartitioning(pad=_pad_custom_call, why_not=_why_not_custom_call, lower=_lower),
}
