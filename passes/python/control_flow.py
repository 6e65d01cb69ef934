"""Branches and calls; `loops.py` writes loops."""

from collections.abc import Iterable

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, Region, SSAValue

from sdy import stablehlo
from sdy.passes.python.expressions import Expression, call, list_of, tuple_of
from sdy.passes.python.literals import dtype_of, holds
from sdy.passes.python.loops import write_loop
from sdy.passes.python.scope import Printer, Scope, library_call
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp


def _branches(scope: Scope, regions: Iterable[Region], names: Iterable[str]) -> list[str]:
    """Write a function without parameters for each region, and return their names."""
    written: list[str] = []
    for region, text in zip(regions, names, strict=True):
        name = scope.names.new(text)
        inner = scope.inner()
        inner.write_body(region.block)
        scope.define(name, (), inner)
        written.append(name)
    return written


def _if(op: stablehlo.IfOp, scope: Scope) -> Expression:
    names = _branches(scope, [op.true_branch, op.false_branch], ["if_true", "if_false"])
    return call("lax.cond", scope.of(op.pred), *names)


def _case(op: stablehlo.CaseOp, scope: Scope) -> Expression:
    """Return a branch by a boolean, as JAX lowers it, or a switch.

    `lax.switch` clamps a negative index to 0, `stablehlo.case` takes the last branch.
    """
    if (predicate := _predicate(op)) is not None:
        names = _branches(scope, reversed(op.branches), ["if_true", "if_false"])
        return call("lax.cond", scope.of(predicate), *names)
    names = _branches(scope, op.branches, [f"branch_{index}" for index in range(len(op.branches))])
    chosen, last = scope.of(op.index), len(names) - 1
    if not isinstance(op.index.owner, stablehlo.ClampOp):
        chosen = call("jnp.where", f"{chosen} < 0", str(last), chosen)
    return call("lax.switch", chosen, list_of(names))


def _predicate(op: stablehlo.CaseOp) -> SSAValue | None:
    """Return the boolean that chooses between two branches as an integer."""
    converted = op.index.owner
    if len(op.branches) != 2 or not isinstance(converted, stablehlo.ConvertOp):
        return None
    return converted.operand if dtype_of(converted.operand).kind == "b" else None


def _call(op: CallOp, scope: Scope) -> Expression:
    symbol = op.callee.string_value()
    if (known := scope.writer.library.get(symbol)) is None:
        return call(scope.writer.functions[symbol], *map(scope.of, op.arguments))
    positional, named = known.arguments(op.arguments)
    defaults = known.named
    given = {name: scope.of(value) for name, value in named.items() if not _is_default(value, defaults[name])}
    return library_call(known, map(scope.of, positional), given)


def _is_default(value: SSAValue, default: float | None) -> bool:
    return default is not None and holds(value, default)


def _composite(op: CompositeOp, scope: Scope) -> Expression:
    return call(scope.writer.functions[op.decomposition.string_value()], *map(scope.of, op.inputs))


def _barrier(op: OptimizationBarrierOp, scope: Scope) -> Expression:
    values = [*map(scope.of, op.operands)]
    return call("lax.optimization_barrier", values[0] if len(values) == 1 else tuple_of(values))


CONTROL_FLOW: dict[type[Operation], Printer] = {
    CallOp: _call,
    CompositeOp: _composite,
    OptimizationBarrierOp: _barrier,
    WhileOp: write_loop,
    stablehlo.CaseOp: _case,
    stablehlo.IfOp: _if,
}
