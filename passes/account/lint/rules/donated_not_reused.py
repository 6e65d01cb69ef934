"""A donated argument whose memory no result can take.

A result takes the memory of a donated argument only if a device's part of both has the same shape and type. Where it
has not, both are in memory at once, as if nothing were donated, and the argument is gone for the caller all the same.

Before::

    step = jax.jit(update, donate_argnums=0, out_shardings=NamedSharding(mesh, P(None, "data")))
    cache = step(jax.device_put(cache, NamedSharding(mesh, P("data"))))

After::

    step = jax.jit(update, donate_argnums=0, out_shardings=NamedSharding(mesh, P("data")))
"""

from collections import Counter
from collections.abc import Iterator

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.passes.account.lint.finding import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.argument_attributes import is_donated
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.num_bytes import num_bytes
from sdy.passes.common.shown_sharding import dims_of


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The donated arguments for which no result of the same type is left, in the order in which memory is given."""
    main, local = program.main, main_function(program.local).function_type
    left = Counter(local.outputs)
    for index, argument in enumerate(main.args):
        if not is_donated(main, index):
            continue
        type_ = local.inputs.data[index]
        if left[type_]:
            left[type_] -= 1
            continue
        alike = [other for other, result in enumerate(main.function_type.outputs) if result == argument.type]
        end = main.get_return_op()
        split = [dims_of(func_result_sharding(main, result)) for result in alike]
        results = " and ".join(f"result {result} is {how}" for result, how in zip(alike, split, strict=True))
        why = results or "no result has its type"
        cure = "split that result as the argument is" if alike else "do not donate it, or return what has its type"
        yield Suspicion(
            end.operands[alike[0]] if end and alike else argument,
            f"{program.names[index]}, {argument.type}, is donated, but its memory is not used again: it is "
            f"{dims_of(get_sharding(argument))}, and {why}",
            cure,
            [GivenBy(argument)],
            held=num_bytes(type_),
        )
