"""`sdy-compose-slices-and-pads`: composition of consecutive slices and pads of sharded dimensions."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass, change_type, erase, replace
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations_of
from sdy.passes.spmd.resizes import are_equal, filling_scalar, is_filled, may_resize, may_rewrite
from sdy.sharding import equivalent
from sdy.stablehlo.emitter import Emitter, before, with_shape
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp

_Resize: TypeAlias = SliceOp | PadOp

_Inner: TypeAlias = SliceOp | PadOp | ConcatenateOp

_Composition: TypeAlias = Callable[[Emitter], SSAValue]
"""Emits the composition of two operations."""


class ComposeSlicesAndPadsPass(AnalysisPreservingPass):
    """Compose slices and pads of slices, pads and concatenations that change the size of a sharded dimension.

    A causal shift pads a tensor in front and slices it to its original size. Before::

        sdy.mesh @mesh = <["x"=4]>
        %1 = stablehlo.pad %0, %c, low = [1], high = [0], interior = [0] [{"x"}] : tensor<9xf32>
        %2 = stablehlo.slice %1 [0:8] [{"x"}] : tensor<8xf32>

    After::

        %2 = stablehlo.pad %0, %c, low = [1], high = [-1], interior = [0] [{"x"}] : tensor<8xf32>

    Each device then receives one row, and the uneven intermediate tensor is not materialized. All users of the
    intermediate tensor must be composed with it; one pad may have several slices. A slice of a sum of pads, or of
    another elementwise operation on pads, is first replaced by the sum of their slices. Slices of a concatenation read
    the operands that have all of their rows, whether or not the dimension is sharded.

    The following operations are not composed: operations in different blocks, with a custom sharding rule, unreduced
    axes, dynamic sizes or no elements; pads with different values; a pad of rows that a slice removed; a strided slice
    of a pad; a slice of a concatenation along another dimension; and a slice that is an operand of a concatenation,
    which reads the unsliced tensor directly.
    """

    name = "sdy-compose-slices-and-pads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for outer in operations_of(op, SliceOp, PadOp):
            if (ranges := _ranges(outer)) is not None and _resizes(outer) and _is_of_pads(outer.operand, outer):
                _slice_in_place(outer.operand, ranges, outer)
                replace(outer, [outer.operand])
        for inner in operations_of(op, ConcatenateOp):
            _slice_operands(inner)
        pending: list[Operation] = [*operations_of(op, SliceOp, PadOp, ConcatenateOp)]
        for inner in pending:  # which grows
            if isinstance(inner, _Inner) and inner.parent is not None:
                pending += _compose_with_users(inner)


class _Range(NamedTuple):
    start: int
    limit: int
    stride: int = 1


class _Edges(NamedTuple):
    """A dimension of a pad: the low and high edge padding, negative to remove rows, and the dilation."""

    low: int
    high: int
    dilation: int = 1

    @property
    def fills(self) -> bool:
        """True if the result has positions without an operand row."""
        return self.low > 0 or self.high > 0 or self.dilation > 1

    def after(self, inner: "_Edges") -> "_Edges | None":
        """Return the composition after `inner`; None if it would restore rows that `inner` removes."""
        if inner.low < 0 < self.low or inner.high < 0 < self.high:
            return None
        low, high = inner.low * self.dilation + self.low, inner.high * self.dilation + self.high
        return _Edges(low, high, inner.dilation * self.dilation)


def _compose_with_users(inner: _Inner) -> Iterator[Operation]:
    """Compose `inner` with its users, if all of them can be composed; yield the operations to visit next."""
    users = list(dict.fromkeys(use.operation for use in inner.results[0].uses))
    composed = [(user, _composition(inner, user)) for user in users]
    if not all(composition for _, composition in composed):
        return
    for user, composition in composed:
        assert composition is not None
        value = _replace_composed(user, composition(before(user)), inner)
        yield from (each.owner for each in (*inner.operands, value) if isinstance(each.owner, Operation))
    if users:
        erase(inner)


def _replace_composed(outer: Operation, value: SSAValue, inner: _Inner) -> SSAValue:
    """Replace `outer` by its composition with `inner`, which is resharded if it is an operand of `inner`."""
    if value in inner.operands:
        sharding = get_sharding(outer.results[0])
        if sharding is not None and not equivalent(get_sharding(value), sharding):
            value = before(outer).insert(ReshardOp(value, sharding))
    elif isinstance(value.owner, Operation):
        value.owner.attributes.update(outer.attributes)
    replace(outer, [value])
    return value


def _slice_operands(inner: ConcatenateOp) -> None:
    """Let the slices of a concatenation read the operands that have all of their rows, if there are no other users."""
    users = [use.operation for use in inner.result.uses]
    slices = [user for user in users if isinstance(user, SliceOp) and may_rewrite(inner, user)]
    found = [(outer, part) for outer in slices if (part := _operand_with_rows(inner, outer)) is not None]
    if len(found) < len(users) or any(map(_is_concatenated, slices)):
        return
    for outer, (operand, ranges) in found:
        _replace_composed(outer, _sliced(operand, ranges, before(outer)), inner)
    if found:
        erase(inner)


def _operand_with_rows(inner: ConcatenateOp, outer: SliceOp) -> tuple[SSAValue, list[_Range]] | None:
    """Return the operand of a concatenation that has all rows of a slice, and the ranges of the slice in it."""
    dim, place = inner.dimension.value.data, 0
    ranges = [_Range(*each) for each in outer.ranges()]
    start, limit, stride = ranges[dim]
    for operand in inner.operands:
        end = place + shape_of(operand)[dim]
        if place <= start < limit <= end:
            ranges[dim] = _Range(start - place, limit - place, stride)
            return operand, ranges
        place = end
    return None


def _composition(inner: _Inner, outer: Operation) -> _Composition | None:
    """Return the emitter of the composition of `outer` with its operand `inner`; None if they cannot be composed."""
    if not isinstance(outer, _Resize) or outer.parent is not inner.parent or not _resizes(inner, outer):
        return None
    if isinstance(inner, SliceOp) and isinstance(outer, SliceOp):
        return _slice_of_slice(inner, outer)
    if _is_concatenated(outer):
        return None
    if isinstance(inner, ConcatenateOp):
        return _concatenation_of_slices(inner, outer) if isinstance(outer, SliceOp) else None
    return _pad_of_pad(inner, outer)


def _resizes(*ops: _Inner) -> bool:
    """Return whether `ops` resize a sharded dimension, may be rewritten, and have no empty tensors."""
    return may_resize(*ops) and all(0 not in shape_of(value) for op in ops for value in (*op.operands, *op.results))


def _is_concatenated(op: Operation) -> bool:
    return any(isinstance(use.operation, ConcatenateOp) for use in op.results[0].uses)


def _slice_of_slice(inner: SliceOp, outer: SliceOp) -> _Composition:
    ranges = [
        _Range(start + first * stride, start + (end - 1) * stride + 1, step * stride)
        for (start, _, stride), (first, end, step) in zip(inner.ranges(), outer.ranges(), strict=True)
    ]
    return lambda emit: _sliced(inner.operand, ranges, emit)


def _pad_of_pad(inner: _Resize, outer: _Resize) -> _Composition | None:
    first, second = _edges(inner), _edges(outer)
    if first is None or second is None:
        return None
    edges = [after.after(before) for before, after in zip(first, second, strict=True)]
    fillers = [
        op.padding_value
        for op, of_dims in ((inner, first), (outer, second))
        if isinstance(op, PadOp) and any(each.fills for each in of_dims)
    ]
    known = [each for each in edges if each is not None]
    if len(known) < len(edges) or (len(fillers) == 2 and not are_equal(*fillers)):
        return None
    if any(each.fills for each in known):
        low, high, dilations = zip(*known, strict=True)
        interior = [dilation - 1 for dilation in dilations]
        return lambda emit: emit.insert(PadOp(inner.operand, fillers[0], low, high, interior))
    sizes = shape_of(inner.operand)
    ranges = [_Range(-low, size + high) for size, (low, high, _) in zip(sizes, known, strict=True)]
    return lambda emit: _sliced(inner.operand, ranges, emit)


def _concatenation_of_slices(inner: ConcatenateOp, outer: SliceOp) -> _Composition | None:
    dim = inner.dimension.value.data
    start, limit, stride = outer.ranges()[dim]
    full = [(0, size, 1) for size in shape_of(inner.result)]
    if stride != 1 or any(each != full[other] for other, each in enumerate(outer.ranges()) if other != dim):
        return None

    def emit_parts(emit: Emitter) -> SSAValue:
        parts: list[SSAValue] = []
        place = 0
        for operand in inner.operands:
            size, ranges = shape_of(operand)[dim], [_Range(*each) for each in outer.ranges()]
            ranges[dim] = _Range(max(start - place, 0), min(limit - place, size))
            place += size
            if ranges[dim].start < ranges[dim].limit:
                part = _sliced(operand, ranges, emit)
                if part is not operand and (sharding := get_sharding(operand)) is not None:
                    set_sharding(part, sharding)
                parts.append(part)
        return emit.concatenate(parts, dim)

    return emit_parts


def _edges(op: _Resize) -> list[_Edges] | None:
    """Return the edge padding of `op` as a pad; None for a strided slice."""
    if isinstance(op, PadOp):
        columns = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
        dims = zip(*(column.get_values() for column in columns), strict=True)
        return [_Edges(low, high, interior + 1) for low, high, interior in dims]
    if any(stride != 1 for _, _, stride in op.ranges()):
        return None
    return [
        _Edges(-start, limit - size) for (start, limit, _), size in zip(op.ranges(), shape_of(op.operand), strict=True)
    ]


def _ranges(op: _Resize) -> list[_Range] | None:
    """Return the ranges of `op` as a slice; None for a pad that adds positions."""
    if isinstance(op, SliceOp):
        return [_Range(*each) for each in op.ranges()]
    edges = _edges(op)
    if edges is None or any(each.fills for each in edges):
        return None
    return [_Range(-low, size + high) for (low, high, _), size in zip(edges, shape_of(op.operand), strict=True)]


def _is_of_pads(value: SSAValue, user: Operation) -> bool:
    """Return whether `value`, with `user` as its only user, is an elementwise expression of pads and constants."""
    op = value.owner
    if (
        not isinstance(op, Operation)
        or op.parent is not user.parent
        or value.get_user_of_unique_use() is not user
        or not has_trait(op, Elementwise)
        or len(op.results) != 1
        or op.regions
        or SHARDING_RULE in op.attributes
    ):
        return False
    variable = [operand for operand in op.operands if not is_filled(operand)]
    return bool(variable) and all(
        shape_of(operand) == shape_of(value)
        and ((isinstance(operand.owner, PadOp) and operand.get_user_of_unique_use() is op) or _is_of_pads(operand, op))
        for operand in variable
    )


def _slice_in_place(value: SSAValue, ranges: Sequence[_Range], outer: _Resize) -> None:
    """Change the expression `value`, for which `_is_of_pads` is true, into its slice `outer`, by slicing the pads."""
    op = value.owner
    assert isinstance(op, Operation)
    full_shape = shape_of(value)
    for index, operand in enumerate(op.operands):
        if shape_of(operand) != full_shape:
            continue  # a scalar
        if isinstance(operand.owner, PadOp) or is_filled(operand):
            op.operands[index] = _laid_out_like(outer, _part(operand, ranges, before(op)))
        else:
            _slice_in_place(operand, ranges, outer)
    change_type(value, with_shape(value, shape_of(outer.result)))
    _laid_out_like(outer, value)


def _part(value: SSAValue, ranges: Sequence[_Range], emit: Emitter) -> SSAValue:
    """Emit the slice of `value`, a pad or a tensor that is filled with one scalar."""
    if isinstance(value.owner, PadOp):
        return _sliced(value, ranges, emit)
    sizes = [-((start - limit) // stride) for start, limit, stride in ranges]
    return emit.broadcast(filling_scalar(value, emit), (), sizes)


def _laid_out_like(outer: _Resize, value: SSAValue) -> SSAValue:
    """Set the sharding of `outer`'s result on `value`, and return `value`."""
    if (sharding := get_sharding(outer.result)) is not None:
        set_sharding(value, sharding)
    return value


def _sliced(value: SSAValue, ranges: Sequence[_Range], emit: Emitter) -> SSAValue:
    """Emit a slice of `value`; return `value` itself if the slice is the identity."""
    if all(each == (0, size, 1) for each, size in zip(ranges, shape_of(value), strict=True)):
        return value
    return emit.slice(value, *zip(*ranges, strict=True))
