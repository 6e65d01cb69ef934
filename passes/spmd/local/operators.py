"""Calls of annotated operators, which name sizes of the whole as arguments."""

from xdsl.dialects.builtin import StringAttr

from sdy.dialect.attributes import OPERATOR
from sdy.operators.call import call_of
from sdy.operators.registry import find_operator
from sdy.passes.spmd.operator_parts import factor_axes, parts
from sdy.passes.spmd.site import Lowerings, Site
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo import CompositeOp, CustomCallOp

OPERATORS = Lowerings()


@OPERATORS.of(CustomCallOp, CompositeOp)
def _operator(site: Site[CustomCallOp] | Site[CompositeOp]) -> None:
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
