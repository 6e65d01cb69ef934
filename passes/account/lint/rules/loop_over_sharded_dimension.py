"""A loop slices a tensor along a dimension that is sharded.

An iteration reads one part of the dimension, which is on one device: the others receive it, in each iteration or all of
it before the loop, and then all devices compute the same. Another dimension can be sharded instead, that of the batch
or of the features; microbatches of a sharded batch keep the batch sharded where the batch is the minor dimension. A
Python loop that indexes the dimension does the same, where `jax.vmap` would leave each part on its device.

Before::

    xs = jax.device_put(xs, P("data"))  # (time, batch, width)
    jax.lax.scan(cell, state, xs)

After::

    xs = jax.device_put(xs, P(None, "data"))
    jax.lax.scan(cell, state, xs)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import axes_text
from sdy.ir.shapes import is_static_tensor, rank, shape_of
from sdy.ir.walking import operations_of
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, Dims, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.name_lists import several
from sdy.passes.common.loops import carried_unchanged
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find loops whose body slices a loop-invariant tensor, or updates a carried one, along a sharded dimension."""
    candidates = Candidates(program)
    for loop in operations_of(program.module, WhileOp):
        alike: dict[tuple[int, Sequence[AxisRef]], list[_Walked]] = {}
        for position, index in sorted(_walked(loop).items()):
            begin = loop.operands[position]
            sources = [*program.use_def.trace(begin)]
            axes = _axes_at(sources, index)
            collectives = [each for each in program.collectives if _moves(each, loop, position, sources)]
            if axes and collectives:
                cures = [cure for value in sources for cure in _cures(candidates, value)]
                # An open dimension may end as a replicated one, which saves the bytes, and repeats the computation.
                ordered = sorted([*cures, *candidates.of_origins(begin)], key=lambda cure: cure.is_open)
                walked = _Walked(begin, collectives, ordered)
                alike.setdefault((index, axes), []).append(walked)
        for (index, axes), together in alike.items():
            yield _suspicion(program, candidates, loop, "a loop walks over", index, axes, together)
    yield from _unrolled(program, candidates)


_FEWEST = 4
"""The number of parts that a loop in Python slices one by one."""


def _unrolled(program: LintedProgram, candidates: Candidates) -> Iterator[Suspicion]:
    """Find tensors whose parts along a sharded leading dimension are all sliced, as by a Python loop."""
    alike: dict[Sequence[AxisRef], list[_Walked]] = {}
    first: dict[Sequence[AxisRef], Operation] = {}
    of_source: dict[Operation | None, list[Collective]] = {}
    for each in program.collectives:
        of_source.setdefault(each.source, []).append(each)
    for value in program.values:
        axes = value_dims(value)[0]
        slices = [use.operation for use in value.uses if _is_leading_part(use.operation)] if axes else []
        collectives = [each for op in slices for each in _of_part(op, of_source)]
        if len(slices) >= max(_FEWEST, shape_of(value)[0]) and collectives:
            first.setdefault(axes, slices[0])
            alike.setdefault(axes, []).append(_Walked(value, collectives, candidates.of_value(value)))
    for axes, together in alike.items():
        yield _suspicion(program, candidates, first[axes], "a Python loop walks over", 0, axes, together)


def _is_leading_part(op: Operation) -> bool:
    """Return whether `op` slices one element of the leading dimension, and all of the others."""
    return isinstance(op, SliceOp) and shape_of(op.result) == (1, *shape_of(op.operand)[1:])


def _of_part(op: Operation, of_source: Mapping[Operation | None, Sequence[Collective]]) -> Iterator[Collective]:
    """Yield the collectives of a slice, and those that reshard it for its users."""
    yield from of_source.get(op, ())
    for use in op.results[0].uses:
        for each in of_source.get(use.operation, ()):
            if each.cause is not None and each.cause.tensor is op.results[0]:
                yield each


class _Walked(NamedTuple):
    """A tensor that a loop walks over, the collectives that move its parts, and the fixes."""

    begin: SSAValue
    collectives: Sequence[Collective]
    cures: Sequence[Cure]


