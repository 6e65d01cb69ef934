"""A sharding constraint gathers or moves a tensor that was sharded well without it.

The usual reason is a forgotten axis: `P()` and `P("data")` replicate every dimension that they do not name, while
`P.UNCONSTRAINED` leaves it to the compiler. A finding has the constraint that was tried and that costs the least; where
no other constraint is cheaper, as in sequence parallelism, nothing is reported.

Before::

    h = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), P())  # x is sharded as P("data")

After::

    h = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), P("data"))
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.ir import Attribute, Operation, OpResult

from sdy.diagnostics import Location, location_of
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.ops import ReshardOp
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.body_edits import ChangeConstraint, Constraint
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, Dims, dims_of, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.places import python_line
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.use_def import users_through
from sdy.passes.common.properties import is_elementwise
from sdy.sharding import TensorSharding


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find constraints near reshards: of the constrained tensor, or in the elementwise operations around it."""
    lines = constraints_by_line(program)
    candidates = Candidates(program)
    together = _together(program, [constraints[0] for constraints in lines])
    for constraints in lines:
        collectives = reshards_around(program, constraints)
        worst = constraints[0]
        received = sum(each.bytes for each in collectives)
        repeated = 0 if received else _repeated_bytes(program, worst)
        if received or repeated:
            cures = [*together.get(worst, ()), *candidates.of_constraint(worst)]
            yield Suspicion(
                worst,
                f"the sharding constraint {format_dims(worst.sharding.data)} on {worst.result.type} "
                + (_RESHARDS if received else _REPEATS),
                "",
                received=received,
                held=repeated,
                collectives=[each.op for each in collectives],
                cures=cures if received else cures[:_FEW],
            )


def constraints_by_line(program: LintedProgram) -> list[list[ReshardOp]]:
    """Return the constraints of each Python line and sharding, or of each type and sharding without lines."""
    lines: dict[tuple[Location | Attribute, TensorSharding], list[ReshardOp]] = {}
    for op in program.operations:
        if isinstance(op, ReshardOp) and op not in program.passed_on:
            lines.setdefault((python_line(location_of(op)) or op.result.type, op.sharding.data), []).append(op)
    return [*lines.values()]


def reshards_around(program: LintedProgram, constraints: Sequence[ReshardOp]) -> list[Collective]:
    """Return the collectives that reshard constrained tensors, or for the elementwise operations around them."""
    near = {op for constraint in constraints for op in _around(constraint)}
    return [each for each in program.collectives if _is_reshard_of(each, near)]


def _together(program: LintedProgram, constraints: Sequence[ReshardOp]) -> Mapping[ReshardOp, Sequence[Cure]]:
    """Return the fix of the constraints of a function with one sharding: all get the shardings of their operands."""
    alike: dict[tuple[Location | None, Dims], list[ReshardOp]] = {}
    for op in constraints:
        dims = dims_of(op.sharding.data, op.result)
        if value_dims(op.input) != dims and (caller := [*program.places.callers(op), None][0]):
            alike.setdefault((caller, dims), []).append(op)
    return {
        op: [Cure(tuple(ChangeConstraint(Constraint.of(each, dims), value_dims(each.input)) for each in together))]
        for (_, dims), together in alike.items()
        if 1 < len(together) <= _MOST_TOGETHER
        for op in together
    }


_MOST_TOGETHER = 4
"""Number of lines of a function whose constraints are changed together."""

_RESHARDS = "reshards tensors that are sharded well without it"
_REPEATS = "has all devices compute the same"

_FEW = 3
"""Number of fixes that are tried for a constraint that reshards nothing."""


def _repeated_bytes(program: LintedProgram, constraint: ReshardOp) -> int:
    """Return the bytes of a constrained tensor that devices repeat along axes that the constraint does not name."""
    value, sharding = constraint.result, constraint.sharding.data
    used = {axis.name for axis in sharding.axes()}
    free = prod(size for name, size in program.mesh.axes if name not in used)
    local = program.local_bytes(value, sharding)
    return local - local // free


def _is_reshard_of(collective: Collective, near: set[Operation]) -> bool:
    cause = collective.cause
    if cause is None or cause.purpose is not Purpose.RESHARD:
        return False
    tensor = cause.tensor
    return cause.operation in near or (isinstance(tensor, OpResult) and tensor.op in near)


def _around(constraint: ReshardOp) -> Iterator[Operation]:
    """Yield a constraint, the elementwise operations before and after it, and the operations at their ends."""
    yield constraint
    yield from users_through(constraint.result)
    seen: set[Operation] = set()
    pending = [constraint.input]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in seen:
            seen.add(op)
            yield op
            if is_elementwise(op):
                pending += op.operands
