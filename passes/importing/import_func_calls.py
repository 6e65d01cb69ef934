"""`sdy-import-func-calls`: inline each call as a named computation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Region

from sdy.diagnostics import error, warn
from sdy.dialect.attributes import SHARDING
from sdy.dialect.interfaces import data_flow_of
from sdy.dialect.ops import NamedComputationOp, ReturnOp
from sdy.ir.editing import AnalysisPreservingPass, move_body, replace
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.call_graph import (
    EXECUTION_THREAD,
    callee,
    callees_first,
    calls_by_function,
    original_name,
    recursion_error,
)
from sdy.passes.common.data_flow_edges import add_edges
from sdy.passes.common.function_shardings import function_argument_shardings
from sdy.passes.common.symbols import Symbols


@dataclass(frozen=True)
class ImportFuncCallsPass(AnalysisPreservingPass):
    """Inline each call as a named computation, so that propagation works on a single function.

    Before::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    After::

        %0 = sdy.named_computation<"f">(%arg0) (%arg1: tensor<8xf32>) {
          %1 = stablehlo.negate %arg1 : tensor<8xf32>
          sdy.return %1 : tensor<8xf32>
        } : (tensor<8xf32>) -> tensor<8xf32>

    The body of a function moves to its first call; further calls get copies of it. The first copy emits a warning,
    since `sdy-flatten-call-graph` should have given each call its own function.

    Raises:
        DiagnosticError: A called function is recursive, or its body is not a single block.
    """

    name = "sdy-import-func-calls"
    add_data_flow_edges_on_named_computations: bool = True
    """Insert the data-flow edges of the named computations."""

    @cached_property
    def copies(self) -> Iterator[int]:
        """The counter of copies in all modules, which share one warning."""
        return count()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        importer = _Importer(Symbols(op), self.copies)
        calls = calls_by_function(op)
        for function in callees_first(op):
            for call in calls.get(function, ()):
                importer.inline(call)
            importer.finished.add(function)
        importer.erase_called()
        if self.add_data_flow_edges_on_named_computations:
            for computation in innermost_first(operations_of(op, NamedComputationOp)):
                flow = data_flow_of(computation)
                if flow is not None:
                    add_edges(flow.block_argument_edge_owners(computation))
                    add_edges(flow.result_edge_owners(computation))


@dataclass
class _Importer:
    symbols: Symbols
    copies: Iterator[int]
    bodies: dict[str, Region] = field(default_factory=dict[str, Region])
    """The region to which the body of each called function was moved, by the function's name."""
    finished: set[FuncOp] = field(default_factory=set[FuncOp])
    """The functions without remaining calls in their bodies."""

    def inline(self, call: CallOp) -> None:
        function = callee(call, self.symbols)
        name = function.sym_name.data
        body = self.bodies.get(name, function.body)
        if len(body.blocks) != 1:
            message = f"'@{name}' cannot be inlined: its body is not a single block"
            raise error(call, message, (function, "this is the function"))
        if function not in self.finished:
            raise recursion_error(call, function, "inlined at each of its calls")
        if name in self.bodies:
            if next(self.copies) == 0:
                warn(call, f"function @{name} has multiple call ops, we need to clone the function body for each call")
            body = self.bodies[name].clone()
        else:
            body = self.bodies[name] = move_body(function.body, ReturnOp)
        computation = NamedComputationOp(
            original_name(function),
            call.arguments,
            body,
            call.result_types,
            in_shardings=function_argument_shardings(function),
        )
        if SHARDING in call.attributes:
            computation.properties["out_shardings"] = call.attributes[SHARDING]
        computation.attributes |= {name: value for name, value in call.attributes.items() if name != SHARDING}
        if EXECUTION_THREAD in function.attributes:
            computation.attributes[EXECUTION_THREAD] = function.attributes[EXECUTION_THREAD]
        computation.location = call.location
        replace(call, computation)

    def erase_called(self) -> None:
        for name in self.bodies:
            function = self.symbols.function(name)
            assert function is not None
            self.symbols.erase(function)
