"""Loops: `lax.scan` over the rows of arrays, `lax.fori_loop` from a constant, and `lax.while_loop`."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from sdy.dialect.constants import constant_number
from sdy.ir.shapes import shape
from sdy.passes.common.loops import carried_unchanged, loop_trips
from sdy.passes.python.expressions import Expression, Item, call, index, tuple_of
from sdy.passes.python.literals import dtype_of, dtype_text
from sdy.passes.python.scans import Scan, find_scan
from sdy.passes.python.scope import Scope, plain_name, tuple_
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.mixed_elementwise import CompareOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp


def write_loop(op: WhileOp, scope: Scope) -> None:
    """Write a loop. Values that it carries unchanged are those around it."""
    unchanged = carried_unchanged(op)
    for argument, begin in unchanged.items():
        scope.bind(argument, scope.of(begin))
    carried = [index for index, argument in enumerate(op.body.block.args) if argument not in unchanged]
    for result, begin in zip(op.results, op.operands, strict=True):
        if result.index not in carried:
            scope.bind(result, scope.of(begin))
    counters = _counters(op)
    if not counters:
        _write_while_loop(op, scope, carried)
        return
    begin, end = op.operands[counters[0]], _end(op)
    last = _last(begin, end, scope)
    for counter in counters:
        carried.remove(counter)
        scope.bind(op.results[counter], last)
    scan = find_scan(op, counters) if loop_trips(op) is not None else None
    if scan is not None:
        _write_scan(op, scope, scan, carried)
    else:
        _write_fori_loop(op, scope, (begin, end), counters, carried)


def _write_while_loop(op: WhileOp, scope: Scope, carried: Sequence[int]) -> None:
    condition, body = scope.names.new("condition"), scope.names.new("body")
    tests = op.cond.block.last_op
    assert tests is not None
    _write_stage(scope, condition, op.cond, carried, tests.operands)
    _write_stage(scope, body, op.body, carried, _returned(op.body, carried))
    begin = _packed([scope.of(op.operands[index]) for index in carried])
    _assign(scope, op, carried, call("lax.while_loop", condition, body, begin))


def _write_fori_loop(
    op: WhileOp, scope: Scope, limits: tuple[SSAValue, SSAValue], counters: Sequence[int], carried: Sequence[int]
) -> None:
    body = scope.names.new("body")
    inner = scope.inner()
    name = inner.names.new("i")
    for counter in counters:
        inner.bind(op.body.block.args[counter], name)
    _write_stage(scope, body, op.body, carried, _returned(op.body, carried), [name], inner)
    texts = [_limit(value, scope) for value in limits]
    values = _packed([scope.of(op.operands[index]) for index in carried])
    _assign(scope, op, carried, call("lax.fori_loop", *texts, body, values))


def _limit(value: SSAValue, scope: Scope) -> Item:
    number, dtype = constant_number(value), dtype_of(value)
    if number is None:
        return scope.of(value)
    return str(int(number)) if dtype == np.int32 else f"{dtype_text(dtype)}({int(number)})"


def _last(begin: SSAValue, end: SSAValue, scope: Scope) -> Expression:
    """Return the last value of a counter, for the code behind its loop."""
    first, last = constant_number(begin), constant_number(end)
    assert first is not None
    if last is None:
        return call("jnp.maximum", _limit(begin, scope), scope.of(end))
    return call(dtype_text(dtype_of(begin)), str(int(max(first, last))))


def _write_scan(op: WhileOp, scope: Scope, scan: Scan, carried: Sequence[int]) -> None:
    """Write a loop over rows: its function takes the state and a row of each array, and returns the state and rows."""
    state = [index for index in carried if index not in scan.writes]
    arrays = [*dict.fromkeys(read.operand for read in scan.reads)]
    xs = [*map(scope.of, arrays)]
    if scan.indices:
        xs.append(call("jnp.arange", str(scan.trips), dtype=dtype_text(dtype_of(scan.indices[0]))))
    body = scope.names.new("body")
    written = _write_scan_body(op, body, scope, scan, state, arrays)
    begin = _packed([scope.of(op.operands[index]) for index in state])
    options: dict[str, Item] = {} if xs else {"length": str(scan.trips)}
    if scan.is_reversed:
        options["reverse"] = "True"
    loop = call("lax.scan", body, begin, _packed(xs) if xs else "None", **options)

    ends = [scope.name(op.results[index], initial_name(scope, op.operands[index])) for index in state]
    ys = [scope.name(op.results[index], _stack_name(row)) for index, row in zip(scan.writes, written, strict=True)]
    groups = ((ends, "carry"), (ys, "stacks"))
    targets = [names[0] if len(names) == 1 else scope.names.new(together) for names, together in groups]
    scope.unpack(targets, loop)
    for (names, _), target in zip(groups, targets, strict=True):
        if len(names) > 1:
            scope.unpack(names, target)


def _write_scan_body(
    op: WhileOp, name: str, scope: Scope, scan: Scan, state: Sequence[int], arrays: Sequence[SSAValue]
) -> list[Expression]:
    """Write the function of an iteration, and return the rows that it writes."""
    block, inner = op.body.block, scope.inner()
    names = [inner.name(block.args[index], initial_name(scope, op.operands[index])) for index in state]
    rows = {array: inner.names.new(f"{initial_name(scope, array)}_i") for array in arrays}
    items = [*rows.values(), *([inner.names.new("i")] if scan.indices else [])]
    for value in scan.indices:
        inner.bind(value, items[-1])
    done: set[Operation] = {*scan.counting, *scan.writes.values()}
    for read in scan.reads:
        done |= _bind_row(read, rows[read.operand], inner)
    parameters = [_parameter(inner, names, "carry"), _parameter(inner, items, "rows")]
    inner.write_operations(each for each in block.ops if each is not block.last_op and each not in done)
    after = [*map(inner.of, _returned(op.body, state))]
    written = [_written_row(write.update, inner) for write in scan.writes.values()]
    inner.write("return", tuple_([_packed(after), _packed(written) if written else Expression("None")]))
    scope.define(name, parameters, inner)
    return written


def _bind_row(read: DynamicSliceOp, row: str, scope: Scope) -> set[Operation]:
    """Use `row` for the slice of a row, and return the operations that are not to be written."""
    scope.bind(read.result, index(Expression(row), "None"))
    row_shape = shape(read.result.type)[1:]
    reshapes = {
        use.operation
        for use in read.result.uses
        if isinstance(use.operation, ReshapeOp) and shape(use.operation.result.type) == row_shape
    }
    for reshape in reshapes:
        scope.bind(reshape.results[0], row)
    return {read, *reshapes}


def _written_row(update: SSAValue, scope: Scope) -> Expression:
    """Return the row that an update of one row writes."""
    row_shape = shape(update.type)[1:]
    op = update.owner
    last_dims = [*range(1, len(row_shape) + 1)]
    adds_dim = isinstance(op, BroadcastInDimOp) and [*op.broadcast_dimensions.get_values()] == last_dims
    if (
        isinstance(op, Operation)
        and (isinstance(op, ReshapeOp) or adds_dim)
        and shape(op.operands[0].type) == row_shape
    ):
        return scope.of(op.operands[0])
    return index(scope.of(update), "0")


def _stack_name(row: Expression) -> str:
    return f"{plain_name(row.text)}s" if row.text.isidentifier() else "ys"


def _parameter(scope: Scope, names: Sequence[str], together: str) -> str:
    """Return the parameter of a function that takes one value, or a tuple of several, which is unpacked."""
    if len(names) < 2:
        return names[0] if names else "_"
    parameter = scope.names.new(together)
    scope.unpack(names, parameter)
    return parameter


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
    parameter = _parameter(inner, names, "carry")
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
    """Return one value, or a tuple."""
    return values[0] if len(values) == 1 else tuple_of(values)


def _assign(scope: Scope, op: Operation, carried: Sequence[int], value: Expression) -> None:
    defaults = [initial_name(scope, op.operands[index]) for index in carried]
    scope.assign([op.results[index] for index in carried], value, defaults)


def _counters(op: WhileOp) -> list[int]:
    """Return which carried values count up by one from one constant: first the one that the condition compares.

    The list is empty if the condition is not that a counter is below a value from around the loop.
    """
    compare = _comparison(op)
    if compare is None or compare.comparison_direction.data is not ComparisonDirection.LT:
        return []
    value = compare.operands[0]
    if not isinstance(value, BlockArgument) or value.owner is not op.cond.block:
        return []
    if not _is_around(_end(op), op) or dtype_of(value).kind not in "iu" or not _counts(op, value.index):
        return []
    begin = constant_number(op.operands[value.index])
    others = (
        index
        for index, operand in enumerate(op.operands)
        if index != value.index and operand.type == value.type and constant_number(operand) == begin
    )
    return [value.index, *(index for index in others if _counts(op, index))]


def _counts(op: WhileOp, index: int) -> bool:
    """Return whether a carried value begins at a constant and grows by one."""
    body = op.body.block
    assert body.last_op is not None
    step = body.last_op.operands[index].owner
    if not isinstance(step, AddOp) or constant_number(op.operands[index]) is None:
        return False
    return any(
        value is body.args[index] and constant_number(other) == 1
        for value, other in ((step.lhs, step.rhs), (step.rhs, step.lhs))
    )


def _comparison(op: WhileOp) -> CompareOp | None:
    test = op.cond.block.last_op
    compare = test.operands[0].owner if test is not None else None
    return compare if isinstance(compare, CompareOp) else None


def _end(op: WhileOp) -> SSAValue:
    """Return the value with which the condition compares: one from around the loop if it is carried unchanged."""
    compare = _comparison(op)
    assert compare is not None
    return carried_unchanged(op).get(compare.rhs, compare.rhs)


def _is_around(value: SSAValue, op: WhileOp) -> bool:
    """Return whether a value of the condition is a constant, or from around the loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    return constant_number(value) is not None or block is not op.cond.block
