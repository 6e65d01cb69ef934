"""A `jax.shard_map` sums or gathers values that are equal on the devices already.

A sum of equal values is a product with their number, and their mean or maximum is the value itself: devices exchange
bytes that they have. The usual reason is a gradient that is averaged in each microbatch and once more after the loop.
The rule follows the axes along which values differ from the specs, through the collectives.

Before::

    def local_gradients(params, batch):
        gradients = jax.lax.scan(lambda total, each: (total + jax.lax.pmean(gradient(params, each), "data"), None), ...)
        return jax.lax.pmean(gradients, "data")

After::

    def local_gradients(params, batch):
        gradients = jax.lax.scan(lambda total, each: (total + gradient(params, each), None), ...)
        return jax.lax.pmean(gradients, "data")
"""

from collections.abc import Iterator

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.diagnostics import location_of
from sdy.dialect.ops import ManualComputationOp
from sdy.ir.walking import operations_of
from sdy.passes.account.collectives import Collective, kind_of
from sdy.passes.account.lint.body_edits import LeaveOutSum
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.varying import Varying
from sdy.passes.account.lint.wording import quoted_axes
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp

_KINDS = AllGatherOp | AllReduceOp | ReduceScatterOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find collectives of a manual computation whose operands are equal along all of their axes."""
    by_source: dict[Operation, list[Collective]] = {}
    for each in program.collectives:
        if each.source is not None:
            by_source.setdefault(each.source, []).append(each)
    for manual in operations_of(program.module, ManualComputationOp):
        varying = Varying(manual, program.mesh)
        for op, axes in varying.collectives.items():
            found = by_source.get(op, [])
            if not isinstance(op, _KINDS) or not found or any(varying.axes(each) & axes for each in op.operands):
                continue
            earlier = _earlier(op, varying)
            sums = [each for each in (earlier, op) if isinstance(each, AllReduceOp)]
            again = f": {_article(earlier)} computes them" if earlier else ""
            yield Suspicion(
                op,
                f"{_article(op)} over {quoted_axes(sorted(axes))} has operands that are equal on these devices "
                f"already{again}",
                "leave it out, or multiply by the number of devices in place of a sum",
                [(location_of(earlier), "this collective computes them")] if earlier else [],
                received=sum(each.bytes for each in found),
                collectives=[each.op for each in found],
                cures=[Cure((LeaveOutSum.of(each, program.module),)) for each in sums],
            )


def _article(op: Operation) -> str:
    kind = kind_of(op)
    return f"{'an' if kind.startswith('a') else 'a'} {kind}"


def _earlier(op: Operation, varying: Varying) -> Operation | None:
    """Return the nearest collective that makes an operand equal along the axes of `op`; None for one of the specs."""
    axes = varying.collectives[op]
    seen: set[SSAValue] = set()
    pending = [*op.operands]
    while pending:
        value = pending.pop(0)
        owner = value.owner
        if value in seen:
            continue
        seen.add(value)
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if isinstance(loop, WhileOp) and isinstance(value, BlockArgument):
                pending += [loop.operands[value.index], *_next(loop, value.index)]
        elif isinstance(owner, WhileOp):
            pending += _next(owner, owner.results.index(value))
        elif isinstance(owner, AllGatherOp | AllReduceOp) and axes <= varying.collectives.get(owner, frozenset()):
            return owner
        else:
            pending += owner.operands
    return None


def _next(loop: WhileOp, index: int) -> list[SSAValue]:
    """Return the next value of a carried one."""
    end = loop.body.block.last_op
    return [end.operands[index]] if end else []
