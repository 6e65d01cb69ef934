"""A dimension that is sharded over axes that do not divide it.

Devices then hold padding and compute on it: three heads over four devices take as much time and memory as four heads.
Arguments and results of a program cannot be padded. There, axes that do not divide a dimension are dropped, and each
device holds more of the tensor than annotated.

Before::

    keys = jax.lax.with_sharding_constraint(keys, P("data", None, "model"))  # 3 heads, "model" is 4

After::

    queries = jax.lax.with_sharding_constraint(queries, P("data", None, None, "model"))  # 4 queries for each of them
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sdy.dialect.axis_syntax import axes_text, format_dims
from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp


@dataclass(frozen=True)
class _Uneven:
    """A dimension of a tensor that its axes do not divide, and the bytes of padding per device."""

    value: SSAValue
    index: int
    size: int
    dim: DimSharding
    num_shards: int
    padding: int

    @property
    def cure(self) -> str:
        return f"shard another dimension, use fewer shards, or make the size a multiple of {self.num_shards}"


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find padded dimensions, and axes dropped from the shardings of arguments and results."""
    yield from _padded(program)
    yield from _dropped(program)


def _uneven(program: LintedProgram, value: SSAValue, sharding: TensorSharding | None) -> Iterator[_Uneven]:
    """Yield the dimensions of `value` that the axes of `sharding` do not divide."""
    mesh = program.mesh_of(sharding)
    if sharding is None or mesh is None or not is_static_tensor(value.type):
        return
    # A value on a single device has a sharding without dimensions.
    for index, (dim, size) in enumerate(zip(sharding.dims, shape_of(value), strict=False)):
        num_shards = dim.sharded_size(mesh)
        if size % num_shards:
            local = program.local_bytes(value, sharding)
            padding = local - local * size // (-(-size // num_shards) * num_shards)
            yield _Uneven(value, index, size, dim, num_shards, padding)


def _padded(program: LintedProgram) -> Iterator[Suspicion]:
    worst: dict[tuple[int, DimSharding], _Uneven] = {}
    for value in program.values:
        if isinstance(value.owner, SliceOp | DynamicSliceOp):
            continue  # A part of a sharded dimension, as of a roll, is sent to the devices that need it.
        for uneven in _uneven(program, value, get_sharding(value)):
            known = worst.setdefault((uneven.size, uneven.dim), uneven)
            if uneven.padding > known.padding:
                worst[uneven.size, uneven.dim] = uneven
    for each in worst.values():
        origins = (chain.origin.where for chain in program.chains(each.value) if chain.dimension == each.index)
        yield Suspicion(
            next(origins, None) or each.value,
            f"a dimension of size {each.size:,} is sharded over {axes_text(each.dim.axes)} into {each.num_shards:,} "
            f"shards, which do not divide it; it is padded to {-(-each.size // each.num_shards) * each.num_shards:,}",
            each.cure,
            [
                (program.place(each.value), f"the most padding is in {program.called(each.value)}, {each.value.type}"),
                GivenBy(each.value, each.dim.axes),
            ],
            held=each.padding,
        )


def _dropped(program: LintedProgram) -> Iterator[Suspicion]:
    main = program.main
    end = main.get_return_op()
    for index, value in enumerate(main.args):
        called = program.names[index]
        yield from _dropped_of(program, called, value, program.initial_sharding(value), get_sharding(value))
    for index, value in enumerate(end.operands if end else ()):
        initial, final = program.initial_result_sharding(index), func_result_sharding(main, index)
        yield from _dropped_of(program, f"result {index}", value, initial, final)


def _dropped_of(
    program: LintedProgram, called: str, value: SSAValue, initial: TensorSharding | None, final: TensorSharding | None
) -> Iterator[Suspicion]:
    for uneven in _uneven(program, value, initial if initial != final else None):
        yield Suspicion(
            value,
            f"{called}, {value.type}, is annotated with {format_dims(initial)}, whose axes do not divide dimension "
            f"{uneven.index}; it is {sharded_as(final)} instead",
            uneven.cure,
            held=max(program.local_bytes(value, final) - program.local_bytes(value, initial), 0),
        )
