"""A collective runs in each iteration of a loop, though once would suffice.

Either its operand is loop-invariant, or it is an all-reduce whose results are only accumulated over the iterations. A
sum is linear: each device can accumulate its partial sums, and one all-reduce after the loop adds them.
`sdy-sum-after-loops` does so if the sum begins with zeros and the number of iterations is known. Or a state that the
body only writes to, such as the outputs of a pipeline, is summed in each iteration.

Before::

    def add(total, batch):
        return total + jax.grad(loss)(params, batch), None  # an all-reduce in each turn

    total, _ = jax.lax.scan(add, momentum, batches)

After::

    def add(totals, parts):  # a leading dimension with one part per device, sharded over the devices
        return totals + jax.vmap(jax.grad(loss), (None, 0))(params, parts), None

    totals, _ = jax.lax.scan(add, zeros, batches_in_parts)
    total = momentum + totals.mean(0)
"""

from collections.abc import Collection, Container, Iterator, Mapping

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from sdy.diagnostics import location_of
from sdy.ir.walking import captured_values
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.use_def import is_linear
from sdy.passes.account.lint.wording import in_iterations, quoted_axes
from sdy.passes.common.loops import carried_unchanged, loop_trips, loops_around
from sdy.passes.common.properties import is_pure
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.control_flow import ReturnOp, WhileOp
from sdy.stablehlo.elementwise import AddOp, ConvertOp, MulOp
from sdy.stablehlo.mixed_elementwise import SelectOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp

_INVARIANT = (
    "{iterations}, on a loop-invariant value",
    "move its operand out of the branch or the optimization barrier, and compute it before the loop",
)
_SUM = (
    "{iterations}, and its results are only accumulated",
    "accumulate a partial sum on each device, in a dimension that is sharded over {axes} or in jax.shard_map, and sum "
    "over devices once after the loop",
)
_STATE = (
    "{iterations}, on a state that the loop only writes to",
    "let each device carry its own part of the state, and communicate over {axes} once after the loop",
)

_KEPT: Mapping[type[Operation], Collection[int]] = {
    ConvertOp: (0,),
    DynamicUpdateSliceOp: (0,),
    MulOp: (0, 1),
    ReshapeOp: (0,),
    ScatterOp: (0,),
    SelectOp: (1, 2),
}
"""The operands whose elements an operation keeps, or replaces by others; a product keeps them if it is with a mask."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find collectives in loops that could run once."""
    for collective in program.collectives:
        loop = next(loops_around(collective.op), None)
        if loop is None:
            continue
        at = collective.source or collective.op
        if _is_invariant(collective.op, loop):
            yield _suspicion(collective, at, *_INVARIANT)
        elif collective.kind == "all-reduce" and (sum_ := _accumulation(collective.op.results[0], loop)):
            yield _suspicion(collective, program.traced.sources.get(sum_, at), *_SUM)
        elif collective.kind == "all-reduce" and _is_only_carried(collective.op, loop):
            yield _suspicion(collective, at, *_STATE)


def _suspicion(collective: Collective, at: Operation, what: str, cure: str) -> Suspicion:
    axes, result = quoted_axes(collective.axes), collective.op.results[0].type
    what = what.format(iterations=in_iterations(collective))
    is_known = all(loop_trips(loop) is not None for loop in loops_around(collective.op))
    return Suspicion(
        at,
        f"{collective.kind} over {axes} runs {what}",
        cure.format(axes=axes),
        [
            (
                location_of(collective.source or collective.op),
                f"the {collective.kind} with result {result} is of the value computed here",
            )
        ],
        received=collective.bytes - (collective.bytes / collective.times if is_known else 0),
        collectives=[collective.op],
    )


def _is_invariant(op: Operation, loop: WhileOp) -> bool:
    """Return whether `op` is loop-invariant, even if a branch or a barrier keeps XLA from hoisting it."""
    unchanged = carried_unchanged(loop)
    pending: list[SSAValue] = [*op.operands]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen or value in unchanged or not _is_inside(value, loop):
            continue
        seen.add(value)
        if isinstance(value.owner, Block) or not is_pure(value.owner):
            return False
        pending += [*value.owner.operands, *captured_values(value.owner)]
    return True


def _is_inside(value: SSAValue, loop: WhileOp) -> bool:
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return owner is loop or (owner is not None and loop in loops_around(owner))


def _accumulation(value: SSAValue, loop: WhileOp) -> AddOp | None:
    """Return the addition that accumulates `value` in a loop-carried sum, if all uses of `value` are linear."""
    pending, seen = [value], {value: None}
    while pending:
        at = pending.pop()
        for use in at.uses:
            op = use.operation
            if isinstance(op, ReturnOp) and op.parent is loop.body.block:
                if not _is_carried_to(use.index, loop, seen):
                    return None
            elif not is_linear(op, at):
                return None
            else:
                new = [result for result in op.results if result not in seen]
                seen.update(dict.fromkeys(new))
                pending += new
    return next((each.owner for each in seen if isinstance(each.owner, AddOp)), None)


def _is_carried_to(index: int, loop: WhileOp, seen: Container[SSAValue]) -> bool:
    """Return whether the loop-carried value is used in an iteration only by the accumulation."""
    carried = loop.body.block.args[index]
    return all(use.operation.results and use.operation.results[0] in seen for use in carried.uses)


def _is_only_carried(collective: Operation, loop: WhileOp) -> bool:
    """Return whether a state is only written to on its way to a collective, and from there to its next value."""
    end = loop.body.block.last_op
    next_values = {*_written(collective.results[0])}
    indices = [index for index, value in enumerate(end.operands if end else ()) if value in next_values]
    states = [loop.body.block.args[index] for index in indices]
    readers = [_readers(each) for each in states]
    return (
        bool(states)
        and _readers(collective.results[0]) == {end}
        and all(collective in each and each <= {collective, end} for each in readers)
    )


def _written(state: SSAValue) -> list[SSAValue]:
    """Return a state and the values that writes make of it."""
    found = [state]
    for value in found:
        results = {use.operation.results[0]: None for use in value.uses if _is_write(use)}
        found += (each for each in results if each not in found)
    return found


def _readers(state: SSAValue) -> set[Operation]:
    """Return the operations that use a state, or what writes make of it, other than for writes."""
    return {use.operation for value in _written(state) for use in value.uses if not _is_write(use)}


def _is_write(use: Use) -> bool:
    """Return whether an operation keeps the elements of an operand, except those that it replaces."""
    others = (operand for operand in use.operation.operands if operand is not use.operation.operands[use.index])
    is_kept = use.index in _KEPT.get(type(use.operation), ())
    return is_kept and (not isinstance(use.operation, MulOp) or any(map(_is_mask, others)))


def _is_mask(value: SSAValue) -> bool:
    """Return whether a value is cast from truth values, maybe before the loop."""
    loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
    if isinstance(value, BlockArgument) and isinstance(loop, WhileOp):
        before = carried_unchanged(loop).get(value)
        return before is not None and _is_mask(before)
    if isinstance(value.owner, BroadcastInDimOp | ConvertOp):
        return _is_mask(value.owner.operands[0])
    return element_type(value) == i1
