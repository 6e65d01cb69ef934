"""State is replicated, though its update is a sum over devices.

Statistics of a batch, such as the curvature matrices of a second-order optimizer, are summed over devices in each step
and added to a moving average. If the average is replicated, each device receives the whole sum and updates the whole
average. If it is sharded over the axes of the sum, each device receives its part of the sum, in half of the bytes, and
holds and updates a part.

The rule does not report the state of optimizers that is sharded as its parameters are, which data parallelism
replicates.

Before::

    factor = 0.95 * factor + 0.05 * x.T @ x  # x is sharded as P("data"), and factor is replicated

After::

    factor = device_put(factor, P("data"))
"""

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import BlockArgument, OpResult, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.edits import Cure, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.optimizer_states import elementwise_leaves
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.account.name_lists import several
from sdy.passes.auto.state import find_state
from sdy.passes.common.properties import is_elementwise
from sdy.passes.spmd.costs.network import AxisNames

_Found = dict[BlockArgument, list[Collective]]
"""State, each with the sums over devices that update it."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find state that is replicated over the axes of a sum that updates it elementwise: one match for each tree."""
    end = program.main.get_return_op()
    sums = {
        cause.operation: alike
        for cause, alike in program.collectives_by_cause.items()
        if cause.purpose is Purpose.SUM and all(each.kind == "all-reduce" for each in alike)
    }
    known = {*program.optimizer_states, *(state for each in program.optimizer_states.values() for state in each)}
    found: dict[tuple[str, AxisNames], _Found] = {}
    for index, result in find_state(program.main).items() if end and sums else ():
        state = program.main.args[index]
        is_candidate = state not in known and _is_average(state)
        leaves = elementwise_leaves(end.operands[result]) if end and is_candidate else set[SSAValue]()
        collectives = [each for value in leaves if isinstance(value, OpResult) for each in sums.get(value.op, ())]
        axes = {each.axes for each in collectives}
        own = {axis.name for dims in value_dims(state) for axis in dims}
        if state in leaves and len(axes) == 1 and own.isdisjoint(*axes):
            found.setdefault((tree(state), axes.pop()), {})[state] = collectives
    candidates = Candidates(program)
    for (_, axes), states in found.items():
        yield _suspicion(program, candidates, states, axes)


def _is_average(state: BlockArgument) -> bool:
    """Return whether only elementwise operations use a state."""
    return bool(state.uses) and all(is_elementwise(use.operation) for use in state.uses)


def _suspicion(program: LintedProgram, candidates: Candidates, states: _Found, axes: AxisNames) -> Suspicion:
    held = {state: _saved(program, state, axes) for state in states}
    worst = max(states, key=lambda state: held[state])
    names = several([program.names[worst.index], *(program.names[each.index] for each in states if each is not worst)])
    collectives = list(dict.fromkeys(each for alike in states.values() for each in alike))
    return Suspicion(
        worst,
        f"{names}, {worst.type}, {'are' if len(states) > 1 else 'is'} replicated over {quoted_axes(axes)}, but updated "
        "from sums over the devices of it",
        "",
        [GivenBy(worst)],
        received=sum(each.bytes for each in collectives),
        held=sum(held.values()),
        times=len(states),
        collectives=[each.op for each in collectives],
        cures=[*_cures(candidates, [*states], axes)],
    )


def _saved(program: LintedProgram, state: BlockArgument, axes: AxisNames) -> int:
    """Return the bytes of a state that a device need not hold."""
    local = program.local_bytes(state, get_sharding(state))
    return local - local // prod(map(program.mesh.axis_size, axes))


def _cures(candidates: Candidates, states: Sequence[BlockArgument], axes: AxisNames) -> Iterator[Cure]:
    """Yield the layouts with the axes in one dimension of all states: the first, the second, or the last ones."""
    layouts = {state: [*candidates.with_axes(state, value_dims(state), [*map(AxisRef, axes)])] for state in states}
    if all(layouts.values()):
        for number in range(max(map(len, layouts.values()))):
            dims = {state: own[min(number, len(own) - 1)] for state, own in layouts.items()}
            yield Cure(tuple(candidates.shard(state, own) for state, own in dims.items()))
