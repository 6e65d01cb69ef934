"""A loop-carried value is resharded in each iteration: the body returns it with a different sharding.

A loop-carried value has one sharding for all iterations. If the body computes it with another one, each iteration
reshards it; so it is where the body constrains the value that it takes and the value that it returns differently. The
compiler may find a layout for the loop with which less is moved than the constraints say.

Before::

    def layer(x, w):
        y = jnp.tanh(jax.lax.with_sharding_constraint(x, P("data", None)) @ w)
        return jax.lax.with_sharding_constraint(y, P(None, "data")), None

After::

    def layer(x, w):
        return jax.lax.with_sharding_constraint(jnp.tanh(x @ w), P("data", None)), None
"""

from collections.abc import Iterator

from xdsl.ir import BlockArgument, OpResult, SSAValue

from sdy.axes import is_prefix
from sdy.dialect.ops import ReshardOp
from sdy.ir.walking import operations_of
from sdy.passes.account.causes import Cause, Purpose
from sdy.passes.account.lint.body_edits import ChangeConstraint, Constraint
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, dims_of
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.use_def import updates_in_place
from sdy.passes.account.lint.wording import from_to, in_iterations, moves, spec_of
from sdy.passes.common.loops import carried_unchanged, loop_trips
from sdy.passes.common.properties import num_bytes
from sdy.sharding import TensorSharding
from sdy.stablehlo.control_flow import ReturnOp, WhileOp

_MOST_CONSTRAINTS, _MOST_LAYOUTS = 3, 3
"""The number of constraints of the body that are changed, and of layouts that are tried for each."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find reshards of loop-carried values, at the beginning or end of the body."""
    yield from _constrained_differently(program)
    candidates = Candidates(program)
    for cause, collectives in program.collectives_by_cause.items():
        if cause.purpose is not Purpose.RESHARD or cause.tensor is None:
            continue
        if (carried := _carried(program, cause)) is not None:
            carry = cause.after if isinstance(cause.operation, ReturnOp) else cause.before
            yield Suspicion(
                cause.tensor,
                f"a loop-carried {carried.type} is resharded {from_to(cause.before, cause.after)} "
                f"{in_iterations(collectives[0])}",
                "shard the initial value and the value that the body returns alike, with "
                f"jax.lax.with_sharding_constraint(..., {spec_of(carry)})",
                [GivenBy(carried)],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
                cures=[cure for at in (carried, cause.tensor) for cure in _cures(candidates, at)]
                or [*_of_constraints(program, candidates, cause)],
            )


def _of_constraints(program: LintedProgram, candidates: Candidates, cause: Cause) -> Iterator[Cure]:
    """Yield the fixes of the largest constraints that give tensors of the body one of the dimensions of the layout."""
    other = cause.before if isinstance(cause.operation, ReturnOp) else cause.after
    wanted = {(dim, axes) for dim, axes in enumerate(other.dim_axes if other else ()) if axes}
    constraints = [op for op in program.operations if isinstance(op, ReshardOp)]
    alike = {
        Constraint.of(op, dims_of(op.sharding.data, op.result)): op
        for op in sorted(constraints, key=lambda op: -num_bytes(op.result.type))
        if not wanted.isdisjoint(enumerate(op.sharding.data.dim_axes))
    }
    for op in [*alike.values()][:_MOST_CONSTRAINTS]:
        yield from candidates.of_constraint(op)[:_MOST_LAYOUTS]


def _cures(candidates: Candidates, value: SSAValue) -> Iterator[Cure]:
    """Yield the fixes of the constraints directly before and after a value."""
    users = (use.operation for use in value.uses)
    for op in (value.owner, *users):
        if isinstance(op, ReshardOp):
            yield from candidates.of_constraint(op)


def _carried(program: LintedProgram, cause: Cause) -> SSAValue | None:
    """Return the loop-carried value that a reshard moves, or None.

    An all-gather of a loop-carried value for one use, such as a parameter, does not change its sharding.
    """
    assert cause.tensor is not None
    if isinstance(cause.operation, ReturnOp) and isinstance(cause.operation.parent_op(), WhileOp):
        return cause.tensor
    if not moves(cause.before, cause.after):
        return None
    for value in program.use_def.trace(cause.tensor):
        loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
        if isinstance(loop, WhileOp) and value not in carried_unchanged(loop) and value.type == cause.tensor.type:
            return value
    return None


def _constrained_differently(program: LintedProgram) -> Iterator[Suspicion]:
    """Find loops whose body constrains a carried value to two shardings that do not refine each other."""
    candidates = Candidates(program)
    for loop in operations_of(program.module, WhileOp):
        end = loop.body.block.last_op
        for argument, returned in zip(loop.body.block.args, end.operands if end else (), strict=False):
            given = returned.op if isinstance(returned, OpResult) else None
            taken = next((op for op in _constraints(argument) if op is not given), None)
            if taken is None or not isinstance(given, ReshardOp):
                continue
            before, after = given.sharding.data, taken.sharding.data
            collectives = [each for each in program.collectives if each.is_reshard and each.source in (taken, given)]
            if _refines(before, after) or _refines(after, before):
                continue
            received = sum(each.bytes for each in collectives)
            trips = loop_trips(loop)
            often = "in each iteration" if trips is None else f"in each of {trips:,} iterations"
            yield Suspicion(
                given,
                f"a loop-carried {argument.type} is constrained {from_to(after, before)} and back {often}",
                f"constrain both alike, with jax.lax.with_sharding_constraint(..., {spec_of(after)})",
                [(program.place(taken), "the body constrains the value that it takes here")],
                received=received,
                avoided=0.0 if received else (trips or 1) * program.local_bytes(argument, after),
                collectives=[each.op for each in collectives],
                cures=[*_alike(candidates, taken, given)] if received else [],
                cause=(argument.type, before.dim_axes, after.dim_axes),
            )


def _constraints(argument: BlockArgument) -> Iterator[ReshardOp]:
    """Yield the constraints of a loop-carried value, and of what the body makes of it in place: an updated cache."""
    value: SSAValue | None = argument
    while value is not None:
        yield from (use.operation for use in value.uses if isinstance(use.operation, ReshardOp))
        value = next((use.operation.results[0] for use in value.uses if updates_in_place(use)), None)


def _alike(candidates: Candidates, taken: ReshardOp, given: ReshardOp) -> Iterator[Cure]:
    """Yield the fixes of one of two constraints, and those that remove both or move both to one layout."""
    of_taken, of_given = candidates.of_constraint(taken), candidates.of_constraint(given)
    yield from of_given
    yield from of_taken
    layouts = {edit.dims: edit for cure in of_given for edit in cure.edits if isinstance(edit, ChangeConstraint)}
    for cure in of_taken:
        for edit in cure.edits:
            if isinstance(edit, ChangeConstraint) and edit.dims in layouts:
                yield Cure((edit, layouts[edit.dims]))


def _refines(one: TensorSharding, other: TensorSharding) -> bool:
    """Return whether `one` has the axes of `other` in each dimension, and maybe more."""
    return all(is_prefix(theirs, mine) for mine, theirs in zip(one.dim_axes, other.dim_axes, strict=True))
