"""Loops, branches and calls."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import CallOp
from xdsl.ir import BlockArgument, Operation, Region, SSAValue

from sdy import stablehlo
from sdy.dialect.constants import constant_number
from sdy.passes.common.loops import carried_unchanged, loop_trips
from sdy.passes.python.expressions import Expression, call, list_of, tuple_of
from sdy.passes.python.literals import dtype_of, dtype_text
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.mixed_elementwise import CompareOp


def _while(op: WhileOp, scope: Scope) -> None:
    """Write a loop. Values that it carries unchanged are those around it."""
    unchanged = carried_unchanged(op)
    for argument, begin in unchanged.items():
        scope.bind(argument, scope.of(begin))
    carried = [index for index, argument in enumerate(op.body.block.args) if argument not in unchanged]
    for index, result in enumerate(op.results):
        if index not in carried:
            scope.bind(result, scope.of(op.operands[index]))
    counter = _counter(op)
    if counter is not None:
        _write_fori_loop(op, scope, counter, [index for index in carried if index != counter])
    else:
        _write_while_loop(op, scope, carried)


def _write_while_loop(op: WhileOp, scope: Scope, carried: Sequence[int]) -> None:
    condition, body = scope.names.new("condition"), scope.names.new("body")
    tests = op.cond.block.last_op
    assert tests is not None
    _write_stage(scope, condition, op.cond, carried, tests.operands)
    _write_stage(scope, body, op.body, carried, _returned(op.body, carried))
    begin = _packed([scope.of(op.operands[index]) for index in carried])
    _assign(scope, op, carried, call("lax.while_loop", condition, body, begin))


def _write_fori_loop(op: WhileOp, scope: Scope, counter: int, carried: Sequence[int]) -> None:
    begin, end = constant_number(op.operands[counter]), _end(op)
    dtype = dtype_of(op.operands[counter])
    body = scope.names.new("body")
    inner = scope.inner()
    name = inner.name(op.body.block.args[counter], "i")
    _write_stage(scope, body, op.body, carried, _returned(op.body, carried), [name], inner)
    limits = [f"{dtype_text(dtype)}({limit})" if dtype != np.int32 else str(limit) for limit in (begin, end)]
    values = _packed([scope.of(op.operands[index]) for index in carried])
    scope.bind(op.results[counter], f"{dtype_text(dtype)}({max(int(begin or 0), int(end or 0))})")
    _assign(scope, op, carried, call("lax.fori_loop", *limits, body, values))


def _write_stage(
    scope: Scope,
    name: str,
    region: Region,
    carried: Sequence[int],
    results: Sequence[SSAValue],
    parameters: Sequence[str] = (),
    inner: Scope | None = None,
) -> None:
    """Write the function of a region of a loop, of one value or of a tuple of the carried ones."""
    inner = inner or scope.inner()
    loop = region.parent
    assert loop is not None
    names = [inner.name(region.block.args[index], initial_name(scope, loop.operands[index])) for index in carried]
    parameter = names[0] if len(names) == 1 else scope.names.new("carry") if names else "_"
    if len(names) > 1:
        inner.unpack(names, parameter)
    inner.write_body(region.block, results)
    scope.define(name, (*parameters, parameter), inner)


def initial_name(scope: Scope, value: SSAValue) -> str:
    """Return the variable of the initial value of a loop's state; "carried" if it is none."""
    text = scope.of(value).text
    return text.rstrip("_0123456789") or text if text.isidentifier() else "carried"


def _returned(region: Region, carried: Sequence[int]) -> list[SSAValue]:
    last = region.block.last_op
    assert last is not None
    return [last.operands[index] for index in carried]


def _packed(values: Sequence[Expression]) -> Expression:
    return values[0] if len(values) == 1 else tuple_of(values)


def _assign(scope: Scope, op: Operation, carried: Sequence[int], value: Expression) -> None:
    defaults = [initial_name(scope, op.operands[index]) for index in carried]
    scope.assign([op.results[index] for index in carried], value, defaults)


def _counter(op: WhileOp) -> int | None:
    """Return which carried value counts from a constant to a constant by one, as the only condition of the loop."""
    test = op.cond.block.last_op
    compare = test.operands[0].owner if test is not None else None
    if not isinstance(compare, CompareOp) or compare.comparison_direction.data is not ComparisonDirection.LT:
        return None
    value = compare.operands[0]
    if not isinstance(value, BlockArgument) or value.owner is not op.cond.block or loop_trips(op) is None:
        return None
    index = value.index
    last = op.body.block.last_op
    assert last is not None
    step = last.operands[index].owner
    is_simple = isinstance(step, AddOp) and 1 in (constant_number(operand) for operand in step.operands)
    is_known = constant_number(op.operands[index]) is not None and _end(op) is not None
    return index if is_simple and is_known and dtype_of(value).kind in "iu" else None


def _end(op: WhileOp) -> int | float | None:
    test = op.cond.block.last_op
    compare = test.operands[0].owner if test is not None else None
    assert isinstance(compare, CompareOp)
    end = compare.operands[1]
    if isinstance(end, BlockArgument) and end.owner is op.cond.block:
        end = carried_unchanged(op).get(end, end)
    return constant_number(end)


def _branches(scope: Scope, regions: Sequence[Region], names: Sequence[str]) -> list[str]:
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
    """Return a switch. `lax.switch` clamps a negative index to 0, `stablehlo.case` takes the last branch."""
    names = _branches(scope, op.branches, [f"branch_{index}" for index in range(len(op.branches))])
    chosen, last = scope.of(op.index), len(names) - 1
    if not isinstance(op.index.owner, stablehlo.ClampOp):
        chosen = call("jnp.where", f"{chosen} < 0", str(last), chosen)
    return call("lax.switch", chosen, list_of(names))


def _call(op: CallOp, scope: Scope) -> Expression:
    return call(scope.writer.functions[op.callee.string_value()], *map(scope.of, op.arguments))


def _composite(op: CompositeOp, scope: Scope) -> Expression:
    return call(scope.writer.functions[op.decomposition.string_value()], *map(scope.of, op.inputs))


def _barrier(op: OptimizationBarrierOp, scope: Scope) -> Expression:
    values = [*map(scope.of, op.operands)]
    return call("lax.optimization_barrier", values[0] if len(values) == 1 else tuple_of(values))


CONTROL_FLOW: dict[type[Operation], Printer] = {
    CallOp: _call,
    CompositeOp: _composite,
    OptimizationBarrierOp: _barrier,
    WhileOp: _while,
    stablehlo.CaseOp: _case,
    stablehlo.IfOp: _if,
}
