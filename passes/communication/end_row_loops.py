"""`sdy-end-row-loops`: loops that each device ends with its own rows, without an all-reduce per iteration."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from sdy.dialect.attributes import ROW_LOOP
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.walking import innermost_first, operations, operations_of
from sdy.passes.common.properties import is_pure
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.rules.call_targets import KERNELS
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.reducing_collectives import AllReduceOp

_PROVEN = StringAttr("")


class EndRowLoopsPass(AnalysisPreservingPass):
    """Erase the all-reduce in the condition of a loop that `sdy-mark-row-loops` marked, if nothing else communicates.

    Before::

        %0 = stablehlo.while(%x = %arg0) : tensor<2xf32> attributes {sdy.row_loop = ""}
        cond {
          ...
          %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0]
          %3 = "stablehlo.all_reduce"(%2) ({maximum}) : (tensor<i1>) -> tensor<i1>
          stablehlo.return %3 : tensor<i1>
        } do {
          ...
        }

    After::

        %0 = stablehlo.while(%x = %arg0) : tensor<2xf32> attributes {sdy.row_loop = ""}
        cond {
          ...
          %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0]
          stablehlo.return %2 : tensor<i1>
        } do {
          ...
        }

    Each device then iterates until its own rows have ended. Devices with the same rows iterate equally often. A loop
    with another collective, with a side effect such as a callback, or with a kernel is unchanged, because the devices
    may have to meet there, and its attribute gets this reason.
    """

    name = "sdy-end-row-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in innermost_first(operations_of(op, WhileOp)):
            if loop.attributes.get(ROW_LOOP) != _PROVEN:
                continue
            reductions = [each for each in loop.cond.block.ops if isinstance(each, AllReduceOp)]
            obstacle = next((each for each in operations(loop)[1:] if _is_obstacle(each, reductions)), None)
            if obstacle is None:
                for reduction in reductions:
                    replace(reduction, [*reduction.operands])
            else:
                loop.attributes[ROW_LOOP] = StringAttr(f"'{obstacle.name}' in it takes all devices")


def num_row_loops(module: ModuleOp) -> int:
    """Return the number of loops in the per-device program `module` that each device ends with its own rows."""
    return sum(loop.attributes.get(ROW_LOOP) == _PROVEN for loop in operations_of(module, WhileOp))


def _is_obstacle(op: Operation, reductions: list[AllReduceOp]) -> bool:
    """Return whether the devices have to execute `op` equally often, except for the condition's only all-reduce."""
    if [op] == reductions:
        return False
    if isinstance(op, CustomCallOp) and op.call_target_name.data in KERNELS:  # it may signal other devices
        return True
    return isinstance(op, COLLECTIVES) or not is_pure(op)
