"""The state of an optimizer is split otherwise than its parameter.

The update of a parameter reads both, element by element. Where the state has not the parameter's axes, each device
holds more of it than of the parameter, and one of the two is resharded in each step. State that is split further than
its parameter is not told: that is what ZeRO does.

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
from sdy.passes.account.lint.finding import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import spec_of
from sdy.passes.auto.state import find_state
from sdy.passes.common.op_properties import is_elementwise
from sdy.passes.common.shown_sharding import dims_of
from sdy.sharding import TensorSharding


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The arguments from which, element by element, the next value of another one is made, and their own is not."""
    main = program.main
    end = main.get_return_op()
    returned = {main.args[index]: end.operands[result] for index, result in find_state(main).items()} if end else {}
    read = {argument: _updated_with(program, value) for argument, value in returned.items()}
    told: set[SSAValue] = set()
    for parameter, arguments in read.items():
        wanted = get_sharding(parameter)
        for state in arguments:
            is_state = state is not parameter and state.type == parameter.type and parameter not in read.get(state, ())
            sharding = get_sharding(state)
            if state not in read or not is_state or state in told or _has_all(sharding, wanted):
                continue
            told.add(state)
            held = program.local_bytes(state, sharding) - program.local_bytes(state, wanted)
            yield Suspicion(
                state,
                f"{program.called(state)}, {state.type}, is {dims_of(sharding)}, and {program.called(parameter)}, "
                f"which is updated with it, is {dims_of(wanted)}",
                f"split the state as its parameter, by {spec_of(wanted)}",
                [GivenBy(parameter)],
                received=_received(program, state, returned[state]),
                held=max(held, 0),
            )


def _updated_with(program: LintedProgram, value: SSAValue) -> list[BlockArgument]:
    """The arguments that a returned value is made from, element by element."""
    found: dict[BlockArgument, None] = {}
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if isinstance(at, BlockArgument) and at.owner is program.main.body.block:
            found[at] = None
        elif isinstance(at, OpResult) and (is_elementwise(at.op) or isinstance(at.op, ReshardOp)):
            pending += at.op.operands
    return sorted(found, key=lambda argument: argument.index)


def _has_all(sharding: TensorSharding | None, wanted: TensorSharding | None) -> bool:
    """Whether each dimension is split by all axes that it is wanted to be split by, and perhaps by more."""
    if wanted is None or wanted.is_fully_replicated:
        return True
    return sharding is not None and all(
        is_prefix(theirs, mine) for theirs, mine in zip(wanted.dim_axes, sharding.dim_axes, strict=True)
    )


def _received(program: LintedProgram, before: SSAValue, after: SSAValue) -> float:
    """What is received to reshard a tensor of the state, before and after it is updated."""
    return sum(
        each.bytes
        for cause, collectives in program.collectives_by_cause.items()
        if cause.purpose is Purpose.RESHARD and cause.tensor in (before, after)
        for each in collectives
    )