def _suspicion(
    program: LintedProgram,
    candidates: Candidates,
    at: Operation,
    what: str,
    index: int,
    axes: Sequence[AxisRef],
    together: Sequence[_Walked],
) -> Suspicion:
    """Return one match for the tensors that a loop walks over along the same axes, such as the weights of layers."""
    largest = max(together, key=lambda each: sum(collective.bytes for collective in each.collectives))
    begin, _, cures = largest
    collectives = dict.fromkeys(each for walked in together for each in walked.collectives)
    names = several([*dict.fromkeys(program.called(each.begin) for each in (largest, *together))])
    # The fixes of each tensor are in the same order.
    of_all = zip(*(each.cures for each in together), strict=False) if len(together) > 1 else ()
    joint = [Cure(tuple(dict.fromkeys(edit for cure in each for edit in cure.edits))) for each in of_all]
    return Suspicion(
        begin if isinstance(begin.owner, Operation) else at,
        f"{what} dimension {index} of {names}, {begin.type}, which {axes_text(axes)} shards: devices receive the parts "
        "of the others and compute alike",
        "",
        [GivenBy(begin, axes)],
        received=sum(each.bytes for each in collectives),
        collectives=[each.op for each in collectives],
        cures=[*dict.fromkeys((*_of_batch(program, candidates, begin, index, axes), *joint, *cures))],
    )


def _of_batch(
    program: LintedProgram, candidates: Candidates, begin: SSAValue, index: int, axes: Sequence[AxisRef]
) -> Iterator[Cure]:
    """Yield the layouts that split one other dimension in all arguments that have the one that the loop walks over."""
    size = shape_of(begin)[index]
    alike = [
        each
        for each in program.main.args
        if is_static_tensor(each.type) and shape_of(each)[index : index + 1] == (size,)
        if value_dims(each)[index] == axes
    ]
    for other in range(min((rank(each.type) for each in alike), default=0)):
        dims = {each: _moved(candidates, each, index, other) for each in alike}
        if len(alike) > 1 and None not in dims.values():
            yield Cure(tuple(candidates.shard(each, new) for each, new in dims.items()))


def _moved(candidates: Candidates, argument: BlockArgument, index: int, other: int) -> Dims | None:
    """Return the layout of an argument with the axes of one dimension moved to another one; None if no axes fit."""
    before = value_dims(argument)
    moved = (dims for dims in candidates.moved(argument, before) if not dims[index])
    return next((dims for dims in moved if dims[other] == (*before[other], *before[index])), None)


def _cures(candidates: Candidates, value: SSAValue) -> Iterator[Cure]:
    yield from candidates.of_value(value) or candidates.of_result(value)


def _walked(loop: WhileOp) -> dict[int, int]:
    """Return the positions of the carried values that the body slices or updates, with the dimension."""
    found: dict[int, int] = {}
    unchanged = carried_unchanged(loop)
    for argument in loop.body.block.args:
        for use in argument.uses:
            op = use.operation
            # It may be the index of a slice of another tensor, too.
            if use.index == 0 and isinstance(op, DynamicSliceOp) and argument in unchanged:
                part = shape_of(op.result)
            elif use.index == 0 and isinstance(op, DynamicUpdateSliceOp):
                part = shape_of(op.operands[1])
            else:
                continue
            sizes = zip(part, shape_of(argument), strict=True)
            cut = [index for index, (size, whole) in enumerate(sizes) if size < whole]
            if len(cut) == 1:
                found[argument.index] = cut[0]
    return found


def _axes_at(values: list[SSAValue], index: int) -> tuple[AxisRef, ...]:
    """Return the axes of dimension `index` of the first of `values` that has some."""
    for value in values:
        dims = value_dims(value)
        if rank(value.type) == rank(values[0].type) and dims[index]:
            return dims[index]
    return ()


def _moves(collective: Collective, loop: WhileOp, position: int, sources: list[SSAValue]) -> bool:
    """Return whether a collective reshards the tensor before the loop, or a slice of it in the loop."""
    cause = collective.cause
    if cause is None or cause.purpose is not Purpose.RESHARD or cause.tensor is None:
        source = collective.source
        return isinstance(source, DynamicSliceOp | DynamicUpdateSliceOp) and _is_carried(
            source.operands[0], loop, position
        )
    if cause.tensor in sources or _is_carried(cause.tensor, loop, position):
        return True
    owner = cause.tensor.owner
    return isinstance(owner, DynamicSliceOp) and _is_carried(owner.operands[0], loop, position)


def _is_carried(value: SSAValue, loop: WhileOp, position: int) -> bool:
    return isinstance(value, BlockArgument) and value.owner is loop.body.block and value.index == position
