"""A large argument is replicated over an axis along which each device reads only its own part of it.

The parts that a device does not read take memory for nothing: sharded, the argument costs no communication. Examples
are a table of biases whose heads are sharded, a cache of keys and values that is sharded with the batch alone where
heads are sharded too, and a mask that is not sharded with the batch. The rule reports an argument if a layout that was
tried saves memory, and neither bytes nor time grow.

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
from sdy.passes.account.lint.use_def import is_updated_in_place
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.call_graph import main_function
from sdy.stablehlo.elementwise import ConvertOp
from sdy.stablehlo.slicing import DynamicSliceOp

_LEAST_OF_CACHE = 0.2
"""The part of the memory of a step that the unread parts of a cache have, whose other dimensions are sharded."""


class _Sliced(NamedTuple):
    """An argument, and the number of parts of each dimension of its shard; a device reads one."""

    argument: BlockArgument
    parts: tuple[int, ...]


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find replicated arguments that every use on a device slices: those of a tree in one match."""
    trees: dict[str, list[_Sliced]] = {}
    for argument, local in zip(program.main.args, main_function(program.local).args, strict=True):
        is_candidate = is_static_tensor(argument.type) and (not any(value_dims(argument)) or _is_cache(argument))
        if is_candidate and (slices := [*_slices(local)]):
            read = [max(sizes) for sizes in zip(*map(shape_of, slices), strict=True)]
            parts = tuple(size // part for size, part in zip(shape_of(local), read, strict=True))
            trees.setdefault(tree(argument) or program.names[argument.index], []).append(_Sliced(argument, parts))
    for together in trees.values():
        suspicion, is_whole = _suspicion(program, together), not any(value_dims(together[0].argument))
        if is_whole or suspicion.held >= _LEAST_OF_CACHE * program.costs.memory:
            yield suspicion


def _is_cache(argument: BlockArgument) -> bool:
    """Return whether an argument is sharded state that a loop, or the step, changes."""
    return any(value_dims(argument)) and is_updated_in_place(argument)


def _suspicion(program: LintedProgram, together: Sequence[_Sliced]) -> Suspicion:
    candidates = Candidates(program)
    held = {each: _unread(program, each) for each in together}
    argument, parts = max(held, key=lambda each: held[each])
    layouts = [[*_layouts(program, each)] for each in together]
    joint = [
        [candidates.shard(each.argument, dims) for each, dims in zip(together, of_all, strict=True)]
        for of_all in zip(*layouts, strict=False)
    ]
    over = f" over {quoted_axes(_free_axes(program, argument))}" if any(value_dims(argument)) else ""
    read = f"1/{prod(parts)} of {'its shard' if over else 'it'}"
    return Suspicion(
        argument,
        f"{program.called(argument)}, {argument.type}, is replicated{over}, but each device reads only {read}",
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
    """Yield the layouts that split each dimension of the shard into its parts."""
    axes = _free_axes(program, sliced.argument)
    subsets = [each for count in range(len(axes) + 1) for each in combinations(axes, count)]
    of_dims = ([each for each in subsets if prod(map(program.mesh.axis_size, each)) == count] for count in sliced.parts)
    for names in product(*of_dims):
        if len({*chain(*names)}) == len([*chain(*names)]):
            before = value_dims(sliced.argument)
            yield tuple((*own, *map(AxisRef, each)) for own, each in zip(before, names, strict=True))


def _free_axes(program: LintedProgram, argument: BlockArgument) -> list[str]:
    """Return the axes that shard no dimension of an argument."""
    used = {axis.name for axes in value_dims(argument) for axis in axes}
    return [name for name, size in program.mesh.axes if size > 1 and name not in used]
