"""A tensor is resharded in each step, though another layout of an argument or a constraint avoids it.

The rule tries other layouts of the arguments and the constraints that the shardings of a resharded tensor, and of the
operation that requires it, stem from: an axis in another dimension, an axis more, no sharding at all. It reports only a
layout with which a device receives less, and needs no more memory or time.

Before::

    state = device_put(state, P("batch", None, None, "model"))  # the heads of q, k and v are sharded over "model"

After::

    state = device_put(state, P("batch", "model"))
"""

from collections.abc import Iterator, Sequence
from functools import partial

from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import LazyCures, dims_of
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.manual_computation_repeats import repeated
from sdy.passes.account.lint.wording import from_to
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find reshards of tensors that are not all-gathers of an argument, which fully sharded parameters need."""
    candidates = Candidates(program)
    of_repeated = {name for axes, _ in repeated(program).values() for name in axes}
    for cause, collectives in program.collectives_by_cause.items():
        received = sum(each.bytes for each in collectives)
        if cause.purpose is not Purpose.RESHARD or cause.tensor is None:
            continue
        if of_repeated.issuperset(axis for each in collectives for axis in each.axes):
            continue
        if program.is_argument(cause.tensor) and _is_of_parameter(cause, collectives):
            continue
        yield Suspicion(
            cause.tensor,
            f"{program.called(cause.tensor)}, {cause.tensor.type}, is resharded {from_to(cause.before, cause.after)} "
            f"for {cause.operation.name}",
            "",
            [(program.place(cause.operation), "this operation requires it"), GivenBy(cause.tensor)],
            received=received,
            collectives=[each.op for each in collectives],
            cures=LazyCures(partial(candidates.of_cause, cause)),
            cause=(
                cause.tensor.type,
                frozenset((dims_of(cause.before, cause.tensor), dims_of(cause.after, cause.tensor))),
            ),
        )


def _is_of_parameter(cause: Cause, collectives: Sequence[Collective]) -> bool:
    """Return whether an argument is gathered for results that the same axes shard, as those of FSDP are."""
    axes = {axis for each in collectives for axis in each.axes}
    results = (
        axis.name
        for result in cause.operation.results
        if (sharding := get_sharding(result))
        for axis in sharding.axes()
    )
    is_product = isinstance(cause.operation, DotGeneralOp | ConvolutionOp)
    return all(each.kind == "all-gather" for each in collectives) and (not is_product or not axes.isdisjoint(results))
