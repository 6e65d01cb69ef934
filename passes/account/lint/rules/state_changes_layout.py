"""A step takes and returns its state with different shardings.

The next step takes what this one returns: it is resharded in each step, if not in this one, then before the next.
Results that `out_shardings` replicates are gathered, and need the memory of all shards.

Before::

    step = jax.jit(update, out_shardings=P())  # params are sharded as P("data")

After::

    step = jax.jit(update, out_shardings=P("data"))
"""

from collections.abc import Iterator

from xdsl.ir import SSAValue

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.edits import Cure, Dims, ShardResult, dims_of, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as
from sdy.passes.auto.state import find_state


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find reshards of the next values of state for `out_shardings` that are not those of the arguments."""
    end = program.main.get_return_op()
    if end is None:
        return
    returned: dict[SSAValue, list[Collective]] = {}
    """The collectives of the reshards of each returned value."""
    for cause, alike in program.collectives_by_cause.items():
        if cause.purpose is Purpose.RESHARD and cause.operation is end and cause.tensor is not None:
            returned.setdefault(cause.tensor, []).extend(alike)
    found: dict[int, tuple[int, list[Collective]]] = {}
    for index, result in find_state(program.main).items():
        value = end.operands[result]
        collectives = returned.get(value)
        if collectives and dims_of(func_result_sharding(program.main, result), value) != _dims(program, index):
            found[index] = result, collectives
    if found:
        yield _suspicion(program, found)


def _suspicion(program: LintedProgram, found: dict[int, tuple[int, list[Collective]]]) -> Suspicion:
    """Return one match for all state: `out_shardings` are written in one place."""
    worst = max(found, key=lambda index: sum(each.bytes for each in found[index][1]))
    result, _ = found[worst]
    argument, collectives = program.main.args[worst], [each for _, alike in found.values() for each in alike]
    end = program.main.get_return_op()
    return Suspicion(
        end.operands[result] if end else argument,
        f"{program.names[worst]}, {argument.type}, is {sharded_as(get_sharding(argument))}, but its next value, result "
        f"{result}, is {sharded_as(func_result_sharding(program.main, result))}",
        "",
        received=sum(each.bytes for each in collectives),
        times=len(found),
        collectives=[each.op for each in collectives],
        cures=[Cure(tuple(ShardResult(result, _dims(program, index)) for index, (result, _) in found.items()))],
    )


def _dims(program: LintedProgram, index: int) -> Dims:
    argument = program.main.args[index]
    return value_dims(argument)
