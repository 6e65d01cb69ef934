"""The batch is not sharded over a mesh axis, so that devices along the axis repeat the same computation.

The rule finds axes over which most of the arithmetic of a step is repeated, or that are named after a batch, but shard
no argument that is data: one of integers, or an operand of a product, though not of one with an activation, as
parameters are. It tries to shard their first dimension, or another one. And it finds data whose first dimension
lacks axes that shard the equally long one of other data: the items of two towers, the masks of images.

Before::

    x = jax.device_put(x, P())  # the mesh is ("data", "model"), and parameters are sharded over "model"

After::

    x = jax.device_put(x, P("data"))
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.type import get_element_type_or_self

from sdy.axes import Axes, AxisRef
from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.edits import Cure, Dims, next_values, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.name_lists import several
from sdy.passes.auto.state import find_state
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass, name_path
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp

MOST_REPEATED = 0.5
"""The part of the arithmetic of a step that is repeated over an axis that the batch does not use."""

_BATCH_AXES = {"batch", "data", "dp", "fsdp", "replica"}
"""Names of axes that the batch is usually sharded over."""

_MOST_DIMENSIONS = 3
"""Number of leading dimensions that may be that of the batch."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find axes over which arithmetic is repeated, and arguments that could be sharded over them."""
    shares = repeated_arithmetic(program)
    data = data_arguments(program)
    used = {axis.name for arguments in data.values() for each in arguments for axis in _all_axes(each)}
    candidates = Candidates(program)
    yield from _unlike_others(program, candidates, [each for arguments in data.values() for each in arguments])
    for name, size in program.mesh.axes:
        if size == 1 or name in used or not shares or (shares[name] < MOST_REPEATED and name not in _BATCH_AXES):
            continue
        for index, arguments in _batches(program, data, AxisRef(name)):
            names = several([program.names[each.index] for each in arguments])
            edits = tuple(candidates.shard(each, _with(each, index, AxisRef(name))) for each in arguments)
            before = value_dims(arguments[0])[index]
            constraints = candidates.with_batch_axis(before, AxisRef(name)) if before and not index else []
            repeated = f", along which devices repeat {shares[name]:.0%} of the arithmetic"
            yield Suspicion(
                arguments[0],
                f'dimension {index} of {names} is not sharded over axis "{name}"'
                + (repeated if shares[name] >= MOST_REPEATED else ""),
                "",
                held=program.thresholds.large,
                cures=[*dict.fromkeys((Cure((*edits, *constraints)), Cure(edits)))],
            )


def _unlike_others(
    program: LintedProgram, candidates: Candidates, data: Sequence[BlockArgument]
) -> Iterator[Suspicion]:
    """Find data whose first dimension lacks axes that shard the equally long one of other data."""
    lengths: dict[int, list[BlockArgument]] = {}
    for each in data:
        lengths.setdefault(shape_of(each)[0], []).append(each)
    for alike in lengths.values():
        other = max(alike, key=lambda each: len(value_dims(each)[0]))
        axes = value_dims(other)[0]
        arguments = [each for each in alike if _lacks(value_dims(each), axes)]
        if not arguments:
            continue
        names = several([program.names[each.index] for each in arguments])
        yield Suspicion(
            arguments[0],
            f"dimension 0 of {names} is not sharded over {axes_text(axes)}, which shards that of "
            f"{program.names[other.index]}",
            "",
            held=program.thresholds.large,
            cures=[Cure(tuple(candidates.shard(each, (axes, *value_dims(each)[1:])) for each in arguments))],
        )


def _lacks(dims: Dims, axes: Axes) -> bool:
    """Return whether the first dimension lacks some last ones of `axes`, which shard no other dimension."""
    first, *others = dims
    lacking = axes[len(first) :]
    used = [each for own in others for each in own]
    return (
        bool(lacking)
        and first == axes[: len(first)]
        and not any(each.overlaps(axis) for axis in lacking for each in used)
    )


def repeated_arithmetic(program: LintedProgram) -> dict[str, float]:
    """Return the part of the arithmetic of a step that is repeated over each axis; none without arithmetic."""
    operations = {op: count for op in program.operations if (count := arithmetic_of(op).operations)}
    axes, total = {op: _axes(op) for op in operations}, sum(operations.values())
    return {
        name: sum(count for op, count in operations.items() if name not in axes[op]) / total
        for name in program.mesh.axis_names
        if total
    }


