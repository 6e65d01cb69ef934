"""Readable calls of annotated operators: custom calls to a target with the name of the operator."""

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from sdy.ir.walking import operations
from sdy.operators.call import call_of
from sdy.passes.common.symbol_dce import erase_dead_symbols
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.custom_call import CustomCallOp


def name_operator_calls(module: ModuleOp) -> None:
    """Replace each lowered call of an annotated operator by a custom call with its name as target, in place.

    Before::

        %0 = stablehlo.custom_call @CustomSPMDPartitioning(%arg0) {backend_config = "139875284", sdy.operator = "f()"}

    After::

        %0 = stablehlo.custom_call @f(%arg0) {sdy.operator = "f()"}
    """
    has_composites = False
    for op in operations(module):
        if (call := call_of(op)) is None:
            continue
        has_composites |= isinstance(op, CompositeOp)
        named = CustomCallOp.create(
            operands=op.operands,
            result_types=op.result_types,
            properties={"call_target_name": StringAttr(call.name)},
            attributes=op.attributes,
            location=op.location,
        )
        Rewriter.replace_op(op, named)
    if has_composites:
        erase_dead_symbols(module)
