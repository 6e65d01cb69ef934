"""A result is computed sharded, and gathered or resharded for the layout in which it is returned.

`out_shardings` replicate what nothing needs replicated, such as the attention maps of an evaluation. Or state has a
layout that its next value has not: caches without the axis of the batch, or the history of an optimizer that is
replicated beside sharded parameters. The rule reports results for which a layout that was tried avoids the
communication.

Before::

    evaluate = jax.jit(evaluate, out_shardings=P())  # returns a loss, and maps that are computed as P("data", "model")

After::

    evaluate = jax.jit(evaluate, out_shardings=(P(), P("data", "model")))
"""

from collections.abc import Iterator

from xdsl.ir import SSAValue

from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, Edit, ShardResult, dims_of
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import from_to, sharded_as
from sdy.passes.auto.state import find_state

Returned = tuple[Cause, list[Collective]]
"""The reshard of a result."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find results that are resharded to a given layout: all state in one match, whose layouts are written together."""
    end = program.main.get_return_op()
    if end is None:
        return
    reshards: dict[SSAValue, Returned] = {
        cause.tensor: (cause, alike)
        for cause, alike in program.collectives_by_cause.items()
        if cause.purpose is Purpose.RESHARD and cause.operation is end and cause.tensor is not None
    }
    returned = {
        index: reshards[value]
        for index, value in enumerate(end.operands)
        if value in reshards and program.initial_result_sharding(index) is not None
    }
    argument_of = {result: index for index, result in find_state(program.main).items()}
    state = {argument_of[result]: each for result, each in returned.items() if result in argument_of}
    if state:
        yield _of_state(program, state)
    for result, (cause, alike) in returned.items():
        if result not in argument_of:
            value = end.operands[result]
            yield Suspicion(
                value,
                f"result {result}, {value.type}, is resharded {from_to(cause.before, cause.after)}, to be returned",
                "",
                [GivenBy(value)],
                received=sum(each.bytes for each in alike),
                collectives=[each.op for each in alike],
                cures=[Cure((ShardResult(result, dims_of(cause.before, value)),))],
            )


def _of_state(program: LintedProgram, state: dict[int, Returned]) -> Suspicion:
    """Return the match of state whose next values are computed in other layouts."""
    worst = max(state, key=lambda index: sum(each.bytes for each in state[index][1]))
    argument, (cause, _) = program.main.args[worst], state[worst]
    candidates = Candidates(program)
    edits: list[Edit] = [
        candidates.shard(program.main.args[index], dims_of(each.before, program.main.args[index]))
        for index, (each, _) in state.items()
    ]
    collectives = [each for _, alike in state.values() for each in alike]
    return Suspicion(
        argument,
        f"{program.called(argument)}, {argument.type}, is {sharded_as(get_sharding(argument))}, but its next value is "
        f"computed {sharded_as(cause.before)}, and resharded",
        "",
        [GivenBy(argument)],
        received=sum(each.bytes for each in collectives),
        times=len(state),
        collectives=[each.op for each in collectives],
        cures=[Cure(tuple(edits))],
    )
