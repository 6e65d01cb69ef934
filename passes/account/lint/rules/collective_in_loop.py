"""A collective in each turn of a loop that could run once.

Either it is of what no turn changes, or it sums over devices what is only added up over the turns: the sum of the sums
of all turns is the sum of what each device has added up by itself.

Before::

    def add(total, batch):
        return total + jax.grad(loss)(params, batch), None  # an all-reduce in each turn

    total, _ = jax.lax.scan(add, jnp.zeros_like(params), batches)

After::

    def add(totals, parts):  # a dimension of as many parts as there are devices, split over them
        return totals + jax.vmap(jax.grad(loss), (None, 0))(params, parts), None

    totals, _ = jax.lax.scan(add, zeros, batches_in_parts)
    total = totals.mean(0)
"""

from collections.abc import Container, Iterator

from xdsl.ir import Block, Operation, SSAValue

from sdy.diagnostics import location_of
from sdy.dialect.constants import constant_number
from sdy.ir.captures import captured_values
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.loops import carried_unchanged, loops_around
from sdy.passes.common.op_properties import is_pure
from sdy.rules import movement
from sdy.stablehlo.control_flow import ReturnOp, WhileOp
from sdy.stablehlo.elementwise import AddOp, ConvertOp, DivOp, MulOp, NegOp
from sdy.stablehlo.shape import ReshapeOp

_SAME = (
    "in each of {times:,} turns of a loop, of what is the same in all",
    "take what it is computed from out of the branch or from behind the barrier, and compute it before the loop",
)
_SUM = (
    "in each of {times:,} turns of a loop, and is only added up",
    "let each device add up its own part, with a dimension of parts that is split over {axes}, or in jax.shard_map, "
    "and sum over devices once after the loop",
)


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The collectives that run several times, and need not."""
    for collective in program.collectives:
        loop = next(loops_around(collective.op), None)
        if loop is None or collective.times < 2:
            continue
        at = collective.source or collective.op
        if _is_same_in_all_turns(collective.op, loop):
            yield _suspicion(collective, at, *_SAME)
        elif collective.kind == "all-reduce" and (sum_ := _sum_over_turns(collective.op.results[0], loop)):
            yield _suspicion(collective, program.traced.sources.get(sum_, at), *_SUM)


def _suspicion(collective: Collective, at: Operation, what: str, cure: str) -> Suspicion:
    axes, times = quoted_axes(collective.axes), collective.times
    return Suspicion(
        at,
        f"an {collective.kind} along {axes} of {collective.op.results[0].type} runs {what.format(times=times)}",
        cure.format(axes=axes),
        [(location_of(collective.source or collective.op), f"the {collective.kind} is of what is computed here")],
        received=collective.bytes - collective.bytes / times,
        collectives=[collective.op],
    )


def _is_same_in_all_turns(op: Operation, loop: WhileOp) -> bool:
    """Whether `op` is of what no turn changes, also where a branch or a barrier keeps the compiler from moving it."""
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
    around = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return around is loop or (around is not None and loop in loops_around(around))


def _sum_over_turns(value: SSAValue, loop: WhileOp) -> AddOp | None:
    """The sum to which all goes that is made of `value` in a turn, moved or scaled by constants; it is carried on."""
    pending, seen = [value], {value: None}
    while pending:
        at = pending.pop()
        for use in at.uses:
            op = use.operation
            if isinstance(op, ReturnOp) and op.parent is loop.body.block:
                if not _is_carried_to(use.index, loop, seen):
                    return None
            elif not _is_linear(op, at):
                return None
            else:
                new = [result for result in op.results if result not in seen]
                seen.update(dict.fromkeys(new))
                pending += new
    return next((each.owner for each in seen if isinstance(each.owner, AddOp)), None)


def _is_carried_to(index: int, loop: WhileOp, seen: Container[SSAValue]) -> bool:
    """Whether what the loop carries is used in a turn for nothing but to be added to."""
    carried = loop.body.block.args[index]
    return all(use.operation.results and use.operation.results[0] in seen for use in carried.uses)


def _is_linear(op: Operation, value: SSAValue) -> bool:
    """Whether the sum of what `op` makes of several values is what it makes of their sum."""
    if isinstance(op, AddOp | ConvertOp | NegOp | ReshapeOp) or movement(op.name) is not None:
        return True
    others = [operand for operand in op.operands if operand is not value]
    is_scaled = isinstance(op, MulOp) or (isinstance(op, DivOp) and op.operands[0] is value)
    return is_scaled and len(others) == 1 and _is_constant(others[0])


def _is_constant(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        return False
    return constant_number(value) is not None or (movement(owner.name) is not None and _is_constant(owner.operands[0]))