def _axes(op: Operation) -> set[str]:
    shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
    return {axis.name for sharding in shardings if sharding for axis in sharding.axes()}


def data_arguments(program: LintedProgram) -> dict[str, list[BlockArgument]]:
    """Return the arguments that are data rather than parameters or state, by their tree.

    Data are the trees with integers, and those with an operand of a product; with state, all trees without weights.
    """
    state = find_state(program.main)
    weights, factors = _factors(program)
    trees: dict[str, list[BlockArgument]] = {}
    for argument in program.main.args:
        if is_static_tensor(argument.type) and shape_of(argument):
            trees.setdefault(_tree(argument), []).append(argument)
    return {
        name: arguments
        for name, arguments in trees.items()
        if not any(each.index in state for each in arguments)
        and (any(map(_is_integer, arguments)) or (name not in weights if state else name in factors))
    }


def _tree(argument: BlockArgument) -> str:
    return tree(argument) or str(argument.index)


def _factors(program: LintedProgram) -> tuple[set[str], set[str]]:
    """Return the trees of the operands of products: those of parameters only, and those of data.

    Parameters are multiplied by activations, or returned. They are the second operand of `x @ w`, and the first one
    where a layer that computes `w @ x` is mapped over the batch. Of two arguments, data is the one that is a single
    array rather than a part of a tree, then the one that is no parameter, then the first one.
    """
    products = [op for op in program.operations if isinstance(op, DotGeneralOp | ConvolutionOp)]
    operands = {op: [_argument(program, operand) for operand in op.operands] for op in products}
    forward = [op for op in products if name_path(op) and not is_in_backward_pass(op)]
    parameters = {_tree(each) for op in forward if None in operands[op] for each in operands[op] if each}
    sizes = Counter(map(_tree, program.main.args))
    found, others = set[str](), {*parameters}
    following = next_values(program.main)
    for arguments in operands.values():
        known = [each for each in arguments if each]
        data = [each for each in known if _tree(each) not in parameters]
        if len(known) == len(arguments):
            kept = {each for each in known if each not in data or each.index in following}
            found.add(_tree(min(known, key=lambda each: (sizes[_tree(each)] > 1, each in kept))))
            others.update(map(_tree, known))
        elif arguments[0]:
            found.update(map(_tree, data))
    return others - found, found


def _argument(program: LintedProgram, value: SSAValue) -> BlockArgument | None:
    """Return the argument that a value is, or is a slice or a copy of, or that a loop begins with."""
    *_, origin = program.use_def.trace(value)
    if not isinstance(origin, BlockArgument):
        return None
    loop = origin.owner.parent_op()
    if isinstance(loop, WhileOp):
        return _argument(program, loop.operands[origin.index])
    return origin if origin.owner is program.main.body.block else None


def _is_integer(argument: BlockArgument) -> bool:
    return isinstance(get_element_type_or_self(argument.type), IntegerType)


def _batches(
    program: LintedProgram, data: dict[str, list[BlockArgument]], axis: AxisRef
) -> Iterator[tuple[int, list[BlockArgument]]]:
    """Yield groups of arguments with a dimension of the same size, and the dimension."""
    size = axis.size_in(program.mesh)
    for index in range(_MOST_DIMENSIONS):
        sizes: dict[int, list[BlockArgument]] = {}
        for arguments in data.values():
            lengths = {shape_of(each)[index] if index < len(shape_of(each)) else 0 for each in arguments}
            if len(lengths) == 1 and (length := lengths.pop()) and length % size == 0:
                sizes.setdefault(length, []).extend(arguments)
        for arguments in sizes.values():
            yield index, arguments


def _all_axes(argument: BlockArgument) -> list[AxisRef]:
    sharding = get_sharding(argument)
    return [*sharding.axes()] if sharding else []


def _with(argument: BlockArgument, index: int, axis: AxisRef) -> Dims:
    dims = [*value_dims(argument)]
    dims[index] = (*dims[index], axis)
    return tuple(dims)
