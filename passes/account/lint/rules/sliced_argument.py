"""A large argument is replicated, though each device reads only its own part of it.

The parts that a device does not read take memory for nothing: sharded, the argument costs no communication. Examples
are a table of biases whose heads are sharded, and a mask that is not sharded with the batch. The rule reports an
argument if a layout that was tried saves memory, and neither bytes nor time grow.

Before::

    bias = jax.ShapeDtypeStruct((heads, length, length), "float32", sharding=NamedSharding(mesh, P()))

After::

    bias = jax.ShapeDtypeStruct((heads, length, length), "float32", sharding=NamedSharding(mesh, P("model")))
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from math import prod
from typing import NamedTuple

from xdsl.ir import BlockArgument, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.edits import Cure, Dims, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.call_graph import main_function
from sdy.stablehlo.elementwise import ConvertOp
from sdy.stablehlo.slicing import DynamicSliceOp


class _Sliced(NamedTuple):
    """An argument, and the number of parts of each dimension; a device reads one."""

    argument: BlockArgument
    parts: tuple[int, ...]


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find replicated arguments that every use on a device slices: those of a tree in one match."""
    trees: dict[str, list[_Sliced]] = {}
    for argument, local in zip(program.main.args, main_function(program.local).args, strict=True):
        is_whole = is_static_tensor(argument.type) and not any(value_dims(argument))
        if is_whole and (slices := [*_slices(local)]):
            read = [max(sizes) for sizes in zip(*map(shape_of, slices), strict=True)]
            parts = tuple(size // part for size, part in zip(shape_of(local), read, strict=True))
            trees.setdefault(tree(argument) or program.names[argument.index], []).append(_Sliced(argument, parts))
    for together in trees.values():
        yield _suspicion(program, together)


def _suspicion(program: LintedProgram, together: Sequence[_Sliced]) -> Suspicion:
    candidates = Candidates(program)
    held = {each: _unread(program, each) for each in together}
    argument, parts = max(held, key=lambda each: held[each])
    layouts = [[*_layouts(program, each)] for each in together]
    joint = [
        [candidates.shard(each.argument, dims) for each, dims in zip(together, of_all, strict=True)]
        for of_all in zip(*layouts, strict=False)
    ]
    return Suspicion(
        argument,
        f"{program.called(argument)}, {argument.type}, is replicated, but each device reads only 1/{prod(parts)} of it",
        "",
        [GivenBy(argument)],
        held=sum(held.values()),
        times=len(together),
        cures=[Cure(tuple(edits)) for edits in joint],
    )


def _unread(program: LintedProgram, sliced: _Sliced) -> int:
    held = program.local_bytes(sliced.argument, get_sharding(sliced.argument))
    return held - held // max(prod(sliced.parts), 1)


def _slices(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the slices that a device takes of a value, or of a cast of it; none if it reads the value otherwise."""
    found: list[SSAValue] = []
    for use in value.uses:
        op = use.operation
        if isinstance(op, ConvertOp):
            inner = [*_slices(op.results[0])]
        else:
            inner = [op.results[0]] if isinstance(op, DynamicSliceOp) and use.index == 0 else []
        if not inner:
            return
        found += inner
    yield from found


def _layouts(program: LintedProgram, sliced: _Sliced) -> Iterator[Dims]:
    """Yield the layouts that split each dimension into its parts."""
    axes = [name for name, size in program.mesh.axes if size > 1]
    subsets = [each for count in range(len(axes) + 1) for each in combinations(axes, count)]
    of_dims = ([each for each in subsets if prod(map(program.mesh.axis_size, each)) == count] for count in sliced.parts)
    for names in product(*of_dims):
        if len({*chain(*names)}) == len([*chain(*names)]):
            yield tuple(tuple(map(AxisRef, each)) for each in names)
