"""`sdy-verify-unreduced-axes`: verify that partial results are reduced explicitly."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import DiagnosticError, op_error, report
from sdy.dialect import collectives, ops
from sdy.dialect.interfaces import data_flow_of
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import func_arg_sharding, func_result_sharding, get_sharding
from sdy.dialect.unreduced_transition import transition_problem
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.fast_access import is_terminator
from sdy.ir.walking import operations_inside_out, operations_of
from sdy.passes.common.call_graph import callee, functions
from sdy.passes.common.properties import before_barriers
from sdy.passes.common.sharding_walk import shardings_in
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.sharding import Reduction, TensorSharding
from sdy.stablehlo import reducing_collectives
from sdy.stablehlo.reduction import ReduceOp

RESHARDS = (ops.ReshardOp, ops.ShardingConstraintOp)


class VerifyUnreducedAxesPass(AnalysisPreservingPass):
    """Verify that only suitable operations add or drop unreduced axes, along which devices hold partial results.

    The results of an operation have the unreduced axes of its operands. Dot products and reductions may add unreduced
    axes; reshards and all-reduces may drop them. Anything else is an error; the pass reports the first error of each
    function::

        func.func @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) {
          %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>

        error: 'stablehlo.negate' op dropped unreduced axis 'x' without a blessed operation (e.g., sdy.reshard). ...
    """

    name = "sdy-verify-unreduced-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        problems: list[DiagnosticError] = []
        any_unreduced = any(sharding.unreduced for sharding in shardings_in(op))
        for function in functions(op):
            try:
                suspects = (
                    operations_inside_out(function)[:-1] if any_unreduced else operations_of(function, *_SUSPECTS)
                )
                for inner in suspects:
                    _VERIFIERS.get(inner.__class__, _verify_any)(inner, symbols)
            except DiagnosticError as problem:
                problems.append(problem)
        for problem in problems[:-1]:
            for diagnostic in problem.diagnostics:
                report(diagnostic)
        if problems:
            raise problems[-1]


def _verify_transition(
    op: Operation, operands: Iterable[SSAValue], results: Iterable[SSAValue], introduces: Reduction | None
) -> None:
    _verify_shardings(
        op,
        [None if _is_resharded(operand) else get_sharding(before_barriers(operand)) for operand in operands],
        [get_sharding(before_barriers(result)) for result in results],
        introduces=introduces,
    )


def _verify_shardings(
    op: Operation,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    introduces: Reduction | None = None,
    removes: Reduction | None = None,
) -> None:
    """Verify the unreduced axes of `op`; shardings on several meshes are not verified."""
    before = [sharding for sharding in operands if sharding is not None]
    after = [sharding for sharding in results if sharding is not None]
    if not any(sharding.unreduced for sharding in (*before, *after)):
        return
    meshes = {mesh_of(sharding, op) for sharding in (*before, *after)}
    if len(meshes) == 1 and (problem := transition_problem(before, after, meshes.pop(), introduces, removes)):
        raise op_error(op, problem)


def _verify_call(call: func.CallOp, symbols: Symbols) -> None:
    function = callee(call, symbols)
    for index, operand in enumerate(call.arguments):
        if not _is_resharded(operand):
            sharding = get_sharding(before_barriers(operand))
            _verify_equal(call, sharding, func_arg_sharding(function, index), f"at call argument {index}.")
    for index, result in enumerate(call.results):
        sharding = func_result_sharding(function, index)
        _verify_equal(call, sharding, get_sharding(result), f"at call result {index}.")


def _verify_return(op: Operation, symbols: Symbols) -> None:
    parent = op.parent_op()
    assert parent is not None
    flow = data_flow_of(parent)
    for index, operand in enumerate(op.operands):
        if isinstance(parent, func.FuncOp):
            target = func_result_sharding(parent, index)
        else:
            result = parent.results[index]
            target = get_sharding(result)
            if target is not None and flow is not None:
                target = flow.inside_sharding(parent, result, target)
        if target is not None and not _is_resharded(operand):
            place = f"at return value {index} without a blessed operation (e.g., sdy.reshard). "
            place += "This is an invalid transition from unreduced to reduced."
            _verify_equal(op, get_sharding(before_barriers(operand)), target, place)


def _verify_equal(op: Operation, first: TensorSharding | None, second: TensorSharding | None, place: str) -> None:
    differing = _unreduced(first) ^ _unreduced(second)
    if differing:
        names = ", ".join(sorted({axis.name for axis in differing}))
        raise op_error(op, f"has unreduced axes mismatch for '{names}' {place}")


def _unreduced(sharding: TensorSharding | None) -> set[AxisRef]:
    return set() if sharding is None else set(sharding.unreduced)


def _is_resharded(value: SSAValue) -> bool:
    """Return whether `value` is the result of a reshard or a sharding constraint."""
    value = before_barriers(value)
    return not isinstance(value, BlockArgument) and isinstance(value.owner, RESHARDS)


def _verify_nothing(op: Operation, symbols: Symbols) -> None:
    pass


def _verify_combined(op: Operation, symbols: Symbols) -> None:
    if get_sharding(before_barriers(op.operands[0])) is None:
        raise op_error(op, "operand must be sharded.")


def _verify_reduce(op: ReduceOp, symbols: Symbols) -> None:
    _verify_transition(op, op.inputs, op.results, introduces=region_reduction(op.body))


def _verify_collective(op: Operation, symbols: Symbols) -> None:
    operands = [get_sharding(before_barriers(op.operands[0]))]
    _verify_shardings(op, operands, [get_sharding(op.results[0])], removes=region_reduction(op.regions[0]))


def _verify_any(op: Operation, symbols: Symbols) -> None:
    if not is_terminator(op):
        _verify_transition(op, op.operands, op.results, introduces="sum")


_SUSPECTS = (collectives.AllReduceOp, collectives.ReduceScatterOp, func.CallOp)
"""The operations to verify in a module without unreduced axes."""

_VERIFIERS: dict[type[Operation], Callable[[Any, Symbols], None]] = {
    ops.ReshardOp: _verify_nothing,
    ops.ShardingConstraintOp: _verify_nothing,
    collectives.AllReduceOp: _verify_combined,
    collectives.ReduceScatterOp: _verify_combined,
    func.CallOp: _verify_call,
    func.ReturnOp: _verify_return,
    ops.ReturnOp: _verify_return,
    ReduceOp: _verify_reduce,
    reducing_collectives.AllReduceOp: _verify_collective,
    reducing_collectives.ReduceScatterOp: _verify_collective,
}
"""The verifiers of operations with their own conditions; all others use `_verify_any`."""
