"""A dimension that is split over axes which do not divide it.

Devices then hold padding, and compute with it; the arguments and results of a program have none, so that there an axis
which does not divide is dropped, and each device holds more of the tensor than it was to hold. Three heads over four
devices take as long and as much memory as four.

Before::

    keys = jax.lax.with_sharding_constraint(keys, P("data", None, "model"))  # 3 heads, "model" is 4

After::

    queries = jax.lax.with_sharding_constraint(queries, P("data", None, None, "model"))  # 4 queries for each of them
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.account.lint.finding import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.shown_sharding import dims_of
from sdy.sharding import DimSharding, TensorSharding


@dataclass(frozen=True)
class _Uneven:
    """A dimension of a tensor that its axes do not divide, and how many bytes of padding a device then holds."""

    value: SSAValue
    index: int
    size: int
    dim: DimSharding
    parts: int
    padding: int

    @property
    def cure(self) -> str:
        return f"split another dimension, fewer parts, or make it a multiple of {self.parts}"


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """What is padded, each dimension once; then what was given to arguments and results, and dropped."""
    yield from _padded(program)
    yield from _dropped(program)


def _uneven(program: LintedProgram, value: SSAValue, sharding: TensorSharding | None) -> Iterator[_Uneven]:
    """The dimensions that their axes do not divide where `value` is split so."""
    mesh = program.mesh_of(sharding)
    if sharding is None or mesh is None or not is_static_tensor(value.type):
        return
    for index, (dim, size) in enumerate(zip(sharding.dims, shape_of(value), strict=True)):
        parts = dim.sharded_size(mesh)
        if size % parts:
            local = program.local_bytes(value, sharding)
            yield _Uneven(value, index, size, dim, parts, local - local * size // (-(-size // parts) * parts))


def _padded(program: LintedProgram) -> Iterator[Suspicion]:
    worst: dict[tuple[int, DimSharding], _Uneven] = {}
    for value in program.values:
        for uneven in _uneven(program, value, get_sharding(value)):
            known = worst.setdefault((uneven.size, uneven.dim), uneven)
            if uneven.padding > known.padding:
                worst[uneven.size, uneven.dim] = uneven
    for each in worst.values():
        begun = (chain.origin.where for chain in program.chains(each.value) if chain.dimension == each.index)
        yield Suspicion(
            next(begun, None) or each.value,
            f"a dimension of {each.size:,} is split over {axes_text(each.dim.axes)} in {each.parts:,} parts, which do "
            f"not divide it: it is padded to {-(-each.size // each.parts) * each.parts:,}",
            each.cure,
            [
                (program.place(each.value), f"most of it is in {program.called(each.value)}, {each.value.type}"),
                GivenBy(each.value, each.dim.axes),
            ],
            held=each.padding,
        )


def _dropped(program: LintedProgram) -> Iterator[Suspicion]:
    main = program.main
    end = main.get_return_op()
    for index, value in enumerate(main.args):
        called = program.names[index]
        yield from _dropped_of(program, called, value, program.given(value), get_sharding(value))
    for index, value in enumerate(end.operands if end else ()):
        kept = func_result_sharding(main, index)
        yield from _dropped_of(program, f"result {index}", value, program.given_result(index), kept)


def _dropped_of(
    program: LintedProgram, called: str, value: SSAValue, given: TensorSharding | None, kept: TensorSharding | None
) -> Iterator[Suspicion]:
    for uneven in _uneven(program, value, given if given != kept else None):
        yield Suspicion(
            value,
            f"{called}, {value.type}, was given {dims_of(given)}, which does not divide its dimension {uneven.index}: "
            f"it lies as {dims_of(kept)}",
            uneven.cure,
            held=max(program.local_bytes(value, kept) - program.local_bytes(value, given), 0),
        )
