"""A sharding constraint shards another dimension over an axis than the operations around it do.

The operation that computes the constrained tensor has the axis in one dimension, from its operands, and the constraint
moves it to another one: the operands are resharded for the constraint, and its result for what follows. The rule tries
the constraint with the axis in the dimension that the operands shard.

Before::

    scores = jnp.einsum("bqhk,bshk->bhqs", q, k)  # the heads of q and k are sharded over "model"
    scores = jax.lax.with_sharding_constraint(scores, P("data", None, "model"))

After::

    scores = jax.lax.with_sharding_constraint(scores, P("data", "model"))
"""

from collections.abc import Iterator

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.axes import Axes
from sdy.diagnostics import Location
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.ops import ReshardOp
from sdy.passes.account.lint.body_edits import ChangeConstraint, Constraint
from sdy.passes.account.lint.edits import Cure, Dims, dims_of, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.costly_constraint import constraints_by_line, reshards_around
from sdy.passes.account.lint.wording import spec
from sdy.passes.common.properties import is_elementwise
from sdy.rules.registry import sharding_rule


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find constraints that have an axis in another dimension than the operands that compute the constrained tensor."""
    for constraints in constraints_by_line(program):
        first = constraints[0]
        before = dims_of(first.sharding.data, first.result)
        wanted = _moved_as_operands(first, before)
        collectives = reshards_around(program, constraints) if wanted else []
        if wanted and collectives:
            yield Suspicion(
                first,
                f"the sharding constraint {format_dims(first.sharding.data)} on {first.result.type} moves an axis to "
                "another dimension than the operands that compute it have it in",
                "",
                [(_where(program, first), f"the operands of this operation are sharded for {spec(wanted)}")],
                received=sum(each.bytes for each in collectives),
                collectives=[each.op for each in collectives],
                cures=[Cure((ChangeConstraint(Constraint.of(first, before), wanted),))],
            )


def _moved_as_operands(constraint: ReshardOp, before: Dims) -> Dims | None:
    """Return the layout of a constraint with its axes in the dimensions that the operands shard; None if it is that."""
    op = _computes(constraint.input)
    rule = sharding_rule(op) if op is not None and len(op.operands) > 1 else None
    if op is None or rule is None:
        return None
    dimensions = {factors[0]: index for index, factors in reversed([*enumerate(rule.results[0])]) if factors}
    targets: dict[Axes, int] = {}
    for operand, mapping in zip(op.operands, rule.operands, strict=True):
        for factors, axes in zip(mapping, value_dims(operand), strict=True):
            if axes and axes in before and factors and factors[0] in dimensions:
                targets.setdefault(axes, dimensions[factors[0]])
    moved = [() if axes in targets else axes for axes in before]
    for axes, index in targets.items():
        if moved[index]:
            return None
        moved[index] = axes
    return tuple(moved) if tuple(moved) != before else None


def _computes(value: SSAValue) -> Operation | None:
    """Return the operation that computes a value, before elementwise operations with one operand of its type."""
    while isinstance(value, OpResult):
        same = [operand for operand in value.op.operands if operand.type == value.type]
        if not is_elementwise(value.op) or not same:
            return value.op
        value = same[0]
    return None


def _where(program: LintedProgram, constraint: ReshardOp) -> Location | None:
    return program.place(_computes(constraint.input))
