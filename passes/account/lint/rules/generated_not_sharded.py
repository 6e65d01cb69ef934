"""A tensor that a step generates is not sharded, so that devices repeat what is computed from it.

Random numbers, positions, masks and initial states are computed alike on all devices: they stem from scalars, which
have no sharding, and what follows is sharded only if another operand is. The rule finds axes over which most of the
arithmetic of a step is repeated, and tries to constrain the generated tensors that other lines use.

Before::

    x = jax.random.normal(key, (32, 256, 64))

After::

    x = jax.lax.with_sharding_constraint(jax.random.normal(key, (32, 256, 64)), P("data"))
"""

from collections.abc import Iterator

from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import location_of
from sdy.ir.shapes import rank
from sdy.ir.walking import captured_values
from sdy.passes.account.lint.body_edits import AddConstraint, Results
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.batch_not_sharded import MOST_REPEATED, repeated_arithmetic
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import is_elementwise, num_bytes
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp

_MOST_TENSORS = 3
"""Number of generated tensors that are constrained."""

_MOST_LAYOUTS = 4
"""Number of layouts of a tensor that are tried."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find generated tensors that axes could shard over which arithmetic is repeated."""
    shares = {name: share for name, share in repeated_arithmetic(program).items() if share >= MOST_REPEATED}
    axes = [AxisRef(name) for name in shares if program.mesh.axis_size(name) > 1]
    candidates = Candidates(program)
    tried: dict[Results, None] = {}
    together = [axes] if len(axes) > 1 else []
    sharded = [*together, *([axis] for axis in axes)]
    for value in _generated(program) if axes else ():
        results, before = Results.of(value), value_dims(value)
        layouts = [dims for each in sharded for dims in candidates.with_axes(value, before, each)]
        if not layouts or results is None or results in tried or len(tried) == _MOST_TENSORS:
            continue
        tried[results] = None
        yield Suspicion(
            value,
            f"a {value.type} that the step generates is the same on all devices along "
            f"{quoted_axes([axis.name for axis in axes])}, which repeat {max(shares.values()):.0%} of the arithmetic",
            "",
            held=program.thresholds.large,
            cures=[Cure((AddConstraint(results, dims),)) for dims in layouts[:_MOST_LAYOUTS]],
        )


def _generated(program: LintedProgram) -> list[SSAValue]:
    """Return the tensors that are computed from scalars only, and used by operations of other lines that are not.

    Tensors with equal elements are last. They are initial values: operands of elementwise operations are scalars that
    are broadcast.
    """
    equal: dict[SSAValue, bool] = {}
    """The generated tensors, with whether their elements are equal."""
    used: dict[SSAValue, None] = {}
    for op in program.operations:
        ranked = {value: None for value in (*op.operands, *captured_values(op)) if rank(value.type)}
        if op.results and all(each in equal for each in ranked):
            is_equal = isinstance(op, ConstantOp | BroadcastInDimOp) or (bool(ranked) and is_elementwise(op))
            of_op = is_equal and all(equal[each] for each in ranked)
            equal.update((result, of_op) for result in op.results if rank(result.type))
            continue
        for each in ranked:
            is_scalar = equal.get(each, True) and is_elementwise(op)
            if each in equal and not is_scalar and location_of(op) != location_of(each):
                used[each] = None
    return sorted(used, key=lambda each: (equal[each], -num_bytes(each.type)))
