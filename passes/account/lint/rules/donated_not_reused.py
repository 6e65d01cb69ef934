"""A donated argument that no result can alias.

A result aliases a donated argument only if their shards have the same shape and element type. Otherwise both are in
memory at once, as without donation, though the caller can no longer use the argument. The rule reports arguments for
which there is a result of their type, with another sharding.

Before::

    step = jax.jit(update, donate_argnums=0, out_shardings=NamedSharding(mesh, P(None, "data")))
    cache = step(jax.device_put(cache, NamedSharding(mesh, P("data"))))

After::

    step = jax.jit(update, donate_argnums=0, out_shardings=NamedSharding(mesh, P("data")))
"""

from collections.abc import Iterator

from xdsl.ir import BlockArgument, OpResult

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.edits import Cure, ShardResult, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.donations import aliases, is_donated
from sdy.passes.common.properties import num_bytes


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find donated arguments without a result of the same local type to alias."""
    main, local = program.main, main_function(program.local)
    reused = aliases(local)
    for index, argument in enumerate(main.args):
        if not is_donated(main, index) or index in reused or argument in program.host_values:
            continue
        alike = [other for other, result in enumerate(main.function_type.outputs) if result == argument.type]
        end = main.get_return_op()
        if not alike:
            continue
        shardings = [sharded_as(func_result_sharding(main, result)) for result in alike]
        results = " and ".join(f"result {result} is {how}" for result, how in zip(alike, shardings, strict=True))
        yield Suspicion(
            end.operands[alike[0]] if end else argument,
            f"{program.names[index]}, {argument.type}, is donated, but no result can alias it; it is "
            f"{sharded_as(get_sharding(argument))}, and {results}",
            "give that result the argument's sharding",
            [GivenBy(argument)],
            held=num_bytes(local.function_type.inputs.data[index]),
            cures=[cure for other in alike for cure in _cures(program, argument, other)],
            cause=tree(argument) or None,
        )


def _cures(program: LintedProgram, argument: BlockArgument, result: int) -> Iterator[Cure]:
    """Yield the fixes that give a result the sharding of an argument, at its constraint or in `out_shardings`."""
    dims = value_dims(argument)
    end = program.main.get_return_op()
    value = end.operands[result] if end else None
    if isinstance(value, OpResult) and isinstance(value.op, ReshardOp):
        yield from Candidates(program).of_constraint(value.op, dims)[:1]
    if value is not None and program.initial_result_sharding(result) is None:
        yield from Candidates(program).of_argument(argument, value_dims(value))
    else:
        yield Cure((ShardResult(result, dims),))
