"""A large tensor that devices hold alike, though an axis of the mesh could split it.

Memory is what decides whether a model fits. A tensor that lies whole along an axis takes as many times its part as the
axis has devices. Told are the arguments of a step, and what is in memory when most is; below `--replicated` bytes of
each device nothing is told, as good layouts replicate what is not very large.

Before::

    table = jax.ShapeDtypeStruct((128_000, 1024), "float32", sharding=NamedSharding(mesh, P()))

After::

    table = jax.ShapeDtypeStruct((128_000, 1024), "float32", sharding=NamedSharding(mesh, P("model", None)))
"""

from collections.abc import Iterator
from math import prod

from xdsl.ir import OpResult, SSAValue

from sdy.axes import AxisRef, total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape, shape_of
from sdy.passes.account.lint.finding import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes, spec
from sdy.stablehlo.constants import ConstantOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Arguments, and what is there when most is in memory, along axes that could split them."""
    for value in dict.fromkeys((*program.main.args, *_at_peak(program))):
        if not is_static_tensor(value.type) or not shape(value.type):
            continue
        axes = _free_axes(program, value)
        if not axes:
            continue
        local = program.local_bytes(value, get_sharding(value))
        parts = prod(program.mesh.axis_size(name) for name in axes)
        split = spec(_split_by(program, value, axes))
        argument = value.owner is program.main.body.block
        yield Suspicion(
            value,
            f"{program.called(value)}, {value.type}, lies whole along {quoted_axes(list(axes))}, which could split "
            f"dimension {', '.join(map(str, sorted({*axes.values()})))}",
            f"give it the sharding {split}" if argument else f"jax.lax.with_sharding_constraint(..., {split})",
            [GivenBy(value)],
            held=local - local // parts,
        )


def _at_peak(program: LintedProgram) -> Iterator[SSAValue]:
    """The tensors of the whole program that are in memory when most is, but for arguments and parts of them."""
    for value in program.footprint.at_peak:
        source = program.traced.sources.get(value.op) if isinstance(value, OpResult) else None
        if isinstance(value, OpResult) and source is not None and not isinstance(source, ConstantOp):
            results = source.results[value.index : value.index + 1]
            yield from (result for result in results if not program.is_argument(result))


def _free_axes(program: LintedProgram, value: SSAValue) -> dict[str, int]:
    """The axes along which `value` lies whole, each with a dimension that it could split: the largest part."""
    sharding, mesh = get_sharding(value), program.mesh
    used = {axis.name for axis in sharding.axes()} if sharding else set[str]()
    sizes = [*shape_of(value)]
    for dimension, dim in enumerate(sharding.dims if sharding else ()):
        sizes[dimension] = -(-sizes[dimension] // total_size(dim.axes, mesh))
    found: dict[str, int] = {}
    for name, size in mesh.axes:
        fitting = [dimension for dimension, left in enumerate(sizes) if left % size == 0]
        if size > 1 and name not in used and fitting:
            found[name] = max(fitting, key=lambda dimension: sizes[dimension])
            sizes[found[name]] //= size
    return found


def _split_by(program: LintedProgram, value: SSAValue, axes: dict[str, int]) -> list[list[AxisRef]]:
    """The axes of each dimension, with those more."""
    sharding = get_sharding(value)
    dims = [[*axes] for axes in (sharding.dim_axes if sharding else ((),) * len(shape_of(value)))]
    for name, dimension in axes.items():
        dims[dimension].append(AxisRef(name))
    return dims
