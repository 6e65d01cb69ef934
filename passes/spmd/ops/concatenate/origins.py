"""Sources of the rows of a concatenation: its operands, or tensors that these are slices or reshards of."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sdy.dialect.ops import ReshardOp
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.resolution import layout_of
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp


@dataclass(frozen=True)
class Rows:
    """Rows `[start, start + size)` of `source`, which are rows `[place, place + size)` of the result."""

    source: SSAValue
    start: int
    place: int
    size: int


def rows_of(op: ConcatenateOp, dim: int, result: Layout) -> list[Rows] | None:
    """Return the source of each range of rows of the result, or None if one would have to be resharded first.

    Prefer the earliest tensor in a chain of slices and reshards if the result uses at least half of its rows.
    """
    place = 0
    choices: list[list[Rows]] = []
    for operand in op.operands:
        size = shape_of(operand)[dim]
        sources = [
            Rows(value, start, place, size) for value, start in _origins(operand, dim) if _is_local(value, dim, result)
        ]
        if not sources:
            return None
        if size:
            choices.append(sources)
        place += size
    wanted = Counter[SSAValue]()
    for first, *_ in choices:
        wanted[first.source] += first.size

    def is_mostly_used(rows: Rows) -> bool:
        """Return whether the result uses at least half of the source's rows."""
        return 2 * wanted[rows.source] >= shape_of(rows.source)[dim]

    return [next(filter(is_mostly_used, sources), sources[-1]) for sources in choices]


def _origins(value: SSAValue, dim: int) -> Iterator[tuple[SSAValue, int]]:
    """Yield the tensors that contain the rows of `value`, each with the index of its first row there.

    They are the tensors that `value` is a slice or a reshard of, earliest first, and `value` itself.
    """
    op = value.owner
    if isinstance(op, ReshardOp):
        yield from _origins(op.input, dim)
    elif isinstance(op, SliceOp):
        kept = zip(op.ranges(), shape_of(op.operand), strict=True)
        first, _, stride = op.ranges()[dim]
        if stride == 1 and all(each == (0, size, 1) for other, (each, size) in enumerate(kept) if other != dim):
            yield from ((source, first + start) for source, start in _origins(op.operand, dim))
    yield value, 0


def _is_local(value: SSAValue, dim: int, result: Layout) -> bool:
    """Return whether each device holds its rows of `value`, or all of them along `dim`, without a reshard."""
    layout = layout_of(value)
    if not layout.is_split:
        return True
    if layout.mesh != result.mesh:
        return False
    if layout.axes[dim]:
        return layout.axes == result.axes
    return all(axes in ((), others) for axes, others in zip(layout.axes, result.axes, strict=True))
