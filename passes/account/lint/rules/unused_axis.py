"""A mesh axis that shards no large tensor.

Devices along the axis hold the same data and repeat the same computation: on a mesh of 4 x 2 devices whose second axis
is unused, one half repeats the work of the other. The rule tries to split stacked parameters, such as those of an
ensemble, and the tensors that constraints keep whole. Of the axes that a large `jax.shard_map` does not use,
`manual-computation-repeats` has a finding.

Before::

    batch = jax.device_put(batch, NamedSharding(mesh, P("data")))  # the mesh is ("data", "model")

After::

    batch = jax.device_put(batch, NamedSharding(mesh, P(("data", "model"))))
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, zip_longest

from xdsl.ir import BlockArgument, Operation

from sdy.axes import AxisRef
from sdy.dialect.ops import ManualComputationOp, ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.body_edits import ChangeConstraint, Constraint
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.dimensions import Dimension, Origins
from sdy.passes.account.lint.edits import Cure, LazyCures, dims_of, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.manual_computation_repeats import repeated
from sdy.passes.account.lint.varying import Varying
from sdy.passes.common.properties import num_bytes
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.dot import DotGeneralOp

_FRACTION = 8
"""A tensor also counts as large if it has 1/8 of the bytes of the largest one, so that small programs have large
tensors."""

_MOST_ARGUMENTS = 4
"""Number of groups of arguments that are sharded."""

_MOST_CONSTRAINED = 6
"""Number of layouts of constrained tensors that are tried."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find axes that no large tensor and no manual computation uses, at the tensor with the most local bytes."""
    values = [value for value in program.values if not isinstance(value.owner, ConstantOp)]
    if not values:
        return
    large = min(program.thresholds.large, max(num_bytes(value.type) for value in values) // _FRACTION)
    shardings = [get_sharding(value) for value in values if num_bytes(value.type) >= large]
    used = {axis.name for sharding in shardings if sharding for axis in sharding.axes()}
    for manual in operations_of(program.module, ManualComputationOp):
        used |= Varying(manual, program.mesh).used
    used.update(name for axes, _ in repeated(program).values() for name in axes)
    largest = max(values, key=lambda value: program.local_bytes(value, get_sharding(value)))
    local = program.local_bytes(largest, get_sharding(largest))
    candidates = Candidates(program)
    for name, size in program.mesh.axes:
        if size == 1 or name in used:
            continue
        yield Suspicion(
            largest,
            f'mesh axis "{name}" of size {size} shards no large tensor; devices along it repeat the same work',
            f'shard {program.called(largest)}, {largest.type}, over it as well, or make a mesh without "{name}"',
            held=local - local // size,
            cures=LazyCures(partial(_cures, program, candidates, AxisRef(name))),
        )


def _cures(program: LintedProgram, candidates: Candidates, axis: AxisRef) -> list[Cure]:
    """Return layouts of arguments and of constrained tensors that use the axis."""
    return [*_of_arguments(program, candidates, axis), *_of_constraints(program, candidates, axis)]


def _of_arguments(program: LintedProgram, candidates: Candidates, axis: AxisRef) -> list[Cure]:
    """Return the fixes of stacked arguments, over whose first dimension a product is mapped; a tree has one fix."""
    origins, held = Origins(program, most_products=0), Counter[Cure]()
    mapped = (at for op in program.operations if isinstance(op, DotGeneralOp) for at in _mapped(op))
    for argument in dict.fromkeys(each.tensor for at in mapped for each in origins.of(at) if each.index == 0):
        if isinstance(argument, BlockArgument) and (cure := candidates.together(argument, 0, axis)):
            held[cure] += program.local_bytes(argument, get_sharding(argument))
    return [cure for cure, _ in held.most_common(_MOST_ARGUMENTS)]


def _mapped(product: DotGeneralOp) -> Iterator[Dimension]:
    """Yield the dimensions of the operands over which a product is mapped."""
    numbers = product.dot_dimension_numbers.data
    batching = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    for operand, dimensions in zip(product.operands, batching, strict=True):
        yield from (Dimension(operand, index) for index in dimensions)


def _of_constraints(program: LintedProgram, candidates: Candidates, axis: AxisRef) -> list[Cure]:
    """Return constraints with the axis added to a dimension: those that drop it, or else those that replicate."""
    every = [op for op in program.operations if isinstance(op, ReshardOp) and op not in program.passed_on]
    dropping = [op for op in every if _drops(op, axis)]
    ops = dropping or [op for op in every if not any(op.sharding.data.axes())]
    layouts: dict[Constraint, list[Cure]] = {}
    for op in sorted(ops, key=lambda op: -num_bytes(op.result.type)):
        dims = dims_of(op.sharding.data, op.result)
        constraint = Constraint.of(op, dims)
        if constraint not in layouts:
            extended = candidates.with_axes(op.result, dims, [axis])
            layouts[constraint] = [Cure((ChangeConstraint(constraint, new),)) for new in extended]
    rounds = chain.from_iterable(zip_longest(*layouts.values()))
    return [cure for cure in rounds if cure is not None][:_MOST_CONSTRAINED]


def _drops(constraint: ReshardOp, axis: AxisRef) -> bool:
    """Return whether a constraint drops an axis of its operand, or of the tensor that is reshaped to it."""
    value = constraint.input
    while not any(axis in own for own in value_dims(value)):
        if not isinstance(value.owner, Operation) or len(value.owner.operands) != 1:
            return False
        (value,) = value.owner.operands
    return True
