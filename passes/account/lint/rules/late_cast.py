"""A tensor is gathered in a wider type than it is used or stored in.

Half of the bytes are for nothing if a tensor is gathered in float32 and then cast to bfloat16, three quarters if int8
weights are cast to float32 and then gathered. Casts and gathers commute: the narrow side of the cast is gathered.

Before::

    whole = jax.lax.with_sharding_constraint(w, P())  # w is float32, sharded as P("fsdp")
    y = x @ whole.astype(jnp.bfloat16)

After::

    whole = jax.lax.with_sharding_constraint(w.astype(jnp.bfloat16), P())
    y = x @ whole
"""

from collections.abc import Iterator
from typing import TypeGuard

from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import location_of
from sdy.dialect.ops import ReshardOp, ShardingConstraintOp
from sdy.ir.shapes import is_static_tensor
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.body_edits import CastFirst
from sdy.passes.account.lint.edits import Cure, dims_of
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import element_bytes
from sdy.rules import movement
from sdy.stablehlo.elementwise import ConvertOp

_KINDS = {"all-gather", "all-to-all", "collective-permute"}


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find collectives that move a tensor before it is cast to a narrower type, or after it is cast to a wider one."""
    for collective in program.collectives:
        if collective.kind not in _KINDS:
            continue
        if (cast := _wasteful_cast(collective)) is not None:
            narrow, wide = sorted(_bytes(value) for value in (cast.operands[0], cast.result))
            yield from _suspicion(program, collective, cast, collective.bytes * (1 - narrow / wide), 0)
        elif (cast := _moved_cast(program, collective)) is not None:
            narrow, wide = sorted(_bytes(value) for value in (cast.operands[0], cast.result))
            yield from _suspicion(program, collective, cast, 0, collective.bytes * (wide / narrow - 1))


def _suspicion(
    program: LintedProgram, collective: Collective, cast: ConvertOp, received: float, avoided: float
) -> Iterator[Suspicion]:
    source = program.traced.sources.get(cast)
    if not isinstance(source, ConvertOp):
        return
    is_widening = _bytes(source.operands[0]) < _bytes(source.result)
    dims = dims_of(collective.cause.after if collective.cause else None, source.result)
    order = "after its cast from" if is_widening else "before its cast to"
    narrow = (source.operands[0] if is_widening else source.result).type
    yield Suspicion(
        source,
        f"{program.called(source.operands[0])} is moved by an {collective.kind} over {quoted_axes(collective.axes)} "
        f"{order} {narrow}",
        "gather before the cast, with a constraint on its operand" if is_widening else "cast before the gather",
        received=received,
        avoided=avoided,
        collectives=[collective.op] if received else [],
        cures=[Cure((CastFirst(location_of(source), source.result.type, dims, is_widening),))] if received else [],
    )


def _wasteful_cast(collective: Collective) -> ConvertOp | None:
    """Return the cast of the result of a collective to a narrower type, or that of its operand to a wider one."""
    before = _through(collective.op.operands[0], backward=True)
    if isinstance(before, ConvertOp) and _bytes(before.operands[0]) < _bytes(before.result):
        return before
    after = _through(collective.op.results[0], backward=False)
    return after if isinstance(after, ConvertOp) and _bytes(after.result) < _bytes(after.operands[0]) else None


def _moved_cast(program: LintedProgram, collective: Collective) -> ConvertOp | None:
    """Return the cast whose wide side the program gathers, and the compiler its narrow side."""
    if collective.kind != "all-gather":
        return None
    after = _through(collective.op.results[0], backward=False)
    if _is_cast(after, program) and 0 < _bytes(after.operands[0]) < _bytes(after.result):
        return after
    before = _through(collective.op.operands[0], backward=True)
    if _is_cast(before, program) and _bytes(before.operands[0]) > _bytes(before.result) > 0:
        constraint = program.traced.sources[before].operands[0].owner
        return before if isinstance(constraint, ReshardOp | ShardingConstraintOp) else None
    return None


def _is_cast(op: Operation | None, program: LintedProgram) -> TypeGuard[ConvertOp]:
    return isinstance(op, ConvertOp) and isinstance(program.traced.sources.get(op), ConvertOp)


def _bytes(value: SSAValue) -> float:
    return element_bytes(value.type) if is_static_tensor(value.type) else 0


def _through(value: SSAValue, *, backward: bool) -> Operation | None:
    """Return the operation at the end of a chain of operations that only move elements."""
    while True:
        op = value.owner if backward else value.get_user_of_unique_use()
        if not isinstance(op, Operation) or movement(op.name) is None or not op.results:
            return op if isinstance(op, Operation) else None
        value = op.operands[0] if backward else op.results[0]
