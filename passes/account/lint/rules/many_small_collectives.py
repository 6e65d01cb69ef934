"""Many small collectives, where one would do.

A collective takes as long as its messages travel, however few bytes are in them: a thousand numbers that are summed one
by one take a thousand times as long as when they are summed together. Told are collectives of one line that do not
depend on each other. XLA joins some of those that come after one another; it does not where other operations stand
between them, nor any that are no all-reduces.

Before::

    largest = [jnp.max(y[:, column]) for column in range(64)]

After::

    largest = jnp.max(y[:, :64], axis=0)
"""

from collections.abc import Iterator

from xdsl.ir import Block, Operation

from sdy.diagnostics import Location
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.spmd.costs.sizes import value_bytes

Kind = tuple[str, tuple[str, ...], Location | None, Block | None]


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The small collectives of one kind, along the same axes, that one line asks for."""
    kinds: dict[Kind, list[Collective]] = {}
    for each in program.collectives:
        if sum(map(value_bytes, each.op.results)) < program.thresholds.small:
            where = program.place(each.source or each.op)
            kinds.setdefault((each.kind, each.axes, where, each.op.parent), []).append(each)
    for (kind, axes, where, _), alike in kinds.items():
        if len(alike) >= program.thresholds.many and (together := _independent(alike)):
            yield Suspicion(
                where or alike[0].op,
                f"{kind}s along {quoted_axes(axes)}, each of few bytes and none needed by another, run one by one",
                "stack what they are of into one tensor before they are asked for",
                received=sum(each.bytes for each in together),
                times=sum(each.times for each in together),
            )


def _independent(collectives: list[Collective]) -> list[Collective]:
    """Those of the collectives of one block, in its order, that need the result of none of the others."""
    wanted = {each.op for each in collectives}
    tainted: set[Operation] = set()
    block = collectives[0].op.parent
    for op in block.ops if block else ():
        if any(
            operand.owner in tainted or operand.owner in wanted for inner in op.walk() for operand in inner.operands
        ):
            tainted.add(op)
    return [each for each in collectives if each.op not in tainted]
