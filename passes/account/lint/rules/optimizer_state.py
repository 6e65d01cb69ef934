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

from xdsl.ir import BlockArgument, OpResult, SSAValue

from sdy.axes import is_prefix
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.account.causes import Purpose
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as, spec_of
from sdy.passes.auto.state import find_state
from sdy.passes.common.properties import is_elementwise
from sdy.sharding import TensorSharding


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find state: arguments that update another argument elementwise, but are not updated from that one."""
    main = program.main
    end = main.get_return_op()
    returned = {main.args[index]: end.operands[result] for index, result in find_state(main).items()} if end else {}
    read = {argument: _updated_with(program, value) for argument, value in returned.items()}
    reported: set[SSAValue] = set()
    for parameter, arguments in read.items():
        wanted = get_sharding(parameter)
        for state in arguments:
            is_state = state is not parameter and state.type == parameter.type and parameter not in read.get(state, ())
            sharding = get_sharding(state)
            if state not in read or not is_state or state in reported or _has_all(sharding, wanted):
                continue
            reported.add(state)
            held = program.local_bytes(state, sharding) - program.local_bytes(state, wanted)
            yield Suspicion(
                state,
                f"the optimizer state in {program.called(state)}, {state.type}, is {sharded_as(sharding)}, but its "
                f"parameter, {program.called(parameter)}, is {sharded_as(wanted)}",
                f"shard the state like its parameter, as {spec_of(wanted)}",
                [GivenBy(parameter)],
                received=_received(program, state, returned[state]),
                held=max(held, 0),
            )


def _updated_with(program: LintedProgram, value: SSAValue) -> list[BlockArgument]:
    """Return the arguments that a returned value is computed from elementwise."""
    arguments: dict[BlockArgument, None] = {}
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if isinstance(at, BlockArgument) and at.owner is program.main.body.block:
            arguments[at] = None
        elif isinstance(at, OpResult) and (is_elementwise(at.op) or isinstance(at.op, ReshardOp)):
            pending += at.op.operands
    return sorted(arguments, key=lambda argument: argument.index)


def _has_all(sharding: TensorSharding | None, wanted: TensorSharding | None) -> bool:
    """Return whether `sharding` has, in each dimension, the axes of `wanted` as a prefix."""
    if wanted is None or wanted.is_fully_replicated:
        return True
    return sharding is not None and all(
        is_prefix(theirs, mine) for theirs, mine in zip(wanted.dim_axes, sharding.dim_axes, strict=True)
    )


def _received(program: LintedProgram, before: SSAValue, after: SSAValue) -> float:
    """Return the bytes received for reshards of a state tensor, before and after its update."""
    return sum(
        each.bytes
        for cause, collectives in program.collectives_by_cause.items()
        if cause.purpose is Purpose.RESHARD and cause.tensor in (before, after)
        for each in collectives
    )
