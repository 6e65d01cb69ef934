"""A step takes and returns its state with different shardings.

The next step takes what this one returns: it is resharded in each step, if not in this one, then before the next.
Results that `out_shardings` replicates are gathered, and need the memory of all shards.

Before::

    step = jax.jit(update, out_shardings=P())  # params are sharded as P("data")

After::

    step = jax.jit(update, out_shardings=P("data"))
"""

from collections.abc import Iterator

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.passes.account.causes import Purpose
from sdy.passes.account.lint.edits import Cure, ShardResult, dims_of
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as
from sdy.passes.auto.state import find_state


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find reshards of the next values of state for `out_shardings` that are not those of the arguments."""
    end = program.main.get_return_op()
    if end is None:
        return
    for index, result in find_state(program.main).items():
        argument, value = program.main.args[index], end.operands[result]
        collectives = [
            each
            for cause, alike in program.collectives_by_cause.items()
            if cause.purpose is Purpose.RESHARD and cause.operation is end and cause.tensor is value
            for each in alike
        ]
        dims = dims_of(get_sharding(argument), argument)
        declared = func_result_sharding(program.main, result)
        if collectives and dims_of(declared, value) != dims:
            yield Suspicion(
                value,
                f"{program.names[index]}, {argument.type}, is {sharded_as(get_sharding(argument))}, but its next "
                f"value, result {result}, is {sharded_as(declared)}",
                "",
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
                cures=[Cure((ShardResult(result, dims),))],
            )
