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

from collections.abc import Iterator
from functools import partial

from xdsl.ir import BlockArgument, SSAValue

from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.dimensions import Dimension, contracted, moved_alike, sources, suspicion_of
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.findings import Suspicion
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
            traced = [*sources(program, at, other, most_products=0)]
            state = next((state for each in traced if (state := _state(program, each)) and state.axes), None)
            if state is not None:
                found.setdefault(state, []).append(collective)
                break
            other.update(traced)
    candidates = Candidates(program)
    for state, collectives in found.items():
        often = _often(max(collectives, key=lambda each: each.bytes))
        cures = partial(_cures, program, candidates, state)
        yield suspicion_of(program, state, collectives, cures, f", {often}")


def _state(program: LintedProgram, at: Dimension) -> Dimension | None:
    """Return the dimension of the initial value of a state of a loop, or of an argument that is updated in place."""
    if not isinstance(at.tensor, BlockArgument):
        return None
    loop = at.tensor.owner.parent_op()
    if isinstance(loop, WhileOp) and at.tensor not in carried_unchanged(loop):
        return Dimension(loop.operands[at.tensor.index], at.index)
    return at if program.is_argument(at.tensor) and is_updated_in_place(at.tensor) else None


def _often(largest: Collective) -> str:
    return in_iterations(largest) if next(loops_around(largest.op), None) else "in each step"


def _cures(program: LintedProgram, candidates: Candidates, state: Dimension) -> Iterator[Cure]:
    """Yield layouts that split another dimension, first those with the other tensors of the factor left open.

    A state that begins with zeros is split as weights are: other layouts of these are tried.
    """
    traced = [*program.use_def.trace(state.tensor)]
    argument = next((each for each in traced if isinstance(each, BlockArgument) and _is_main(program, each)), None)
    if isinstance(argument, BlockArgument):
        yield from moved_alike(program, candidates, argument, state)
    for value in traced:
        yield from candidates.of_value(value) or candidates.of_result(value)
    if argument is None:
        yield from candidates.of_origins(state.tensor)


def _is_main(program: LintedProgram, value: SSAValue) -> bool:
    return value.owner is program.main.body.block
