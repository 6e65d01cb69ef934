"""A step takes and returns its state with different shardings.

The next step takes what this one returns: it is resharded in each step, if not in this one, then before the next.
Results that `out_shardings` replicates are gathered, and need the memory of all shards.

Before::

    step = jax.jit(update, out_shardings=P())  # params are sharded as P("data")

After::

    step = jax.jit(update, out_shardings=P("data"))
"""

from collections.abc import Iterator

from xdsl.ir import BlockArgument, SSAValue

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, ShardResult, dims_of, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as
from sdy.passes.auto.state import find_state

_Found = dict[BlockArgument, tuple[int, list[Collective]]]
"""State, each with the result that is its next value, and the collectives that reshard it to be returned."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find state whose `out_shardings` are not those of the arguments: reshards of the next values, if there are any.

    If there are none, propagation has moved the layout of the results into the program.
    """
    end = program.main.get_return_op()
    if end is None:
        return
    returned: dict[SSAValue, list[Collective]] = {}
    """The collectives of the reshards of each returned value."""
    for cause, alike in program.collectives_by_cause.items():
        if cause.purpose is Purpose.RESHARD and cause.operation is end and cause.tensor is not None:
            returned.setdefault(cause.tensor, []).extend(alike)
    found: _Found = {}
    for index, result in find_state(program.main).items():
        argument, value = program.main.args[index], end.operands[result]
        given = func_result_sharding(program.main, result)
        if program.initial_result_sharding(result) is not None and dims_of(given, value) != value_dims(argument):
            found[argument] = result, returned.get(value, [])
    resharded = {argument: each for argument, each in found.items() if each[1]}
    if found:
        yield _suspicion(program, resharded or found)


def _suspicion(program: LintedProgram, found: _Found) -> Suspicion:
    """Return one match for all state: `out_shardings` are written in one place."""
    worst = max(found, key=lambda argument: sum(each.bytes for each in found[argument][1]))
    result, _ = found[worst]
    collectives = [each for _, alike in found.values() for each in alike]
    end = program.main.get_return_op()
    given = {argument: func_result_sharding(program.main, result) for argument, (result, _) in found.items()}
    candidates = Candidates(program)
    to_results = (candidates.shard(argument, dims_of(sharding, argument)) for argument, sharding in given.items())
    held = sum(program.local_bytes(argument, get_sharding(argument)) for argument in found)
    return Suspicion(
        end.operands[result] if end else worst,
        f"{program.names[worst.index]}, {worst.type}, is {sharded_as(get_sharding(worst))}, but its next value, result "
        f"{result}, is {sharded_as(given[worst])}",
        "",
        [(None, "both are given: change `out_shardings`, or the sharding of the argument")],
        received=sum(each.bytes for each in collectives),
        held=0 if collectives else held,
        times=len(found),
        collectives=[each.op for each in collectives],
        cures=[
            Cure(tuple(ShardResult(result, value_dims(argument)) for argument, (result, _) in found.items())),
            Cure(tuple(to_results)),
        ],
        cause=__name__,
    )
