"""Another layout of one argument makes the whole step much faster.

The last rule, for programs in which no other one finds a mistake: it tries to shard the arguments that take the most
memory, or for which devices receive the most, along other dimensions and axes, together with those like them and with
their optimizer state; and to exchange the dimensions of the matrices of all layers that an axis shards. Only layouts
count with which a step takes a quarter less time.

Before::

    params = {"items": shard(items, P("data")), "users": shard(users, P(None, "table"))}  # the batch is on "data"

After::

    params = {"items": shard(items, P(None, "table")), "users": shard(users, P(None, "table"))}
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from xdsl.ir import BlockArgument, SSAValue

from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, Dims, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.batch_not_sharded import data_arguments

_MOST_GROUPS = 4
"""Number of groups of arguments whose layouts are tried."""

_LEAST = 0.05
"""The part of the memory or of the received bytes of a step that a group has."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find the arguments whose layouts may cost most: those of data first, then by memory and received bytes."""
    candidates = Candidates(program)
    data = {each for arguments in data_arguments(program).values() for each in arguments}
    states = {*chain(*program.optimizer_states.values())}
    groups: dict[BlockArgument, list[BlockArgument]] = {}
    for argument in program.main.args:
        if is_static_tensor(argument.type) and shape_of(argument) and argument not in states:
            groups.setdefault(candidates.alike(argument)[0], []).append(argument)
    received = _received(program)
    costs = {
        first: 1.0 if first in data and not any(value_dims(first)) else _share(program, candidates, received, group)
        for first, group in groups.items()
    }
    for first in sorted(groups, key=lambda each: -costs[each])[:_MOST_GROUPS]:
        if costs[first] >= _LEAST:
            before = value_dims(first)
            layouts = [
                *candidates.moved(first, before),
                *candidates.extended(first, before),
                *candidates.extended(first, ((),) * len(before)),
            ]
            how = "sharded along other dimensions or axes" if any(before) else "sharded"
            edits = (dict.fromkeys(groups[first], dims) for dims in dict.fromkeys(layouts) if dims != before)
            yield _suspicion(program, candidates, first, how, edits)
    for name, _ in program.mesh.axes:
        matrices = [each for group in groups.values() for each in group if _is_matrix_on(each, name)]
        layers = [each for each in matrices if len(candidates.siblings(each)) > 1]
        if layers:
            how = f'and the other matrices of layers that axis "{name}" shards, sharded along their other dimension'
            layout = {each: value_dims(each)[::-1] for each in layers}
            yield _suspicion(program, candidates, layers[0], how, [layout])


def _received(program: LintedProgram) -> Counter[SSAValue]:
    """Return the bytes that a device receives in a step to move each argument."""
    received: Counter[SSAValue] = Counter()
    for each in program.collectives:
        if each.cause and each.cause.tensor is not None:
            *_, origin = program.use_def.trace(each.cause.tensor)
            received[origin] += int(each.bytes)
    return received


def _share(
    program: LintedProgram, candidates: Candidates, received: Counter[SSAValue], group: Sequence[BlockArgument]
) -> float:
    """Return the part of a step's memory or received bytes that some arguments have."""
    arguments = [argument for each in group for argument in candidates.with_state(each)]
    held = sum(program.local_bytes(each, get_sharding(each)) for each in arguments)
    moved = sum(received[each] for each in group)
    return max(held / max(program.costs.memory, 1), moved / max(program.costs.received, 1))


def _suspicion(
    program: LintedProgram,
    candidates: Candidates,
    argument: BlockArgument,
    how: str,
    layouts: Iterable[Mapping[BlockArgument, Dims]],
) -> Suspicion:
    return Suspicion(
        argument,
        f"a step takes much less time with {program.called(argument)}, {argument.type}, {how}",
        "",
        [GivenBy(argument)],
        held=program.thresholds.large,
        cures=[
            Cure(
                tuple(candidates.shard(each, new) for one, new in layout.items() for each in candidates.with_state(one))
            )
            for layout in layouts
        ],
    )


def _is_matrix_on(argument: BlockArgument, axis: str) -> bool:
    dims = value_dims(argument)
    return len(dims) == 2 and dims[0] != dims[1] and any(each.name == axis for axes in dims for each in axes)
