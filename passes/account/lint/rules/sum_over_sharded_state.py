"""A product contracts a sharded dimension of the state of a loop, so that devices sum its result in each iteration.

The state is read whole in each iteration: the scores of attention over a cache of keys that is split along the size of
the heads are summed over devices for each token. Along a dimension that the product keeps, the heads or the batch,
devices need nothing of each other. The rule finds the state of loops, and arguments that a step updates in place.

Before::

    cache = device_put(cache, P(None, None, None, "model"))  # (batch, time, heads, size)
    scores = jnp.einsum("bhk,bthk->bht", q, cache)

After::

    cache = device_put(cache, P(None, None, "model"))
"""

from collections.abc import Iterator, Sequence

from xdsl.ir import BlockArgument, SSAValue

from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import shape_of
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.dimensions import Dimension, contracted, sources
from sdy.passes.account.lint.edits import Cure, dims_of
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.use_def import is_updated_in_place
from sdy.passes.account.lint.wording import in_iterations
from sdy.passes.common.loops import carried_unchanged, loops_around
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass
from sdy.stablehlo.control_flow import WhileOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find sums over devices for products that contract a sharded dimension of a state, except in gradients."""
    found: dict[Dimension, list[Collective]] = {}
    other: set[Dimension] = set()
    for collective in program.collectives:
        op, cause = collective.source, collective.cause
        if op is None or cause is None or cause.purpose is not Purpose.SUM or is_in_backward_pass(op):
            continue
        for at in contracted(op, collective.axes):
            traced = [*sources(program, at, other, through_products=False)]
            state = next((state for each in traced if (state := _state(program, each)) and state.axes), None)
            if state is not None:
                found.setdefault(state, []).append(collective)
                break
            other.update(traced)
    for state, collectives in found.items():
        yield _suspicion(program, state, collectives)


def _state(program: LintedProgram, at: Dimension) -> Dimension | None:
    """Return the dimension of the initial value of a state of a loop, or of an argument that is updated in place."""
    if not isinstance(at.tensor, BlockArgument):
        return None
    loop = at.tensor.owner.parent_op()
    if isinstance(loop, WhileOp) and at.tensor not in carried_unchanged(loop):
        return Dimension(loop.operands[at.tensor.index], at.index)
    return at if program.is_argument(at.tensor) and is_updated_in_place(at.tensor) else None


def _suspicion(program: LintedProgram, state: Dimension, collectives: Sequence[Collective]) -> Suspicion:
    largest = max(collectives, key=lambda each: each.bytes)
    product = largest.source
    assert product is not None
    often = in_iterations(largest) if next(loops_around(largest.op), None) else "in each step"
    return Suspicion(
        product,
        f"{product.name} contracts dimension {state.index} of {program.called(state.tensor)}, {state.tensor.type}, "
        f"which {axes_text(state.axes)} shards: devices sum its result, {product.results[0].type}, {often}",
        "",
        [GivenBy(state.tensor, state.axes)],
        received=sum(each.bytes for each in collectives),
        collectives=[each.op for each in collectives],
        cures=[*dict.fromkeys(_cures(program, state))],
    )


def _cures(program: LintedProgram, state: Dimension) -> Iterator[Cure]:
    """Yield layouts that split another dimension, first those with the other tensors of the factor left open."""
    candidates = Candidates(program)
    traced = [*program.use_def.trace(state.tensor)]
    argument = next((each for each in traced if isinstance(each, BlockArgument) and _is_main(program, each)), None)
    if isinstance(argument, BlockArgument):
        alike = candidates.alike(argument)
        others = [candidates.shard(each, None) for each in _others(program, state) if each not in alike]
        for dims in candidates.moved(argument, dims_of(get_sharding(argument), argument)):
            yield Cure((*(candidates.shard(each, dims) for each in alike), *others))
    for value in traced:
        yield from candidates.of_value(value) or candidates.of_result(value)


def _is_main(program: LintedProgram, value: SSAValue) -> bool:
    return value.owner is program.main.body.block


def _others(program: LintedProgram, state: Dimension) -> Iterator[BlockArgument]:
    """Yield the arguments with a dimension of the same size that the same axes shard."""
    size = shape_of(state.tensor)[state.index]
    for argument in program.main.args:
        dims = dims_of(get_sharding(argument), argument)
        if any(axes == state.axes and shape_of(argument)[index] == size for index, axes in enumerate(dims)):
            yield argument
