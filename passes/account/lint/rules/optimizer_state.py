"""Optimizer state has a different sharding from its parameter.

The update of a parameter reads both elementwise. If the state lacks axes of the parameter, each device holds more of
the state than of the parameter, and one of the two is resharded in each step. State that is sharded over more axes than
its parameter is not reported: ZeRO does so.

Before::

    nu = jax.tree.map(jnp.zeros_like, params)  # without a sharding, on every device

After::

    nu = jax.tree.map(lambda p: jnp.zeros_like(p, device=p.sharding), params)
"""

from collections.abc import Iterator

from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument

from sdy.axes import is_prefix
from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, dims_of, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as, spec_of
from sdy.passes.account.name_lists import several
from sdy.passes.common.properties import is_elementwise
from sdy.sharding import TensorSharding


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find state: arguments that update another argument elementwise, but are not updated from that one."""
    found: dict[BlockArgument, BlockArgument] = {}
    for parameter, states in program.optimizer_states.items():
        for state in states:
            if not _has_all(get_sharding(state), get_sharding(parameter)):
                found.setdefault(state, parameter)
    if found:
        yield _suspicion(program, found)


def _suspicion(program: LintedProgram, found: dict[BlockArgument, BlockArgument]) -> Suspicion:
    """Return one match for all state, each with its parameter: they are initialized in one place."""
    collectives = _reshards(program, found)
    candidates = Candidates(program)
    wanted = {state: get_sharding(parameter) for state, parameter in found.items()}
    held = {
        state: max(program.local_bytes(state, get_sharding(state)) - program.local_bytes(state, sharding), 0)
        for state, sharding in wanted.items()
    }
    worst = max(held, key=lambda state: held[state])
    names = several([program.names[worst.index], *(program.names[each.index] for each in found if each is not worst)])
    edits = (candidates.shard(state, dims_of(sharding, state)) for state, sharding in wanted.items())
    return Suspicion(
        worst,
        f"the optimizer state in {names} has a different sharding from its parameters: {program.called(worst)}, "
        f"{worst.type}, is {sharded_as(get_sharding(worst))}, but {program.called(found[worst])} is "
        f"{sharded_as(wanted[worst])}",
        f"shard the state like its parameter, as {spec_of(wanted[worst])}",
        [GivenBy(found[worst])],
        received=sum(each.bytes for each in collectives),
        held=sum(held.values()),
        times=len(found),
        collectives=[each.op for each in collectives],
        cures=[Cure(tuple(edits))],
        cause=__name__,
    )


def _has_all(sharding: TensorSharding | None, wanted: TensorSharding | None) -> bool:
    """Return whether `sharding` has, in each dimension, the axes of `wanted` as a prefix."""
    if wanted is None or wanted.is_fully_replicated:
        return True
    return sharding is not None and all(
        is_prefix(theirs, mine) for theirs, mine in zip(wanted.dim_axes, sharding.dim_axes, strict=True)
    )


def _reshards(program: LintedProgram, found: dict[BlockArgument, BlockArgument]) -> list[Collective]:
    """Return the collectives for elementwise operations, between the layouts of a state and of its parameter."""
    layouts = {
        (state.type, frozenset((value_dims(state), dims_of(get_sharding(parameter), state))))
        for state, parameter in found.items()
    }
    return [
        each
        for cause, collectives in program.collectives_by_cause.items()
        if cause.purpose is Purpose.RESHARD and (value := cause.tensor) is not None
        if is_elementwise(cause.operation) or isinstance(cause.operation, ReturnOp)
        if (value.type, frozenset((dims_of(cause.before, value), dims_of(cause.after, value)))) in layouts
        for each in collectives
    ]
