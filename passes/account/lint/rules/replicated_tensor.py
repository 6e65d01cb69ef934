"""A large tensor is replicated over a mesh axis that could shard it.

Memory decides whether a model fits. A tensor that is replicated over an axis takes as many times its shard as the axis
has devices. The rule reports arguments, and tensors that are live at peak memory. It reports none below `--replicated`
bytes per device, summed over layers, and over the keys and the values of a cache, since good layouts replicate all but
very large tensors. It does not report a tensor that is sharded
over other axes where every layout that was tried costs more, such as a batch along an axis of tensor parallelism.

Before::

    table = jax.ShapeDtypeStruct((128_000, 1024), "float32", sharding=NamedSharding(mesh, P()))

After::

    table = jax.ShapeDtypeStruct((128_000, 1024), "float32", sharding=NamedSharding(mesh, P("model", None)))
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import prod

from xdsl.ir import BlockArgument, OpResult, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape, shape_of
from sdy.passes.account.lint.candidates import Candidates, last_of_line, tree
from sdy.passes.account.lint.dimensions import Dimension, Origins
from sdy.passes.account.lint.edits import Cure, Dims, LazyCures, dims_of, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram, is_in_manual_computation
from sdy.passes.account.lint.use_def import is_updated_in_place
from sdy.passes.account.lint.wording import quoted_axes, spec
from sdy.passes.common.properties import num_bytes
from sdy.stablehlo.constants import ConstantOp

_LEAST_TEMPORARY = 1 / 16
"""The part of the peak memory for which a tensor other than an argument is reported: tensor parallelism replicates
activations."""

_LEAST_TOGETHER = 1 / 16
"""The part of the bytes of an argument that another one of its tree has to be sharded together with it."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find arguments, and tensors live at peak memory, that are replicated over axes that could shard them."""
    candidates, least = Candidates(program), _LEAST_TEMPORARY * program.footprint.bytes
    for value in dict.fromkeys((*program.main.args, *_at_peak(program))):
        if not is_static_tensor(value.type) or not shape(value.type):
            continue
        sharding = get_sharding(value)
        is_on_one_device = sharding is not None and not sharding.dims
        axes = {} if is_on_one_device else _free_axes(program, value)
        if not axes:
            continue
        local = program.local_bytes(value, sharding)
        num_shards = prod(program.mesh.axis_size(name) for name in axes)
        dims = _with_axes(value, axes)
        suggestion = spec(dims)
        held = local - local // num_shards
        argument = value if isinstance(value, BlockArgument) and value.owner is program.main.body.block else None
        if argument is None and held < least:
            continue
        named = value if argument is not None else last_of_line(value)
        yield Suspicion(
            named,
            f"{program.called(named)}, {named.type}, is replicated over {quoted_axes(list(axes))}, which could shard "
            f"dimension {', '.join(map(str, sorted({*axes.values()})))}",
            f"shard it as {suggestion}" if argument else f"jax.lax.with_sharding_constraint(..., {suggestion})",
            [GivenBy(value)],
            held=held,
            needs_cure=argument is None or any(dims_of(sharding, value)),
            cures=LazyCures(partial(_cures, program, candidates, named, dims)),
            cause=_cache(candidates, argument) if argument else None,
        )


def _cures(program: LintedProgram, candidates: Candidates, value: SSAValue, dims: Dims) -> Sequence[Cure]:
    """Return the fixes; for an argument, first that of all large arguments of its tree that are replicated."""
    is_whole = isinstance(value, BlockArgument) and not any(value_dims(value))
    if isinstance(value, BlockArgument):
        together = [_of_tree(program, candidates, value)] if is_whole else []
    else:
        together = _of_origins(program, candidates, value, dims)
    return [*dict.fromkeys(together), *(candidates.of_value(value, dims) or candidates.of_result(value, dims))]


def _of_origins(program: LintedProgram, candidates: Candidates, value: SSAValue, dims: Dims) -> Iterator[Cure]:
    """Yield the fixes that shard the arguments that a dimension of a computed tensor comes from."""
    origins = Origins(program)
    for index, (axes, before) in enumerate(zip(dims, value_dims(value), strict=True)):
        for at, axis in product(origins.of(Dimension(value, index)), axes[len(before) :]):
            assert isinstance(at.tensor, BlockArgument)
            if cure := candidates.together(at.tensor, at.index, axis):
                yield cure


def _of_tree(program: LintedProgram, candidates: Candidates, argument: BlockArgument) -> Cure:
    """Return the fix that shards the replicated arguments of a tree, and their optimizer state."""
    least = num_bytes(argument.type) * _LEAST_TOGETHER
    alike = [
        each
        for each in program.main.args
        if tree(each) == tree(argument) and is_static_tensor(each.type) and num_bytes(each.type) >= least
        if not any(value_dims(each))
    ]
    edits = [
        candidates.shard(state, _with_axes(each, _free_axes(program, each)))
        for each in alike
        for state in candidates.with_state(each)
    ]
    return Cure(tuple(dict.fromkeys(edits)))


def _cache(candidates: Candidates, argument: BlockArgument) -> object:
    """Return the indices of the arguments of a cache, such as its keys and values, which are one cause."""
    return frozenset(each.index for each in candidates.alike(argument)) if is_updated_in_place(argument) else None


def _at_peak(program: LintedProgram) -> Iterator[SSAValue]:
    """Yield the unpartitioned tensors that are live at peak memory, except arguments and slices of them."""
    for value in program.footprint.at_peak:
        if isinstance(value, OpResult):
            source = program.traced.sources.get(value.op)
            if source is not None and not isinstance(source, ConstantOp) and not is_in_manual_computation(source):
                results = source.results[value.index : value.index + 1]
                yield from (result for result in results if not program.is_argument(result))


def _free_axes(program: LintedProgram, value: SSAValue) -> dict[str, int]:
    """Return the axes that `value` is replicated over, each with a dimension it could shard: the largest local one."""
    sharding, mesh = get_sharding(value), program.mesh
    used = {axis.name for axis in sharding.axes()} if sharding else set[str]()
    sizes = [*shape_of(value)]
    for dimension, dim in enumerate(sharding.dims if sharding else ()):
        sizes[dimension] = -(-sizes[dimension] // total_size(dim.axes, mesh))
    free: dict[str, int] = {}
    for name, size in mesh.axes:
        divisible = [dimension for dimension, local_size in enumerate(sizes) if local_size % size == 0]
        if size > 1 and name not in used and divisible:
            free[name] = max(divisible, key=lambda dimension: sizes[dimension])
            sizes[free[name]] //= size
    return free


def _with_axes(value: SSAValue, axes: dict[str, int]) -> Dims:
    """Return the axes of each dimension of `value` with `axes` added."""
    dims = [[*axes] for axes in value_dims(value)]
    for name, dimension in axes.items():
        dims[dimension].append(AxisRef(name))
    return tuple(map(tuple, dims))
