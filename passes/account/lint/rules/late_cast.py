"""A tensor is gathered, or moved otherwise, in a wider type than it is used or stored in.

Half of the bytes are for nothing if a tensor is gathered in float32 and then cast to bfloat16, three quarters if int8
weights are cast to float32 and then gathered. Casts and gathers commute: the narrow side of the cast is gathered,
also by sdy where the program gathers the wide side. `jax.jit` gathers the side that the program does.

Before::

    whole = jax.lax.with_sharding_constraint(w, P())  # w is float32, sharded as P("fsdp")
    y = x @ whole.astype(jnp.bfloat16)

After::

    y = x @ w.astype(jnp.bfloat16)
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue

from sdy.diagnostics import Location, location_of
from sdy.dialect.ops import ReshardOp
from sdy.ir.shapes import is_static_tensor
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.body_edits import MOVES, CastFirst, Constraint, GatherFirst
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, LazyCures, dims_of
from sdy.passes.account.lint.findings import Reason, Suspicion
from sdy.passes.account.lint.places import python_line
from sdy.passes.account.lint.program import LintedProgram, manual_computation
from sdy.passes.account.lint.use_def import users_through
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import element_bytes
from sdy.rules import movement
from sdy.stablehlo.elementwise import ConvertOp

_KINDS = {"all-gather", "all-to-all", "collective-permute"}

ManualEdits: TypeAlias = dict[tuple[Location | Attribute, str], CastFirst]
"""The edits of the `shard_map`s of a line: one for each line of casts, whatever their types, and each collective."""

ConstraintCures: TypeAlias = dict[Constraint, Sequence[Cure]]
"""The fixes of the constraints of a function that gather to one layout."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find collectives that move a tensor before it is cast to a narrower type, or after it is cast to a wider one."""
    candidates = Candidates(program)
    manual: dict[Location | None, ManualEdits] = {}
    constraints: dict[object, ConstraintCures] = {}
    for collective in program.collectives:
        if collective.kind in _KINDS:
            yield from _suspicions(program, collective, candidates, manual, constraints)


def _suspicions(
    program: LintedProgram,
    collective: Collective,
    candidates: Candidates,
    manual: dict[Location | None, ManualEdits],
    constraints: dict[object, ConstraintCures],
) -> Iterator[Suspicion]:
    """Yield the casts beside a collective that moves their wide side, or does so in the program as written."""
    before = _through(collective.op.operands[0], backward=True)
    after = _through(collective.op.results[0], backward=False)
    for local, is_before in ((before, True), (after, False)):
        cast = program.traced.sources.get(local) if isinstance(local, ConvertOp) else None
        if not isinstance(cast, ConvertOp) or not is_static_tensor(cast.result.type):
            continue
        narrow, wide = sorted(element_bytes(value.type) for value in (cast.operands[0], cast.result))
        if narrow == wide:
            continue
        is_widening = element_bytes(cast.result.type) == wide
        gather = _gather(program, cast, collective)
        received = avoided = 0.0
        if is_widening == is_before:
            received = collective.bytes * (1 - narrow / wide)
        elif is_widening == (gather is None) and (collective.kind == "all-gather" or type(gather) in MOVES):
            avoided = collective.bytes * (wide / narrow - 1)
        else:
            continue
        cause: object = None
        dims = dims_of(collective.cause.after if collective.cause else None, cast.result)
        if is_widening:
            where = python_line(location_of(cast))
            cause = where and (where.filename, where.line, dims)
            cures = [Cure((GatherFirst(location_of(cast), cast.result.type, dims),))]
        elif isinstance(gather, ReshardOp):
            gathered = dims_of(gather.sharding.data, gather.result)
            cause = next(iter(program.places.callers(gather)), None), gathered
            alike = constraints.setdefault(cause, {})
            alike.setdefault(Constraint.of(gather, gathered), candidates.of_constraint(gather))
            cures = LazyCures(partial(_of_all, alike))
        elif gather is not None:
            cause = location_of(manual_computation(cast))
            edits = manual.setdefault(cause, {})
            edit = CastFirst(location_of(cast), cast.operands[0].type, MOVES[type(gather)])
            edits.setdefault((edit.where or edit.type_, edit.function), edit)
            cures = LazyCures(partial(_together, edits))
        else:
            cures = []
        order = "after its cast from" if is_widening else "before its cast to"
        yield Suspicion(
            cast,
            f"{program.called(cast.operands[0])} is moved by an {collective.kind} over {quoted_axes(collective.axes)} "
            f"{order} {(cast.operands[0] if is_widening else cast.result).type}",
            "gather before the cast, with a constraint on its operand" if is_widening else "cast before the gather",
            [*_gathered_at(program, cast, _user(cast, collective.axes) if is_widening else gather, is_widening)],
            received=received,
            avoided=avoided,
            collectives=[collective.op] if received else [],
            cures=cures,
            needs_cure=not received,
            cause=cause,
        )


def _user(cast: ConvertOp, axes: Sequence[str]) -> Operation | None:
    """Return the constraint that gathers the result of a cast, or what elementwise operations make of it."""
    constraints = (op for op in users_through(cast.result) if isinstance(op, ReshardOp))
    return next((op for op in constraints if {each.name for each in op.sharding.data.axes()}.isdisjoint(axes)), None)


def _gathered_at(
    program: LintedProgram, cast: ConvertOp, gather: Operation | None, is_widening: bool
) -> Iterator[Reason]:
    """Yield the line of what gathers the operand or the result of a cast, if it is another one."""
    where, cast_line = program.place(gather), program.place(cast)
    if where and cast_line and (where.filename, where.line) != (cast_line.filename, cast_line.line):
        what = "constraint" if isinstance(gather, ReshardOp) else "collective"
        yield where, f"this {what} gathers it {'after' if is_widening else 'before'} the cast"


def _of_all(constraints: ConstraintCures) -> Sequence[Cure]:
    """Return the fixes of all constraints together, and then of each."""
    rounds = [*zip_longest(*constraints.values())]
    joint = [Cure(tuple(edit for cure in each if cure for edit in cure.edits)) for each in rounds]
    return [*dict.fromkeys((*joint, *(cure for each in rounds for cure in each if cure)))]


def _together(edits: ManualEdits) -> Sequence[Cure]:
    """Return one fix for all casts of the `shard_map`s of a line."""
    return [Cure(tuple(edits.values()))]


def _gather(program: LintedProgram, cast: ConvertOp, collective: Collective) -> Operation | None:
    """Return what moves the operand of a cast: a constraint that gathers it, or a collective of a `shard_map`."""
    for value in program.use_def.trace(cast.operands[0]):
        if isinstance(value.owner, Operation) and type(value.owner) in MOVES:
            return value.owner
        if isinstance(value.owner, ReshardOp):
            kept = {axis.name for axis in value.owner.sharding.data.axes()}
            if not kept.issuperset(collective.axes):
                return value.owner
    return None


def _through(value: SSAValue, *, backward: bool) -> Operation | None:
    """Return the operation at the end of a chain of operations that only move elements."""
    while True:
        op = value.owner if backward else value.get_user_of_unique_use()
        if not isinstance(op, Operation) or movement(op.name) is None or not op.results:
            return op if isinstance(op, Operation) else None
        value = op.operands[0] if backward else op.results[0]
