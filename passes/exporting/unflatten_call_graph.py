"""`sdy-unflatten-call-graph`: deduplicate copies of functions with equal shardings."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations_of
from sdy.passes.common.call_graph import ORIGINAL_NAME, callee, calls_in, original_name, set_callee
from sdy.passes.common.function_shardings import function_argument_shardings, function_result_shardings
from sdy.passes.common.symbols import Symbols

MANUAL_AXES = "sdy.func_manual_axes"
"""The attribute of a function outlined from a manual computation that holds the computation's manual axes."""


@dataclass(frozen=True)
class UnflattenCallGraphPass(AnalysisPreservingPass):
    """Redirect the calls of copies of one function that have equal shardings to the first of the copies.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = call @f_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(...) attributes {sdy.original_func_name = "f"} { ... }
        func.func private @f_0(...) attributes {sdy.original_func_name = "f"} { ... }

    After, if the arguments and results of both have equal shardings::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(...) { ... }
        func.func private @f_0(...) { ... }

    With `dedup_functions_fully`, copies with different shardings are merged too, into the copy whose shardings most
    calls have; the other callers reshard. `symbol-dce` removes the functions without calls.
    """

    name = "sdy-unflatten-call-graph"
    dedup_functions_fully: bool = False
    """Merge copies with different shardings too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        calls = calls_in(op)
        called = [callee(call, symbols) for call in calls]
        exact = {function: _key(function, with_shardings=True) for function in called}
        merged = {function: _key(function, with_shardings=not self.dedup_functions_fully) for function in called}
        representatives: dict[Hashable, FuncOp] = {}
        for function in called:
            representatives.setdefault(merged[function], function)
        if self.dedup_functions_fully:
            counts: Counter[Hashable] = Counter()
            for function in called:
                counts[exact[function]] += 1
                if counts[exact[function]] > counts[exact[representatives[merged[function]]]]:
                    representatives[merged[function]] = function
        for call, function in zip(calls, called, strict=True):
            set_callee(call, representatives[merged[function]].sym_name.data)
        for function in operations_of(op, FuncOp):
            function.attributes.pop(ORIGINAL_NAME, None)
            function.attributes.pop(MANUAL_AXES, None)


def _key(function: FuncOp, with_shardings: bool) -> Hashable:
    """Return a key that functions share if one can replace the other."""
    shardings = (function_argument_shardings(function), function_result_shardings(function)) if with_shardings else None
    return original_name(function), function.attributes.get(MANUAL_AXES), shardings
